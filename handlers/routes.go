// Package handlers is the HTTP of the gateway: one table of all routes with the role that each needs, and the access
// check. The handlers are in handlers/api and, for people, handlers/console; rules are in package service.
package handlers

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"switchyard/handlers/api"
	"switchyard/handlers/console"
	"switchyard/handlers/mcp"
	"switchyard/internal/config"
	"switchyard/internal/domain"
	"switchyard/internal/login"
	"switchyard/internal/metrics"
	"switchyard/internal/service"
	"switchyard/internal/web"
	"switchyard/views"
)

// Gateway holds what the gateway's HTTP handler is built from.
type Gateway struct {
	Service *service.Service
	Log     *slog.Logger
	// AllowHosts are host names to accept besides the built-in ones.
	AllowHosts []string
	// Metrics counts what is served; with nil, the gateway counts for itself.
	Metrics *metrics.Counts
	// Version is the program's, and Revision the commit that it was built from, "" if that is unknown.
	Version, Revision string
	// Chat receives the requests of chat servers. It checks their signatures itself.
	Chat http.Handler
	// AdminToken is the token of the administrator, "" for none. SessionKey signs and encrypts the cookies of sessions.
	AdminToken domain.Secret
	SessionKey []byte
	// Proxies says which proxies are trusted for a request's origin, and in which headers they name who makes it.
	Proxies config.Login
	// Login is the provider through which people log in, nil for none.
	Login *login.Provider
	// PublicURL is the address at which people reach the gateway, "" if it is not known.
	PublicURL string
	// Sample is the sample of a first run.
	Sample console.Sample
	// Looked is called when somebody requests a page; it may be nil.
	Looked func()
}

func (g Gateway) Handler() http.Handler { return g.router(nil) }

// asOf sets the header that says how old the data is while the database cannot be reached and answers come from
// memory.
func (g Gateway) asOf(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if known := g.Service.Events.AsOf(); !known.IsZero() {
			w.Header().Set("As-Of", known.UTC().Format(time.RFC3339))
		}
		next.ServeHTTP(w, r)
	})
}

// router attaches the request info and counts the request; then come the guards, the access check, and the route.
func (g Gateway) router(waiting web.HandlerFunc) chi.Router {
	if g.Metrics == nil {
		g.Metrics = metrics.New(false)
	}
	access := newAccess(g)
	c := console.New(g.Service, access, g.Sample, deriveFrom(g.SessionKey)("sign a notice"), g.Log)
	c.Version = g.Version
	t := &routeTable{
		Router: chi.NewRouter(), access: access, console: c, open: map[string]bool{}, api: map[string]bool{},
		looked: g.Looked, waiting: waiting,
	}
	t.Use(
		web.WithRequestInfo, web.LimitWriteTime, web.AccessLog(g.Log, g.Metrics), web.Recover(g.Log), web.LimitBodyTime,
		access.callers.clean, web.Guard(g.AllowHosts), middleware.GetHead,
	)
	if waiting == nil {
		t.Use(g.asOf)
	}
	t.addFallbacks()
	held := &web.HeldCalls{}
	g.routes(t, api.New(g.Service, g.Log, g.Metrics, held, access.Base), c, held)
	return t
}

