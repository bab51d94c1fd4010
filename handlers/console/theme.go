package console

import (
	"net/http"
	"net/url"

	"switchyard/internal/domain"
	"switchyard/views"
)

// themeCookie holds the reader's theme; without it, the system's applies.
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

func (c *Console) SetTheme(w http.ResponseWriter, r *http.Request, form url.Values) error {
	switch choice := form.Get("theme"); choice {
	case string(views.ThemeLight), string(views.ThemeDark):
		keepChoice(w, themeCookie, choice)
	case "system":
		keepChoice(w, themeCookie, "")
	default:
		return domain.Errorf(domain.Invalid, "theme: must be system, light or dark")
	}
	return seeOther(w, r, localPath(form.Get("next")))
}

// keepChoice sets a cookie that keeps a choice for a year, or removes it if the choice is "".
func keepChoice(w http.ResponseWriter, cookie, choice string) {
	setCookie(w, cookie, choice, 365*24*60*60)
}
