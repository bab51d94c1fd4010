package handlers

import (
	"net/http"
	"net/url"
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
	// maxAttempts is how many logins a browser can have under way at once, in tabs of their own: cookies are small.
	maxAttempts = 3
	// maxNext is the longest next address that a login remembers, in bytes.
	maxNext = 300
)

// logins handles logins through the OpenID Connect provider. A login under way is kept in a cookie of the browser that started it.
type logins struct {
	provider  *login.Provider // nil for none
	publicURL string
	codec     *securecookie.SecureCookie
	name      string // of the cookie
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

// LoginLink returns where people log in through the provider, and the provider's name, "" for none. If the gateway has a public
// address, the login starts there: otherwise its cookie would not come back.
func (a *access) LoginLink(r *http.Request) (address, provider string) {
	if a.logins.provider == nil {
		return "", ""
	}
	if public, err := url.Parse(a.logins.publicURL); err == nil && public.Host != "" && public.Host != r.Host {
		return a.logins.publicURL + views.LoginStartURL, a.logins.provider.Host()
	}
	return views.LoginStartURL, a.logins.provider.Host()
}

// StartLogin starts a login that leads to next, and returns the provider's address for it. It returns BadGateway when the
// provider cannot be reached.
func (a *access) StartLogin(w http.ResponseWriter, r *http.Request, next string) (address string, err error) {
	address, begun, err := a.logins.provider.Begin(r.Context(), a.logins.redirectURI(r))
	if err != nil {
		return "", a.logins.log(a, r, err)
	}
	if len(next) > maxNext {
		next = views.OverviewURL
	}
	attempts := append([]attempt{{begun, next}}, a.logins.attempts(r)...)
	if err := a.logins.keep(w, r, attempts[:min(len(attempts), maxAttempts)]); err != nil {
		return "", err
	}
	return address, nil
}

// FinishLogin takes the callback of a login that this browser started, begins a session and returns where to go. It returns
// Invalid, BadGateway, and Forbidden for a user who has no role.
func (a *access) FinishLogin(w http.ResponseWriter, r *http.Request) (next string, err error) {
	callback := r.URL.Query()
	var mine *attempt
	var others []attempt
	for _, begun := range a.logins.attempts(r) {
		if begun.State == callback.Get("state") {
			mine = &begun
		} else {
			others = append(others, begun)
		}
	}
	if mine == nil {
		return "", a.logins.log(a, r, domain.Errorf(domain.Invalid, "This login was not started in this browser, has already been completed, or took too long."))
	}
	if err := a.logins.keep(w, r, others); err != nil {
		return "", err
	}
	person, err := a.logins.provider.Finish(r.Context(), mine.Attempt, a.logins.redirectURI(r), callback)
	if err != nil {
		return mine.Next, a.logins.log(a, r, err)
	}
	actor := domain.Actor{Who: person.Name, Via: domain.ViaLogin, Role: person.Role, Account: "login " + person.ID}
	return mine.Next, a.beginSession(w, r, service.Identity{Actor: actor})
}

// log logs why a login failed, and returns err.
func (l logins) log(a *access, r *http.Request, err error) error {
	a.log.WarnContext(r.Context(), "login failed", "error", err, "from", a.callers.of(r), "id", web.RequestID(r.Context()))
	return err
}

func (l logins) redirectURI(r *http.Request) string {
	base := l.publicURL
	if base == "" {
		base = "http://" + r.Host
		if web.CameByHTTPS(r) {
			base = "https://" + r.Host
		}
	}
	return base + views.LoginCallbackURL
}

// attempts returns the logins that this browser has started.
func (l logins) attempts(r *http.Request) (attempts []attempt) {
	cookie, err := r.Cookie(l.cookie(r).Name)
	if err != nil || l.codec.Decode(l.name, cookie.Value, &attempts) != nil {
		return nil
	}
	return attempts
}

// keep stores these logins in the browser's cookie.
func (l logins) keep(w http.ResponseWriter, r *http.Request, attempts []attempt) error {
	cookie := l.cookie(r)
	if cookie.MaxAge = -1; len(attempts) > 0 {
		value, err := l.codec.Encode(l.name, attempts)
		if err != nil {
			return domain.WrapError(domain.Internal, err, "the login could not be started")
		}
		cookie.Value, cookie.MaxAge = value, int(login.AttemptTime/time.Second)
	}
	http.SetCookie(w, cookie)
	return nil
}

func (l logins) cookie(r *http.Request) *http.Cookie {
	return sessionCookie(l.name, web.CameByHTTPS(r))
}
