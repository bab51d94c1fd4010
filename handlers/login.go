package handlers

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/securecookie"

	"switchyard/internal/domain"
	"switchyard/internal/login"
	"switchyard/internal/service"
	"switchyard/internal/web"
	"switchyard/views"
)

const (
	// maxAttempts is how many logins a browser can have under way at once, in separate tabs. One more ends the oldest.
	maxAttempts = 8
	// maxNext is the longest next address that a login remembers, in bytes.
	maxNext = 300
)

// logins handles logins through the OpenID Connect provider. Each login under way is kept in a cookie of its own, in
// the browser that started it: tabs that start at the same time do not know of each other.
type logins struct {
	provider  *login.Provider // nil for none
	publicURL string
	codec     *securecookie.SecureCookie
	name      string // the prefix of the cookies, which end with a part of the state
}

// attempt is a login under way, and where it leads.
type attempt struct {
	login.Attempt
	Next string `json:"p"`
}

func newLogins(g Gateway) logins {
	derive := deriveFrom(g.SessionKey)
	codec := securecookie.New(derive("sign a login"), derive("encrypt a login"))
	codec.SetSerializer(securecookie.JSONEncoder{})
	codec.MaxAge(0) // each login knows when it began; the gateway that made the cookie may have had another clock
	return logins{g.Login, strings.TrimRight(g.PublicURL, "/"), codec, cookieName(derive) + "_login"}
}

// LoginLink has the login start at the gateway's public address, if it has one: otherwise its cookie would not come
// back.
func (a *access) LoginLink(r *http.Request) (address, provider string) {
	if a.logins.provider == nil {
		return "", ""
	}
	if public, err := url.Parse(a.logins.publicURL); err == nil && public.Host != "" && public.Host != r.Host {
		return a.logins.publicURL + views.LoginStartURL, a.logins.provider.Host()
	}
	return views.LoginStartURL, a.logins.provider.Host()
}

func (a *access) HasAdminToken() bool { return a.token != "" }

func (a *access) StartLogin(w http.ResponseWriter, r *http.Request, next string) (address string, err error) {
	address, begun, err := a.logins.provider.Begin(r.Context(), a.logins.redirectURI(r))
	if err != nil {
		return "", a.logins.log(a, r, err)
	}
	if len(next) > maxNext {
		next = views.OverviewURL
	}
	for i, old := range a.logins.attempts(r) {
		if i+1 >= maxAttempts {
			a.logins.forget(w, r, old)
		}
	}
	return address, a.logins.keep(w, r, attempt{begun, next})
}

func (a *access) FinishLogin(w http.ResponseWriter, r *http.Request) (next string, err error) {
	callback := r.URL.Query()
	attempts := a.logins.attempts(r)
	i := slices.IndexFunc(attempts, func(begun attempt) bool { return begun.State == callback.Get("state") })
	if i < 0 {
		return "", a.logins.log(a, r, domain.Errorf(domain.Invalid,
			"This login was not started in this browser, has already been completed, or took too long."))
	}
	mine := attempts[i]
	a.logins.forget(w, r, mine)
	actor, err := a.logins.provider.Finish(r.Context(), mine.Attempt, a.logins.redirectURI(r), callback)
	if err != nil {
		return mine.Next, a.logins.log(a, r, err)
	}
	return mine.Next, a.beginSession(w, r, service.Identity{Actor: actor})
}

func (l logins) log(a *access, r *http.Request, err error) error {
	a.Log.WarnContext(r.Context(), "login failed", "error", err, "from", a.callers.networkOf(r), "id",
		web.RequestID(r.Context()))
	return err
}

func (l logins) redirectURI(r *http.Request) string {
	base := l.publicURL
	if base == "" {
		base = web.Origin(r).String()
	}
	return base + views.LoginCallbackURL
}

// attempts returns the logins that this browser has started, newest first.
func (l logins) attempts(r *http.Request) (attempts []attempt) {
	prefix := l.cookie(r, "", "", 0).Name
	for _, cookie := range r.Cookies() {
		var begun attempt
		if strings.HasPrefix(cookie.Name, prefix) && l.codec.Decode(l.name, cookie.Value, &begun) == nil {
			attempts = append(attempts, begun)
		}
	}
	slices.SortFunc(attempts, func(a, b attempt) int { return cmp.Compare(b.BeganMS, a.BeganMS) })
	return attempts
}

func (l logins) keep(w http.ResponseWriter, r *http.Request, begun attempt) error {
	value, err := l.codec.Encode(l.name, begun)
	if err != nil {
		return domain.WrapError(domain.Internal, err, "the login could not be started")
	}
	http.SetCookie(w, l.cookie(r, begun.State, value, int(login.AttemptTime/time.Second)))
	return nil
}

func (l logins) forget(w http.ResponseWriter, r *http.Request, begun attempt) {
	http.SetCookie(w, l.cookie(r, begun.State, "", -1))
}

func (l logins) cookie(r *http.Request, state, value string, maxAge int) *http.Cookie {
	return sessionCookie(l.name+"_"+state[:min(len(state), 8)], web.IsHTTPS(r), value, maxAge)
}
