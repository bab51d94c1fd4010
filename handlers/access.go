package handlers

import (
	"log/slog"
	"net/http"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/web"
)

// role is who may use a route.
type role string

const (
	// public is everyone. Some of these routes check a signature of their own.
	public role = "public"
	// agent is the agent that the path names, with its secret.
	agent role = "agent"
	// agentOrAdmin is that agent or an administrator.
	agentOrAdmin role = "agent or admin"

	viewer   = role(domain.RoleViewer)
	operator = role(domain.RoleOperator)
	admin    = role(domain.RoleAdmin)
)

// isOfPeople reports whether a route asks for more than an agent's secret.
func (r role) isOfPeople() bool { return r != public && r != agent }

// access finds out who asks, and lets through those who may use a route. While no authentication is set up, everyone
// who has passed the guards is the administrator.
type access struct {
	web.Errors
	open     bool          // nothing is set up that callers have to show
	token    domain.Secret // "" for none
	named    *service.Access
	agents   *service.Agents
	sessions sessions
	logins   logins
	proxies  proxyLogin
	limiter  tokenLimiter
	bodies   web.StrangerBodies
	callers  callers
	log      *slog.Logger
}

func newAccess(g Gateway) *access {
	callers := callers{g.TrustedProxies}
	proxies := proxyLogin{g.ProxyLogin, callers}
	return &access{
		Errors: web.Errors{Log: g.Log}, open: g.AdminToken == "" && g.Login == nil && !proxies.isOn(), token: g.AdminToken,
		named: g.Service.Access, agents: g.Service.Agents,
		sessions: newSessions(g.Service.Access, g.SessionKey, g.AdminToken), callers: callers, log: g.Log,
		logins: newLogins(g), proxies: proxies,
	}
}

// check passes a request on to next if the caller may use a route of that role, and has refuse answer otherwise.
func (a *access) check(needs role, refuse refusal, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info := web.InfoOf(r.Context())
		var c caller
		var err error
		switch needs {
		case public:
			c = a.openCaller(r)
		case agent:
			c, err = a.authenticateAgent(r)
		case agentOrAdmin:
			c, err = a.authenticateAgentOrAdmin(w, r)
		default:
			c, err = a.authenticate(w, r)
		}
		info.Identify(c.auth, c.Actor, c.Ended)
		info.SessionID, info.Caller = c.SessionID, a.callerOf(c, r)
		if err == nil && c.auth != web.AuthNone && c.auth != web.AuthNotRequired {
			web.KnownCaller(r.Context())
		} else {
			defer a.bodies.Limit(r)()
		}
		if err == nil {
			err = c.checkRole(needs)
		}
		if err == nil {
			next.ServeHTTP(w, r)
		} else {
			refuse(w, r, err)
		}
	})
}

// callerOf returns whom the limits of a request count for: the agent, the named token, the session, or the address.
func (a *access) callerOf(c caller, r *http.Request) string {
	switch {
	case c.AgentID != "", c.TokenID != "":
		return c.Account
	case c.SessionID != "":
		return "session " + c.SessionID
	}
	return "address " + a.callers.networkOf(r).String()
}

// refusal answers a request that may not use a route.
type refusal func(w http.ResponseWriter, r *http.Request, err error)

// inForm refuses a request in one of the API's error forms.
func (a *access) inForm(form web.ErrorForm) refusal {
	return func(w http.ResponseWriter, r *http.Request, err error) {
		if domain.CodeOf(err) == domain.Unauthorized {
			w.Header().Set("WWW-Authenticate", "Bearer")
		}
		a.Write(w, r, form, err)
	}
}

// caller is who makes a request and how that is known.
type caller struct {
	service.Identity
	auth web.AuthMethod
}

func (c caller) checkRole(needs role) error {
	switch needs {
	case public, agent:
		return nil
	case agentOrAdmin:
		if c.auth == web.AuthAgent {
			return nil
		}
		needs = admin
	}
	if c.Role.Allows(domain.Role(needs)) {
		return nil
	}
	return domain.Errorf(domain.Forbidden, "This needs the role %s; yours is %s.", needs, c.Role)
}

// authenticate returns who makes the request: by its token if it has one, else by its session, else by the headers of a
// trusted proxy. It returns Unauthorized when there is none of these, RateLimited when too many wrong tokens came from
// the caller's address, and Forbidden for a user whom a proxy names but who has no role.
func (a *access) authenticate(w http.ResponseWriter, r *http.Request) (caller, error) {
	token, ok := web.BearerToken(r)
	if a.open {
		everybody := service.Identity{Actor: domain.Administrator(domain.ViaOpen)}
		if known, valid := a.named.Token(r.Context(), domain.Secret(token)); valid && known.AgentID != "" {
			everybody.AgentID, everybody.Account = known.AgentID, known.Account
		}
		return caller{everybody, web.AuthNotRequired}, nil
	}
	if ok {
		identity, err := a.checkToken(w, r, token)
		return caller{identity, web.AuthToken}, err
	}
	if identity, ok := a.sessions.identity(r); ok {
		return caller{identity, web.AuthSession}, nil
	}
	switch identity, named, err := a.proxies.identity(r); {
	case err != nil:
		return caller{}, err
	case named:
		return caller{identity, web.AuthProxy}, nil
	}
	return caller{}, unauthorized()
}

