package console

import (
	"net/http"
	"net/url"
	"strings"

	"switchyard/internal/domain"
	"switchyard/internal/web"
	"switchyard/views"
)

// A FormHandler takes the fields of a URL-encoded form.
type FormHandler func(w http.ResponseWriter, r *http.Request, fields url.Values) error

// Form adapts h. It refuses what is no form with the errors of web.BodyError.
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
	secret := domain.Secret(fields.Get(name))
	if secret == "" {
		return nil
	}
	return &secret
}

// fieldError returns what a form shows when the service has refused it: messages begin with the name of the field at
// fault. Its Message is "" for errors that are not the form's fault.
func fieldError(err error) views.FieldError {
	code := domain.CodeOf(err)
	message := domain.MessageOf(err)
	switch code {
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

// localPath returns text if it is an address on this site, else "/": a form must not redirect to another site.
func localPath(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(text, "/") ||
		strings.HasPrefix(text, "//") || strings.ContainsAny(text, "\\\r\n\t") {
		return "/"
	}
	return text
}
