package console

import (
	"net/http"

	"github.com/gorilla/securecookie"

	"switchyard/views"
)

// notices carry the result of an action to the next page, in a signed cookie, so that any gateway can show it.
type notices struct{ codec *securecookie.SecureCookie }

// Cookies are shared between ports: one that another gateway on this host has signed is left alone.
const (
	noticeCookie  = "switchyard_notice"
	noticeSeconds = 60
)

func newNotices(key []byte) notices {
	codec := securecookie.New(key, nil)
	codec.SetSerializer(securecookie.JSONEncoder{})
	codec.MaxAge(noticeSeconds)
	return notices{codec}
}

// redirect answers a form: the browser goes to path, which must be local, where the notice is shown.
func (n notices) redirect(w http.ResponseWriter, r *http.Request, path string, notice views.Notice) error {
	value, err := n.codec.Encode(noticeCookie, notice)
	if err != nil {
		return err
	}
	http.SetCookie(w, &http.Cookie{
		Name: noticeCookie, Value: value, Path: "/", MaxAge: noticeSeconds, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
	http.Redirect(w, r, path, http.StatusSeeOther)
	return nil
}

// take returns the reader's notice and removes it; without one its Text is "".
func (n notices) take(w http.ResponseWriter, r *http.Request) views.Notice {
	cookie, err := r.Cookie(noticeCookie)
	if err != nil {
		return views.Notice{}
	}
	var notice views.Notice
	if n.codec.Decode(noticeCookie, cookie.Value, &notice) != nil {
		return views.Notice{}
	}
	http.SetCookie(w, &http.Cookie{
		Name: noticeCookie, Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
	return notice
}
