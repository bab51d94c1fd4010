package handlers

import (
	"log/slog"
	"net/http"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/web"
)

// role is who may use a route.
type role int

const (
	// public is everyone. Some of these routes check a signature of their own.
	public role = iota + 1
	// agent is the agent that the path names, with its secret.
	agent
	// agentOrAdmin is that agent or an administrator.
	agentOrAdmin
	viewer
	operator
	admin
)

// access finds out who asks, and lets those through who may use a route. Whoever has the admin token or a session has every
// role; where there is no admin token, everyone who has passed the guards has.
type access struct {
	web.Errors
	token    domain.Secret // "" for none
	agents   *service.Agents
	sessions sessions
	limiter  tokenLimiter
	callers  callers
	log      *slog.Logger
}

func newAccess(g Gateway) *access {
	return &access{
		Errors: web.Errors{Log: g.Log}, token: g.AdminToken, agents: g.Service.Agents,
		sessions: newSessions(g.Service.Access, g.SessionKey, g.AdminToken), callers: callers{g.TrustedProxies}, log: g.Log,
	}
}

// check lets a request through to next that may use a route of the role. A refusal has the given form; a caller who has
// shown nothing at all gets logIn instead, unless that is nil.
func (a *access) check(needs role, form web.ErrorForm, logIn, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info := web.InfoOf(r.Context())
		var err error
		switch needs {
		case public:
			info.Auth = a.openAuth(r)
		case agent:
			err = a.agents.CheckSecret(web.PathParam(r, "id"), agentSecret(r))
		case agentOrAdmin:
			info.Auth, err = a.authenticateAgentOrAdmin(w, r)
		default:
			info.Auth, err = a.authenticate(w, r)
			info.Role = domain.RoleAdmin
		}
		switch _, hasToken := web.BearerToken(r); {
		case err == nil:
			if needs == agent || info.Auth != web.AuthNone && info.Auth != web.AuthNotRequired {
				web.KnownCaller(r.Context())
			}
			next.ServeHTTP(w, r)
		case logIn != nil && !hasToken:
			logIn.ServeHTTP(w, r)
		default:
			if domain.CodeOf(err) == domain.Unauthorized {
				w.Header().Set("WWW-Authenticate", "Bearer")
			}
			a.Write(w, r, form, err)
		}
	})
}

// openAuth is how the caller of a public route is known, if at all. Tokens are not looked at there.
func (a *access) openAuth(r *http.Request) web.AuthMethod {
	switch {
	case a.token == "":
		return web.AuthNotRequired
	case a.sessions.has(r):
		return web.AuthSession
	}
	return web.AuthNone
}

// authenticate returns how the caller has shown to be an administrator. A token is all that is looked at where there is one.
func (a *access) authenticate(w http.ResponseWriter, r *http.Request) (web.AuthMethod, error) {
	if a.token == "" {
		return web.AuthNotRequired, nil
	}
	if token, ok := web.BearerToken(r); ok {
		return web.AuthToken, a.checkToken(w, r, token)
	}
	if a.sessions.has(r) {
		return web.AuthSession, nil
	}
	return web.AuthNone, domain.Errorf(domain.Unauthorized, "the admin token or a session is needed")
}

// authenticateAgentOrAdmin does the same where the agent itself may ask, too. Who shows an agent's secret acts as that
// agent, also where everyone else is the administrator; that an agent does not exist is for its handler to say.
func (a *access) authenticateAgentOrAdmin(w http.ResponseWriter, r *http.Request) (web.AuthMethod, error) {
	id, secret := web.PathParam(r, "id"), agentSecret(r)
	err := a.agents.CheckSecret(id, secret)
	if err == nil {
		return web.AuthAgent, nil
	}
	if !service.IsAgentSecret(secret) || a.token != "" && web.MatchesToken(secret.Reveal(), a.token) {
		return a.authenticate(w, r)
	}
	if _, known := a.agents.Find(id); !known {
		return web.AuthAgent, nil
	}
	if a.token != "" { // somebody might try to guess the admin token here as well
		if limited := a.countWrong(w, r); limited != nil {
			return web.AuthNone, limited
		}
	}
	return web.AuthNone, err
}

// checkToken returns Unauthorized for a wrong admin token, RateLimited where too many came from there.
func (a *access) checkToken(w http.ResponseWriter, r *http.Request, token string) error {
	if web.MatchesToken(token, a.token) {
		return nil
	}
	if err := a.countWrong(w, r); err != nil {
		return err
	}
	a.log.WarnContext(r.Context(), "wrong admin token", "from", a.callers.of(r), "id", web.RequestID(r.Context()))
	return domain.Errorf(domain.Unauthorized, "the admin token or a session is needed")
}

// countWrong counts a wrong token. It returns RateLimited, and sets Retry-After, where too many came from there.
func (a *access) countWrong(w http.ResponseWriter, r *http.Request) error {
	retryAfter, limited := a.limiter.count(a.callers.of(r))
	if !limited {
		return nil
	}
	w.Header().Set("Retry-After", retryAfter)
	return domain.Errorf(domain.RateLimited, "too many wrong tokens came from this address; try again later")
}

// LogIn begins a session for whoever has the admin token. It returns Unauthorized for a wrong one, RateLimited, with
// Retry-After set, when too many wrong ones came from there.
func (a *access) LogIn(w http.ResponseWriter, r *http.Request, token string) error {
	if err := a.checkToken(w, r, token); err != nil {
		return err
	}
	if err := a.sessions.begin(w, r); err != nil {
		return domain.WrapError(domain.Internal, err, "the session could not be made")
	}
	a.log.InfoContext(r.Context(), "logged in", "from", a.callers.of(r), "id", web.RequestID(r.Context()))
	return nil
}

// LogOut ends the caller's session: its cookie is worth nothing afterwards.
func (a *access) LogOut(w http.ResponseWriter, r *http.Request) error { return a.sessions.end(w, r) }

// agentSecret returns what the caller shows as an agent's secret, "" when nothing.
func agentSecret(r *http.Request) domain.Secret {
	token, _ := web.BearerToken(r)
	return domain.Secret(token)
}
