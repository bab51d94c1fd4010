package handlers

import (
	"cmp"
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

	// operatorOrAgent is an operator, or the command of an agent with its token.
	operatorOrAgent role = "operator or agent"

	// reporter is the same, or the command of an agent whose assignment has just ended: it reports its last calls.
	reporter role = "operator or agent, or one that has just ended"

	// wall is a wall display, by its link or its cookie, or a viewer.
	wall = role(domain.RoleWall)

	viewer   = role(domain.RoleViewer)
	operator = role(domain.RoleOperator)
	admin    = role(domain.RoleAdmin)
)

// eitherRole is the role that people need for what agents or displays may use, too.
var eitherRole = map[role]role{agentOrAdmin: admin, wall: viewer, operatorOrAgent: operator, reporter: operator}

// isOfPeople reports whether a route asks for more than an agent's secret.
func (r role) isOfPeople() bool { return r != public && r != agent }

// access finds out who is asking, and lets through those who may use a route. While no authentication is set up,
// everyone who has passed the guards is the administrator. It implements console.Sessions.
type access struct {
	web.Errors
	open     bool          // no credentials are set up
	token    domain.Secret // "" for none
	named    *service.Access
	agents   *service.Agents
	sessions sessions
	logins   logins
	limiter  tokenLimiter
	bodies   web.StrangerBodies
	callers  callers
}

func newAccess(g Gateway) *access {
	return &access{
		Errors: web.Errors{Log: g.Log}, token: g.AdminToken, callers: callers{&g.Proxies},
		open:  g.AdminToken == "" && g.Login == nil && !g.Proxies.HasProxyLogin(),
		named: g.Service.Access, agents: g.Service.Agents, logins: newLogins(g),
		sessions: newSessions(g.Service.Access, g.SessionKey, g.AdminToken),
	}
}

// check passes a request on to next if the caller, who comes by channel, may use a route of that role, and has refuse
// answer otherwise.
func (a *access) check(needs role, channel domain.Channel, refuse refusal, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		release, err := a.identify(w, r, needs)
		defer release()
		if err != nil {
			refuse(w, r, err)
			return
		}
		web.InfoOf(r.Context()).Channel = channel
		next.ServeHTTP(w, r)
	})
}

// identify finds out who makes a request to a route of that role, limits the bodies of strangers until release is
// called, and returns why the caller may not use the route. It is not part of check, and what it calls passes pointers
// to callers: large frames would enlarge the stack, which held calls keep.
func (a *access) identify(w http.ResponseWriter, r *http.Request, needs role) (release func(), err error) {
	info := web.InfoOf(r.Context())
	var c caller
	switch needs {
	case public: // tokens are not checked here
		if err := a.authenticateBrowser(r, &c); err != nil {
			c = caller{}
		}
	case agent:
		err = a.authenticateAgent(r, &c)
	case agentOrAdmin:
		err = a.authenticateAgentOrAdmin(w, r, &c)
	case wall:
		err = a.authenticateWall(w, r, &c)
	case reporter:
		err = a.authenticateReporter(w, r, &c)
	default:
		err = a.authenticate(w, r, &c)
	}
	info.Identify(c.auth, c.Actor, c.Ended)
	info.SessionID, info.Caller = c.SessionID, a.callerOf(&c, r)
	release = func() {}
	if err == nil && c.auth != web.AuthNone && c.auth != web.AuthNotRequired {
		web.KnownCaller(r.Context())
	} else {
		release = a.bodies.Limit(r)
	}
	return release, cmp.Or(err, c.checkRole(needs))
}

