package handlers

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gorilla/securecookie"

	"switchyard/internal/domain"
	"switchyard/views"
)

// decodeForm reads the fields of a plain form. It returns TooLarge over maxBody and Invalid for what is no form.
func decodeForm(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	err := r.ParseForm()
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, domain.Errorf(domain.TooLarge, "the form must be at most %d bytes", maxBody)
	case err != nil:
		return nil, domain.WrapError(domain.Invalid, err, "the form could not be read")
	}
	return r.PostForm, nil
}

// secretField returns a field that is never sent back, nil when it was left empty.
func secretField(fields url.Values, name string) *domain.Secret {
	secret := domain.Secret(fields.Get(name))
	if secret == "" {
		return nil
	}
	return &secret
}

// fieldError returns what a form shows when the service has refused it: messages begin with the name of the field at
// fault. Its Message is "" for what is no fault of the form.
func fieldError(err error) views.FieldError {
	code := domain.CodeOf(err)
	message := domain.MessageOf(err)
	switch code {
	case domain.Conflict: // only a name can be taken
		return views.FieldError{Field: "name", Message: sentence(message)}
	case domain.Invalid:
		if field, reason, ok := strings.Cut(message, ": "); ok && !strings.Contains(field, " ") {
			return views.FieldError{Field: field, Message: sentence(reason)}
		}
		return views.FieldError{Message: sentence(message)}
	}
	return views.FieldError{}
}

// sentence makes an error's message, which is made to follow other text, stand alone.
func sentence(message string) string {
	first, size := utf8.DecodeRuneInString(message)
	return string(unicode.ToUpper(first)) + strings.TrimSuffix(message[size:], ".") + "."
}

// localPath returns text if it is an address on this site, else "/": what a form says must not lead away.
func localPath(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(text, "/") ||
		strings.HasPrefix(text, "//") || strings.ContainsAny(text, "\\\r\n\t") {
		return "/"
	}
	return text
}

// notices carry what an action has to say to the page that follows it, in a signed cookie. The key lives as long as the
// process: nothing is lost with it but a sentence.
type notices struct{ codec *securecookie.SecureCookie }

// The cookie crosses ports: what another gateway on this host has signed is left alone.
const (
	noticeCookie  = "switchyard_notice"
	noticeSeconds = 60
)

func newNotices() notices {
	codec := securecookie.New(securecookie.GenerateRandomKey(32), nil)
	codec.SetSerializer(securecookie.JSONEncoder{})
	codec.MaxAge(noticeSeconds)
	return notices{codec}
}

// redirect answers a form: the browser goes to path, a local one, and sees the notice there.
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

// take returns the notice that waits for this reader, once; without one its Text is "".
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