func unauthorized() error {
	return domain.Errorf(domain.Unauthorized, "a token or a session is required")
}

// openCaller returns who makes a request to a public route, if that is known. Tokens are not checked there.
func (a *access) openCaller(r *http.Request) caller {
	if a.open {
		return caller{auth: web.AuthNotRequired, Identity: service.Identity{Actor: domain.Administrator(domain.ViaOpen)}}
	}
	if identity, ok := a.sessions.identity(r); ok {
		return caller{identity, web.AuthSession}
	}
	if identity, named, err := a.proxies.identity(r); named && err == nil {
		return caller{identity, web.AuthProxy}
	}
	return caller{}
}

// authenticateAgent returns the agent that the path names. It returns Unauthorized for a wrong secret.
func (a *access) authenticateAgent(r *http.Request) (caller, error) {
	id := web.PathParam(r, "id")
	if err := a.agents.CheckSecret(r.Context(), id, agentSecret(r)); err != nil {
		return caller{}, err
	}
	return caller{auth: web.AuthAgent, Identity: service.Identity{Actor: domain.Actor{Who: id, Via: domain.ViaAgent}}}, nil
}

// authenticateAgentOrAdmin also accepts the agent that the path names. A caller with an agent's secret acts as that
// agent, even where everyone else is the administrator; that an agent does not exist is for the handler to report.
func (a *access) authenticateAgentOrAdmin(w http.ResponseWriter, r *http.Request) (caller, error) {
	self, err := a.authenticateAgent(r)
	if err == nil {
		if known, ok := a.agents.Find(self.Who); ok {
			self.Who = known.Label
		}
		return self, nil
	}
	secret := agentSecret(r)
	if !service.IsAgentSecret(secret) || a.token != "" && web.MatchesToken(secret.Reveal(), a.token) {
		return a.authenticate(w, r)
	}
	if _, known := a.agents.Find(web.PathParam(r, "id")); !known {
		return caller{auth: web.AuthAgent}, nil
	}
	if !a.open { // somebody might try to guess a token here as well
		if limited := a.countWrong(w, r); limited != nil {
			return caller{}, limited
		}
	}
	return caller{}, err
}

// checkToken returns whose token this is. It returns Unauthorized for a wrong token, RateLimited when too many wrong
// ones came from the same address.
func (a *access) checkToken(w http.ResponseWriter, r *http.Request, token string) (service.Identity, error) {
	if a.token != "" && web.MatchesToken(token, a.token) {
		return service.Identity{Actor: domain.Administrator(domain.ViaAdminToken)}, nil
	}
	if identity, ok := a.named.Token(r.Context(), domain.Secret(token)); ok {
		return identity, nil
	}
	if err := a.countWrong(w, r); err != nil {
		return service.Identity{}, err
	}
	a.log.WarnContext(r.Context(), "wrong token", "from", a.callers.networkOf(r), "id", web.RequestID(r.Context()))
	return service.Identity{}, unauthorized()
}

// countWrong counts a wrong token. It returns RateLimited, and sets Retry-After, when too many came from the same
// address.
func (a *access) countWrong(w http.ResponseWriter, r *http.Request) error {
	retryAfter, limited := a.limiter.count(a.callers.networkOf(r))
	if !limited {
		return nil
	}
	w.Header().Set("Retry-After", retryAfter)
	return domain.Errorf(domain.RateLimited, "too many wrong tokens from this address; try again later")
}

// LogIn begins a session for the holder of the admin token or a named one. It returns Unauthorized for a wrong token,
// RateLimited, with Retry-After set, when too many wrong ones came from the same address.
func (a *access) LogIn(w http.ResponseWriter, r *http.Request, token string) error {
	identity, err := a.checkToken(w, r, token)
	if err != nil {
		return err
	}
	return a.beginSession(w, r, identity)
}

// beginSession sets the cookie of a new session for a user who has just logged in.
func (a *access) beginSession(w http.ResponseWriter, r *http.Request, identity service.Identity) error {
	info := web.InfoOf(r.Context())
	info.Identify(info.Auth, identity.Actor, nil)
	switch err := a.sessions.begin(w, r, identity, a.callers.networkOf(r).String()); {
	case domain.CodeOf(err) == domain.Unavailable:
		return err
	case err != nil:
		return domain.WrapError(domain.Internal, err, "the session could not be created")
	}
	return nil
}

// LogOut ends the caller's session; its cookie is no longer valid.
func (a *access) LogOut(w http.ResponseWriter, r *http.Request) error { return a.sessions.end(w, r) }

func agentSecret(r *http.Request) domain.Secret {
	token, _ := web.BearerToken(r)
	return domain.Secret(token)
}