// callerOf returns whom a request's limits apply to: the agent, the named token, the session, or the address.
func (a *access) callerOf(c *caller, r *http.Request) string {
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

func (c *caller) checkRole(needs role) error {
	switch {
	case needs == public, needs == agent, needs == agentOrAdmin && c.auth == web.AuthAgent,
		needs == wall && c.Role == domain.RoleWall, (needs == operatorOrAgent || needs == reporter) && c.AgentID != "":
		return nil
	}
	if least, either := eitherRole[needs]; either {
		needs = least
	}
	if c.Role.Allows(domain.Role(needs)) {
		return nil
	}
	return domain.Errorf(domain.Forbidden, "This needs the role %s; yours is %s.", needs, c.Role)
}

// authenticate finds out who makes the request: by its token if it has one, else by its session, else by the headers of
// a trusted proxy. If nothing is set up, agents' tokens still say which agent is asking, and others are ignored. It
// returns Unauthorized if there is none of these, RateLimited if too many wrong tokens came from the caller's address,
// and Forbidden for a user whom a proxy names but who has no role.
func (a *access) authenticate(w http.ResponseWriter, r *http.Request, c *caller) error {
	token, ok := web.BearerToken(r)
	if !ok {
		return a.authenticateBrowser(r, c)
	}
	if !a.open {
		c.auth = web.AuthToken
		return a.checkToken(w, r, token, &c.Identity)
	}
	if known := a.named.Token(r.Context(), token); known != nil && known.AgentID != "" {
		c.Identity, c.auth = *known, web.AuthToken
		return nil
	}
	c.Actor, c.auth = domain.Administrator(domain.ViaOpen), web.AuthNotRequired
	return nil
}

// authenticateReporter also accepts the token of an agent's command that has just ended.
func (a *access) authenticateReporter(w http.ResponseWriter, r *http.Request, c *caller) error {
	if token, ok := web.BearerToken(r); ok {
		if known := a.named.EndedToken(token); known != nil {
			c.Identity, c.auth = *known, web.AuthToken
			return nil
		}
	}
	return a.authenticate(w, r, c)
}

// authenticateBrowser finds out who makes a request without a token.
func (a *access) authenticateBrowser(r *http.Request, c *caller) error {
	if a.open {
		c.Actor, c.auth = domain.Administrator(domain.ViaOpen), web.AuthNotRequired
		return nil
	}
	if known := a.sessions.identity(r); known != nil {
		c.Identity, c.auth = *known, web.AuthSession
		return nil
	}
	var err error
	if c.Actor, err = a.callers.actor(r); err == nil {
		c.auth = web.AuthProxy
	}
	return err
}

func unauthorized() error {
	return domain.Errorf(domain.Unauthorized, "a token or a session is required")
}

// authenticateAgent expects the agent that the path names. It returns Unauthorized for a wrong secret.
func (a *access) authenticateAgent(r *http.Request, c *caller) error {
	id := web.PathParam(r, "id")
	secret, _ := web.BearerToken(r)
	if err := a.agents.CheckSecret(r.Context(), id, secret); err != nil {
		return err
	}
	c.auth, c.Actor = web.AuthAgent, domain.Actor{Who: id, Via: domain.ViaAgent}
	return nil
}

// authenticateAgentOrAdmin also accepts the agent that the path names. A caller with an agent's secret acts as that
// agent, even if everyone else is the administrator; the handler reports that an agent does not exist.
func (a *access) authenticateAgentOrAdmin(w http.ResponseWriter, r *http.Request, c *caller) error {
	err := a.authenticateAgent(r, c)
	agent, known := a.agents.Find(web.PathParam(r, "id"))
	if err == nil {
		if known {
			c.Who = agent.Label
		}
		return nil
	}
	secret, _ := web.BearerToken(r)
	if !service.IsAgentSecret(secret) || a.token != "" && web.MatchesToken(secret, a.token) {
		return a.authenticate(w, r, c)
	}
	if !known {
		c.auth = web.AuthAgent
		return nil
	}
	if !a.open { // somebody might try to guess a token here as well
		err = cmp.Or(a.countWrong(w, r), err)
	}
	return err
}

// checkToken finds out whose token this is. It returns Unauthorized for a wrong token, RateLimited if too many wrong
// ones came from the same address.
func (a *access) checkToken(w http.ResponseWriter, r *http.Request, token domain.Secret, to *service.Identity) error {
	if a.token != "" && web.MatchesToken(token, a.token) {
		to.Actor = domain.Administrator(domain.ViaAdminToken)
		return nil
	}
	if known := a.named.Token(r.Context(), token); known != nil {
		*to = *known
		return nil
	}
	if err := a.countWrong(w, r); err != nil {
		return err
	}
	a.Log.WarnContext(r.Context(), "wrong token", "from", a.callers.networkOf(r), "id", web.RequestID(r.Context()))
	return unauthorized()
}

// countWrong counts a wrong token. It returns RateLimited, and sets Retry-After, if too many came from the same
// address.
func (a *access) countWrong(w http.ResponseWriter, r *http.Request) error {
	retryAfter, limited := a.limiter.count(a.callers.networkOf(r))
	if !limited {
		return nil
	}
	w.Header().Set("Retry-After", retryAfter)
	return domain.Errorf(domain.RateLimited, "too many wrong tokens from this address; try again later")
}

func (a *access) LogIn(w http.ResponseWriter, r *http.Request, token domain.Secret) error {
	var identity service.Identity
	if err := a.checkToken(w, r, token, &identity); err != nil {
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

func (a *access) LogOut(w http.ResponseWriter, r *http.Request) error { return a.sessions.end(w, r) }