// routes is the whole route table: who may use a route, its address, its handler, and for the API the form of a
// refusal; pages redirect to the login. GET routes answer HEAD as well, unless they are getOnly.
func (g Gateway) routes(t *routeTable, a *api.API, c *console.Console, held *web.HeldCalls) {
	s := g.Service
	t.plain(public, "GET /healthz", a.Healthz, withoutService)
	t.plain(public, "GET /readyz", a.Readyz)
	t.plain(viewer, "GET /metrics", g.metrics)
	t.plain(viewer, "GET /api/openapi.json", a.OpenAPI)

	t.plain(viewer, "GET /gateway/mode", a.Mode)
	t.plain(operator, "POST /gateway/tokens", a.CreateJoinToken)
	t.plain(viewer, "GET /gateway/agents", a.ListAgents)
	t.plain(public, "POST /gateway/agents", a.JoinAgent)
	t.plain(agentOrAdmin, "DELETE /gateway/agents/{id}", api.Remove(s.Agents.Remove))
	t.plain(agent, "POST /gateway/agents/{id}/heartbeat", a.Heartbeat)
	t.plain(agent, "POST /gateway/agents/{id}/token", a.IssueAgentToken)
	t.plain(operator, "POST /gateway/agents/{id}/assign", a.AssignAgent)

	t.plain(viewer, "GET /api/gateway", a.Registry)
	t.okFalse(operator, "POST /api/gateway/switch", a.SwitchProject)
	t.plain(viewer, "GET /api/gateway/projects", a.ListProjects)
	t.plain(admin, "POST /api/gateway/projects", a.AddProject)
	t.plain(admin, "PUT /api/gateway/projects/{name}", a.UpdateProject)
	t.plain(admin, "DELETE /api/gateway/projects/{name}", a.RemoveProject)
	t.plain(viewer, "GET /api/gateway/pipeline", a.Pipeline)
	t.plain(viewer, "GET /api/gateway/projects/{name}/stories/{story_id}", a.Story)
	t.plain(viewer, "GET /api/gateway/projects/{name}/stories/{story_id}/picture", a.Picture)
	t.plain(operatorOrAgent, "PATCH /api/gateway/projects/{name}/stories/{story_id}", a.PatchStory)
	t.plain(operatorOrAgent, "POST /api/gateway/projects/{name}/stories", a.CreateStory)
	t.plain(operatorOrAgent, "POST /api/gateway/projects/{name}/stories/claim", a.ClaimStory)
	t.plain(operatorOrAgent, "DELETE /api/gateway/projects/{name}/stories/{story_id}/claim", a.ReleaseStory)
	t.plain(viewer, "GET /api/gateway/projects/{name}/stories/{story_id}/changes", a.StoryChanges)
	t.plain(operator, "POST /api/gateway/projects/{name}/stories/{story_id}/review", a.ReviewStory)
	t.plain(operator, "POST /api/gateway/projects/{name}/stories/{story_id}/merge", a.MergeStory)
	t.plain(viewer, "GET /api/gateway/search", a.Search)
	t.plain(viewer, "GET /api/gateway/flow", a.Flow)
	t.plain(viewer, "GET /api/gateway/cost", a.Cost)
	t.page(viewer, "GET /cost.csv", c.CostCSV)
	t.plain(reporter, "POST /v1/logs", a.Logs)
	t.plain(reporter, "POST /v1/metrics", a.DropTelemetry)
	t.plain(reporter, "POST /v1/traces", a.DropTelemetry)
	t.plain(reporter, "POST /api/gateway/usage", a.ReportUsage)
	t.plain(viewer, "GET /api/gateway/questions", a.ListQuestions)
	t.plain(operatorOrAgent, "POST /api/gateway/questions", a.AskQuestion)
	t.plain(viewer, "GET /api/gateway/questions/{id}", a.Question)
	t.plain(operatorOrAgent, "DELETE /api/gateway/questions/{id}", a.WithdrawQuestion)
	t.plain(operator, "POST /api/gateway/questions/{id}/answer", a.AnswerQuestion)
	t.plain(viewer, "GET /api/gateway/agent-sessions", a.ListAgentSessions)
	t.plain(operatorOrAgent, "POST /api/hooks/claude-code", a.ClaudeCodeHook, over(domain.ChannelHook))
	t.plain(admin, "GET /api/gateway/targets", a.ListTargets)
	t.plain(admin, "POST /api/gateway/targets", a.CreateTarget)
	t.plain(admin, "PUT /api/gateway/targets/{id}", a.ChangeTarget)
	t.plain(admin, "DELETE /api/gateway/targets/{id}", api.Remove(s.Targets.Remove))
	t.okFalse(admin, "POST /api/gateway/targets/{id}/test", api.Do(s.Targets.Test))
	t.plain(admin, "POST /api/gateway/targets/{id}/secret", a.NewTargetSecret)
	t.plain(admin, "POST /api/gateway/targets/{id}/resend", api.Do(s.Targets.Resend))
	t.plain(admin, "GET /api/gateway/targets/{id}/deliveries", a.ListDeliveries)
	t.plain(viewer, "GET /api/gateway/attention", a.ListAlerts)
	t.okFalse(operator, "POST /api/gateway/attention/acknowledge", a.AcknowledgeAlert)
	t.okFalse(operator, "POST /api/gateway/attention/reopen", a.ReopenAlert)

	t.plain(admin, "GET /api/gateway/bot-config", a.BotConfig)
	t.okFalse(admin, "POST /api/gateway/bot-config", a.SaveBotConfig)
	t.plain(viewer, "GET /api/gateway/bot", a.BotStatus)
	t.okFalse(operator, "POST /api/gateway/bot/test", a.TestBot)
	t.plain(public, "POST /bot/team/events", g.chatRequest)
	t.plain(public, "POST /bot/team/commands", g.chatRequest)

	t.plain(admin, "GET /api/gateway/tokens", a.ListNamedTokens)
	t.plain(admin, "POST /api/gateway/tokens", a.CreateNamedToken)
	t.plain(admin, "DELETE /api/gateway/tokens/{id}", api.Remove(s.Access.RevokeToken))
	t.plain(admin, "GET /api/gateway/sessions", a.ListSessions)
	t.plain(admin, "DELETE /api/gateway/sessions/{id}", api.Remove(s.Access.EndSession))
	t.plain(admin, "GET /api/gateway/audit", a.ListAudit)

	t.plain(viewer, "GET /api/events", a.Feed)
	t.plain(viewer, "GET /api/gateway/events", a.ListEvents)
	t.plain(viewer, "GET /api/gateway/events/stream", a.StreamEvents)

	// MCP requests are independent of each other: there is no session to listen to (GET) or to end (DELETE).
	t.plain(viewer, "POST /mcp", mcp.New(g.Service, g.Log, g.Version, held).Serve, over(domain.ChannelMCP))

	// Opening most of these addresses changes something.
	t.page(admin, "GET /oauth/authorize", c.Authorize, getOnly, navigationOnly)
	t.page(public, "GET /oauth/callback", c.Callback, getOnly, navigationOnly, secretAddress)
	t.page(public, "GET /callback", c.Callback, getOnly, navigationOnly, secretAddress)
	t.plain(viewer, "GET /oauth/status", a.SignInStatus, getOnly)
	t.plain(admin, "POST /oauth/sign-out", a.SignOut)

	t.page(viewer, "GET /", c.Overview)
	t.form(operator, "POST "+views.AcknowledgeURL, c.Acknowledge)
	t.form(operator, "POST "+views.ReopenURL, c.Reopen)
	t.page(viewer, "GET /projects", c.Projects)
	t.form(admin, "POST /projects", c.AddProject)
	t.page(viewer, "GET /projects/{name}", c.Project)
	t.form(admin, "POST /projects/{name}", c.UpdateProject)
	t.page(admin, "POST /projects/{name}/remove", c.RemoveProject)
	t.form(operator, "POST /projects/{name}/stories", c.CreateStory)
	t.page(viewer, "GET /projects/{name}/stories/{story_id}", c.Story)
	t.form(operator, "POST /projects/{name}/stories/{story_id}", c.ChangeStory)
	t.form(admin, "POST /check-address", c.CheckAddress)
	t.form(admin, "POST /restore-project", c.RestoreProject)
	t.page(admin, "POST "+views.RemoveSampleURL, c.RemoveSample)
	t.form(operator, "POST /switch", c.SwitchProject)
	t.page(viewer, "GET /agents", c.Agents)
	t.form(operator, "POST /agents", c.AddAgent)
	t.form(operator, "POST /agents/{id}/assign", c.AssignAgent)
	t.form(operator, "POST /agents/{id}/label", c.LabelAgent)
	t.page(admin, "POST /agents/{id}/remove", c.RemoveAgent)
	t.page(operator, "GET /agents/tokens/{hash}", c.JoinToken)
	t.page(operator, "POST /agents/tokens/{hash}/revoke", c.RevokeToken)
	t.page(viewer, "GET /events", c.Events)
	t.page(viewer, "GET "+views.SearchURL, c.Search)
	t.page(viewer, "GET "+views.PaletteURL, c.Palette)
	t.page(viewer, "GET "+views.FlowURL, c.Flow)
	t.page(viewer, "GET "+views.FlowURL+".csv", c.FlowCSV)
	t.page(viewer, "GET "+views.FlowURL+"/{number}", c.FlowStory)
	t.page(viewer, "GET "+views.QuestionsURL, c.Questions)
	t.form(operator, "POST "+views.QuestionsURL+"/{id}/answer", c.AnswerQuestion)
	t.page(viewer, "GET "+views.WaitingURL, c.Waiting)
	t.form(operator, "POST "+views.TellURL, c.Tell)
	t.plain(viewer, "GET /api/gateway/push", a.PushKey)
	t.plain(viewer, "POST /api/gateway/push", a.AddDevice)
	t.plain(viewer, "DELETE /api/gateway/push/{id}", api.Remove(s.Push.Remove))
	t.page(viewer, "GET "+views.ManifestURL, c.Manifest)
	t.page(viewer, "GET "+views.WorkerURL, c.PushWorker)
	t.page(viewer, "GET "+views.NotificationsURL, c.Notifications)
	t.page(viewer, "POST "+views.NotificationsURL+"/devices/{id}/remove", c.RemoveDevice)
	t.form(admin, "POST "+views.NotificationsURL, c.AddTarget)
	t.form(admin, "POST "+views.NotificationsURL+"/preview", c.PreviewTarget)
	t.form(admin, "POST "+views.NotificationsURL+"/test", c.TestTarget)
	t.form(admin, "POST "+views.NotificationsURL+"/{id}", c.ChangeTarget)
	t.page(admin, "POST "+views.NotificationsURL+"/{id}/{do}", c.DoTarget)
	t.page(viewer, "GET "+views.NotificationsURL+"/digests/{id}", c.Digest)
	t.page(wall, "GET "+views.WallURL, c.Wall, secretQuery)
	t.page(admin, "GET "+views.BotConfigURL, c.Bot)
	t.page(admin, "GET "+views.AccessURL, c.Access)
	t.form(admin, "POST "+views.AccessURL, c.CreateNamedToken)
	t.page(admin, "POST /access/tokens/{id}/revoke", c.RevokeNamedToken)
	t.page(admin, "POST /access/sessions/{id}/end", c.EndSession)
	t.page(admin, "POST "+views.EndOthersURL, c.EndOtherSessions)
	t.page(admin, "GET "+views.AuditURL, c.Audit)
	t.page(admin, "GET "+views.AuditCSVURL, c.AuditCSV)
	t.form(viewer, "POST /theme", c.SetTheme)
	t.page(public, "GET /static/*", console.Asset, withoutService)

	t.page(admin, "GET "+views.SignInSetUpURL, c.SignInSetUp, secretQuery)
	t.page(admin, "GET "+views.SignInByHandURL, c.SignInByHand, navigationOnly)
	t.form(admin, "POST "+views.SignInByHandURL, c.PasteSignIn)
	t.form(admin, "POST "+views.SignOutURL, c.SignOutForm)
	t.page(public, "GET "+views.LoginURL, c.LoginPage)
	t.page(public, "POST "+views.LoginURL, c.LogIn)
	t.page(public, "GET "+views.LoginStartURL, c.StartLogin, getOnly, navigationOnly)
	t.page(public, "GET "+views.LoginCallbackURL, c.FinishLogin, getOnly, navigationOnly, secretAddress)
	t.page(viewer, "POST "+views.LogoutURL, c.LogOut)
}

func (g Gateway) chatRequest(w http.ResponseWriter, r *http.Request) error {
	g.Chat.ServeHTTP(w, r)
	return nil
}

// Waiting returns the handler of a gateway that has no Service yet: every address except /healthz and the assets of
// pages answers with the reason, in its usual format. reason must not return nil.
func (g Gateway) Waiting(reason func() error) http.Handler {
	g.Service = &service.Service{}
	return g.router(func(http.ResponseWriter, *http.Request) error {
		return domain.Errorf(domain.Unavailable, "%s", domain.MessageOf(reason()))
	})
}
