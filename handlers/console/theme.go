package console

import (
	"net/http"

	"switchyard/internal/domain"
	"switchyard/views"
)

// themeCookie holds the reader's colours; without it they are the system's.
const themeCookie = "switchyard_theme"

func theme(r *http.Request) views.Theme {
	cookie, err := r.Cookie(themeCookie)
	if err != nil {
		return views.ThemeSystem
	}
	switch choice := views.Theme(cookie.Value); choice {
	case views.ThemeLight, views.ThemeDark:
		return choice
	}
	return views.ThemeSystem
}

// SetTheme keeps the reader's choice of colours for a year.
func (c *Console) SetTheme(w http.ResponseWriter, r *http.Request) error {
	form, err := decodeForm(w, r)
	if err != nil {
		return err
	}
	cookie := &http.Cookie{Name: themeCookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode}
	switch choice := form.Get("theme"); choice {
	case string(views.ThemeLight), string(views.ThemeDark):
		cookie.Value, cookie.MaxAge = choice, 365*24*60*60
	case "system":
		cookie.MaxAge = -1
	default:
		return domain.Errorf(domain.Invalid, "theme: must be system, light or dark")
	}
	http.SetCookie(w, cookie)
	http.Redirect(w, r, localPath(form.Get("next")), http.StatusSeeOther)
	return nil
}
