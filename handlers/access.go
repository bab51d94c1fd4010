package handlers

import (
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5/middleware"

	"switchyard/internal/domain"
	"switchyard/views"
)

// access decides who is the administrator: whoever has the admin token or a session, and where there is no admin token,
// everyone who has passed the guards.
type access struct {
	token    domain.Secret // "" for none
	sessions sessions
	wrong    wrongTokens
	log      *slog.Logger
}

func newAccess(g Gateway) *access {
	return &access{token: g.AdminToken, sessions: newSessions(g.SessionKey, g.AdminToken), log: g.Log}
}

// proof is how a caller has proved to be the administrator.
type proof string

const (
	noProof      proof = ""
	nothingAsked proof = "nothing asked" // there is no admin token
	tokenGiven   proof = "token"
	sessionGiven proof = "session"
)

func proofOf(r *http.Request) proof { return visitOf(r.Context()).proof }

// isAdministrator reports whether the administrator asks. Only at the doors that are open to others can it be false.
func isAdministrator(r *http.Request) bool { return proofOf(r) != noProof }

// door says who may pass to an address.
type door int

const (
	adminDoor door = iota // the administrator
	openDoor              // everyone; some ask for secrets of their own
	// agentDoor is for the administrator and for the agent that it is about: the bearer token may be either's.
	agentDoor
)

func doorOf(r *http.Request) door {
	path := routePath(r)
	switch path {
	case views.LoginURL, "/healthz", "/readyz", "/callback", "/oauth/callback", "/bot/team/events", "/bot/team/commands":
		return openDoor
	}
	if strings.HasPrefix(path, "/static/") || path == "/gateway/agents" && r.Method == http.MethodPost {
		return openDoor
	}
	agent, found := strings.CutPrefix(path, "/gateway/agents/")
	id, call, _ := strings.Cut(agent, "/")
	switch {
	case found && id != "" && call == "heartbeat":
		return openDoor
	case found && id != "" && call == "" && r.Method == http.MethodDelete:
		return agentDoor
	}
	return adminDoor
}

// check lets those requests pass that may. logIn answers a form that came without proof.
func (a *access) check(next, logIn http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pass := func(p proof) {
			visitOf(r.Context()).proof = p
			next.ServeHTTP(w, r)
		}
		if a.token == "" {
			pass(nothingAsked)
			return
		}
		door := doorOf(r)
		token, hasToken := bearerToken(r)
		switch {
		case door == openDoor && a.sessions.has(r):
			pass(sessionGiven)
		case door == openDoor:
			pass(noProof)
		case hasToken && door == agentDoor && !a.matches(token):
			a.checkAgent(w, r, next)
		case hasToken:
			switch a.judge(r, token) {
			case tokenRight:
				pass(tokenGiven)
			case tokenWrong:
				refuse(w)
			case tooManyWrong:
				a.refuseForNow(w, r, plainForm)
			}
		case a.sessions.has(r):
			pass(sessionGiven)
		case door == agentDoor:
			pass(noProof)
		default:
			askToLogIn(w, r, logIn)
		}
	})
}

// checkAgent passes a token on that may be an agent's. It counts as a wrong one when it is not: here, too, somebody might
// try to guess the admin token.
func (a *access) checkAgent(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if a.wrong.exceeded(callerOf(r)) {
		a.refuseForNow(w, r, plainForm)
		return
	}
	answer := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
	next.ServeHTTP(answer, r)
	if answer.Status() == http.StatusUnauthorized {
		a.wrong.judge(callerOf(r), false)
	}
}

// judge compares a token with the admin token, and keeps count of the wrong ones.
func (a *access) judge(r *http.Request, token string) verdict {
	v := a.wrong.judge(callerOf(r), a.matches(token))
	if v == tokenWrong {
		a.log.WarnContext(r.Context(), "wrong admin token", "from", callerOf(r), "id", requestID(r.Context()))
	}
	return v
}

func (a *access) matches(token string) bool { return matchesToken(token, a.token) }

// matchesToken takes the same time for every wrong token.
func matchesToken(token string, secret domain.Secret) bool {
	given, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(secret.Reveal()))
	return subtle.ConstantTimeCompare(given[:], want[:]) == 1
}

// askToLogIn answers a caller who has shown nothing: a browser that goes to a page is sent to the login, one that sent a
// form gets the login in answer, and everything else gets a 401.
func askToLogIn(w http.ResponseWriter, r *http.Request, logIn http.Handler) {
	read := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch {
	case wantsPart(r):
		w.Header().Set("HX-Refresh", "true") // the page around the part, which then is sent to the login
		refuse(w)
	case read && isPage(r.URL.Path):
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Location", loginAddress(r.URL))
		w.WriteHeader(http.StatusSeeOther)
	case !read && (strings.HasPrefix(r.Header.Get("Accept"), "text/html") || r.Header.Get("Hx-Boosted") != ""):
		logIn.ServeHTTP(w, r)
	default:
		refuse(w)
	}
}

func refuse(w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", "Bearer")
	plainForm(w, http.StatusUnauthorized, "the admin token or a session is needed")
}

// refuseForNow answers a caller who gave too many wrong tokens.
func (a *access) refuseForNow(w http.ResponseWriter, r *http.Request, form errorForm) {
	w.Header().Set("Retry-After", a.wrong.retryAfter(callerOf(r)))
	form(w, http.StatusTooManyRequests, "too many wrong tokens came from this address; try again later")
}

// isPage reports whether path is one that people go to.
func isPage(path string) bool {
	switch path {
	case views.OverviewURL, views.ProjectsURL, views.AgentsURL, views.EventsURL, views.BotConfigURL, views.SignInURL, views.SignInByHandURL:
		return true
	}
	return strings.HasPrefix(path, views.ProjectsURL+"/")
}

// loginAddress leads to the login and from there back to u.
func loginAddress(u *url.URL) string {
	next := u.RequestURI()
	if next == views.OverviewURL {
		return views.LoginURL
	}
	return views.LoginURL + "?next=" + url.QueryEscape(next)
}

// bearerToken returns the token of the Authorization header.
func bearerToken(r *http.Request) (token string, ok bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(token), strings.EqualFold(scheme, "Bearer")
}

// routePath is the path as the router matches it.
func routePath(r *http.Request) string {
	if r.URL.RawPath != "" {
		return r.URL.RawPath
	}
	return r.URL.Path
}
