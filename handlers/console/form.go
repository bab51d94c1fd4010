package console

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/gorilla/securecookie"

	"switchyard/internal/domain"
	"switchyard/internal/web"
	"switchyard/views"
)

// A FormHandler takes the fields of a URL-encoded form.
type FormHandler func(w http.ResponseWriter, r *http.Request, fields url.Values) error

// Form adapts h. It refuses anything but a form with the errors of web.BodyError.
func Form(h FormHandler) web.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		fields, err := decodeFormUpTo(w, r, web.MaxBody)
		if err != nil {
			return err
		}
		return h(w, r, fields)
	}
}

func decodeFormUpTo(w http.ResponseWriter, r *http.Request, limit int64) (url.Values, error) {
	r.Body = http.MaxBytesReader(w, r.Body, limit)
	if err := r.ParseForm(); err != nil {
		return nil, web.BodyError(err)
	}
	return r.PostForm, nil
}

// secretField returns a field that pages never show, nil when it was left empty.
func secretField(fields url.Values, name string) *domain.Secret {
	if secret := domain.Secret(fields.Get(name)); secret != "" {
		return &secret
	}
	return nil
}

// fieldError returns what a form shows if the service refuses it: messages begin with the name of the field at fault.
// Its Message is "" for errors that are not the form's fault.
func fieldError(err error) views.FieldError {
	message := domain.MessageOf(err)
	switch domain.CodeOf(err) {
	case domain.Conflict: // only a name can be taken
		return views.FieldError{Field: "name", Message: views.Sentence(message)}
	case domain.Invalid:
		if field, reason, ok := strings.Cut(message, ": "); ok && !strings.Contains(field, " ") {
			return views.FieldError{Field: field, Message: views.Sentence(reason)}
		}
		return views.FieldError{Message: views.Sentence(message)}
	}
	return views.FieldError{}
}

func seeOther(w http.ResponseWriter, r *http.Request, address string) error {
	http.Redirect(w, r, address, http.StatusSeeOther)
	return nil
}

// localPath returns text if it is an address on this site, else "/": a form must not redirect to another site.
func localPath(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(text, "/") ||
		strings.HasPrefix(text, "//") || strings.ContainsAny(text, "\\\r\n\t") {
		return "/"
	}
	return text
}

// done answers a form: the browser goes to path, where the notice says what was done, or gone says that its subject no
// longer exists. Other errors are returned.
func (c *Console) done(w http.ResponseWriter, r *http.Request, path string, notice views.Notice, err error, gone string,
) error {
	if domain.CodeOf(err) == domain.NotFound {
		notice, err = views.Notice{Text: gone}, nil
	}
	if err != nil {
		return err
	}
	return c.notices.redirect(w, r, path, notice)
}

// notices carry the result of an action to the next page, in a signed cookie, so that any gateway can show it.
type notices struct{ codec *securecookie.SecureCookie }

// Cookies are shared between ports: one signed by another gateway on this host is left alone.
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
	if err := n.keep(w, notice); err != nil {
		return err
	}
	return seeOther(w, r, path)
}

// keep shows the notice on the next page that the reader opens.
func (n notices) keep(w http.ResponseWriter, notice views.Notice) error {
	value, err := n.codec.Encode(noticeCookie, notice)
	if err == nil {
		setCookie(w, noticeCookie, value, noticeSeconds)
	}
	return err
}

// pop returns the reader's notice and removes it; without one its Text is "".
func (n notices) pop(w http.ResponseWriter, r *http.Request) (notice views.Notice) {
	cookie, err := r.Cookie(noticeCookie)
	if err != nil || n.codec.Decode(noticeCookie, cookie.Value, &notice) != nil {
		return views.Notice{}
	}
	setCookie(w, noticeCookie, "", 0)
	return notice
}

// themeCookie holds the reader's theme; without it, the system's applies.
const themeCookie = "switchyard_theme"

func theme(r *http.Request) views.Theme {
	if cookie, err := r.Cookie(themeCookie); err == nil {
		return views.ThemeOf(cookie.Value)
	}
	return views.ThemeSystem
}

func (c *Console) SetTheme(w http.ResponseWriter, r *http.Request, fields url.Values) error {
	choice := views.ThemeOf(fields.Get("theme"))
	if choice == views.ThemeSystem && fields.Get("theme") != "system" {
		return domain.Errorf(domain.Invalid, "theme: must be system, light or dark")
	}
	setCookie(w, themeCookie, string(choice), aYear)
	return seeOther(w, r, localPath(fields.Get("next")))
}

// aYear is how long a cookie keeps a choice, in seconds.
const aYear = 365 * 24 * 60 * 60

// setCookie sets a cookie of the console for that many seconds, or removes it if its value is "".
func setCookie(w http.ResponseWriter, name, value string, seconds int) {
	cookie := &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: seconds, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	}
	if value == "" {
		cookie.MaxAge = -1
	}
	http.SetCookie(w, cookie)
}
