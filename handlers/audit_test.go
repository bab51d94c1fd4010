package handlers_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/service"
	"switchyard/internal/signintest"
	"switchyard/internal/waittest"
)

// changesNothing are the routes that write nothing that belongs in the audit log: the theme is the reader's own, agents report
// their state, an address is only checked, and changes by chat commands are recorded where the commands are run.
var changesNothing = map[string]bool{
	"POST /theme": true, "POST /check-address": true, "POST /notifications/preview": true, "POST /gateway/agents/{id}/heartbeat": true, "POST /bot/team/events": true, "POST /bot/team/commands": true,
	"POST /v1/logs": true, "POST /v1/metrics": true, "POST /v1/traces": true, "POST /api/gateway/usage": true, // what is used is no change
	"POST /remove-sample": true, // it removes projects and agents, each of which is an entry of its own
}

// audited is a gateway whose audit log is tested.
type audited struct {
	*gatewaytest.Site
	provider *signintest.Provider
	log      *waittest.Log
	zoe      string          // an administrator's token
	viewer   string          // a viewer's token
	tried    map[string]bool // routes
}

// anySubject matches a subject that a test cannot know.
const anySubject = "*"

const asForm = "application/x-www-form-urlencoded"

func newAudited(t *testing.T) *audited {
	a := &audited{provider: signintest.New(t), log: &waittest.Log{}, tried: map[string]bool{}}
	log := slog.New(slog.NewTextHandler(a.log, nil))
	o := service.Options{Log: log, Provider: gatewaytest.SignIn(a.provider, log), Bot: &gatewaytest.Bot{Rooms: []string{"#yard"}}}
	a.Site = gatewaytest.NewWholeSite(t, o, "correct-horse")
	_, a.zoe = gatewaytest.NamedToken(t, a.Service, "zoe", domain.RoleAdmin)
	_, a.viewer = gatewaytest.NamedToken(t, a.Service, "guest", domain.RoleViewer)
	return a
}

type auditEntry struct {
	ID        int64   `json:"id"`
	AtMS      int64   `json:"at_ms"`
	Who       string  `json:"who"`
	Via       string  `json:"via"`
	Role      *string `json:"role"`
	Action    string  `json:"action"`
	Subject   string  `json:"subject"`
	Detail    string  `json:"detail"`
	RequestID *string `json:"request_id"`
}

func (a *audited) entries(query string) (entries []auditEntry, next int64) {
	a.Helper()
	got := a.Send("GET", "/api/gateway/audit"+query, "", "Authorization", "Bearer correct-horse")
	if got.StatusCode != 200 {
		a.Fatalf("the audit%s: %d %s", query, got.StatusCode, got.Text)
	}
	var page struct {
		Entries []auditEntry `json:"entries"`
		Next    int64        `json:"next"`
	}
	got.Decode(a.TB.(*testing.T), &page)
	return page.Entries, page.Next
}

func (a *audited) last() auditEntry {
	a.Helper()
	entries, _ := a.entries("?limit=1")
	return append(entries, auditEntry{})[0]
}

// change sends a request that changes something, first as somebody who may not. It must add one entry like want: an action,
// a subject, and parts of the detail.
func (a *audited) change(pattern, path, body string, want ...string) gatewaytest.Answer {
	a.Helper()
	method, _, _ := strings.Cut(pattern, " ")
	a.tried[pattern] = true
	media := "application/json"
	if strings.Contains(body, "=") && !strings.HasPrefix(body, "{") {
		media = asForm
	}
	before := a.last()
	if pattern != "POST /mcp" {
		if got := a.Send(method, path, body, "Authorization", "Bearer "+a.viewer, "Content-Type", media); got.StatusCode != 403 {
			a.Errorf("%s as a viewer: %d %s", pattern, got.StatusCode, got.Text)
		}
	}
	if after := a.last(); after.ID != before.ID {
		a.Errorf("%s: what was refused is in the audit: %+v", pattern, after)
	}
	got := a.Send(method, path, body, "Authorization", "Bearer "+a.zoe, "Content-Type", media, "Accept", "application/json, text/event-stream")
	a.wantEntry(pattern, before, got, "zoe", "token", "admin", want...)
	return got
}

// wantEntry requires that a request has added one entry.
func (a *audited) wantEntry(pattern string, before auditEntry, got gatewaytest.Answer, who, via, role string, want ...string) {
	a.Helper()
	e := a.last()
	entries, _ := a.entries(fmt.Sprintf("?limit=%d", 2))
	if e.ID == before.ID || len(entries) > 1 && entries[1].ID != before.ID {
		a.Errorf("%s: %d %s; it left the entries %+v", pattern, got.StatusCode, got.Text, entries)
		return
	}
	id := got.Header.Get("X-Request-Id")
	if e.Who != who || e.Via != via || value(e.Role) != role || e.Action != want[0] || want[1] != anySubject && e.Subject != want[1] || value(e.RequestID) != id || time.Since(time.UnixMilli(e.AtMS)) > time.Minute {
		a.Errorf("%s: %+v %s %s; want %v by %s, %s, %s, request %s", pattern, e, value(e.Role), value(e.RequestID), want, who, via, role, id)
	}
	for _, part := range want[2:] {
		if !strings.Contains(e.Detail, part) {
			a.Errorf("%s: the detail is %q and lacks %q", pattern, e.Detail, part)
		}
	}
	for _, attribute := range []string{"msg=audit", "action=" + e.Action, "id=" + id} {
		if !strings.Contains(a.log.String(), attribute) {
			a.Errorf("%s: the log lacks %s", pattern, attribute)
		}
	}
}

func value(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

func form(pairs ...string) string {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return v.Encode()
}

// join lets an agent join as itself, and returns its id and secret.
func (a *audited) join(label string) (id, secret string) {
	a.Helper()
	token, _, err := a.Agents.CreateJoinToken(a.Context(), "")
	if err != nil {
		a.Fatal(err)
	}
	before := a.last()
	joined := a.Send("POST", "/gateway/agents", `{"token":"`+token.Reveal()+`","label":"`+label+`","version":"v1"}`)
	a.wantEntry("POST /gateway/agents", before, joined, label, "agent", "", "agent.joined", label, "version: v1")
	a.tried["POST /gateway/agents"] = true
	var answer struct {
		Agent  struct{ ID string }
		Secret string
	}
	joined.Decode(a.TB.(*testing.T), &answer)
	return answer.Agent.ID, answer.Secret
}

func (a *audited) callback() string {
	a.Helper()
	address, err := a.SignIn.Start(a.Context(), "http://localhost:3000/callback")
	if err != nil {
		a.Fatal(err)
	}
	u, err := url.Parse(a.provider.Approve(a.TB.(*testing.T), address))
	if err != nil {
		a.Fatal(err)
	}
	return u.RequestURI()
}

// TestEveryChangeIsOneEntry calls every route that writes, of the console, the API and MCP. It fails for a new one that it does
// not call.
func TestEveryChangeIsOneEntry(t *testing.T) {
	a := newAudited(t)
	alpha := gatewaytest.ProjectServer(t, gatewaytest.Says(gatewaytest.BoardText), func(mux *http.ServeMux) {
		mux.HandleFunc("GET /api/stories/7_pay", gatewaytest.Says(`{"story_id":"7_pay","stage":"2_current","version":"v1","work":[{"head":"`+gatewaytest.StoryHead+`"}]}`))
		mux.HandleFunc("PATCH /api/stories/7_pay", gatewaytest.Says(`{"story_id":"7_pay","stage":"3_qa"}`))
		mux.HandleFunc("POST /api/stories/7_pay/merge", gatewaytest.Says(`{"merged":"beef5678beef5678"}`))
		mux.HandleFunc("POST /api/stories", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, `{"story_id":"8_new","story_name":"New","stage":"1_backlog"}`)
		})
	})
	a.change("POST /api/gateway/projects", "/api/gateway/projects", `{"name":"alpha","url":"`+alpha+`","token":"canary-project-token"}`, "project.added", "alpha", "url: "+alpha, "token: set")
	a.change("POST /projects", "/projects", form("name", "beta", "url", "http://127.0.0.1:1"), "project.added", "beta", "url: http://127.0.0.1:1")
	a.change("PUT /api/gateway/projects/{name}", "/api/gateway/projects/beta", `{"url":"http://127.0.0.1:2"}`, "project.changed", "beta", "http://127.0.0.1:1 → http://127.0.0.1:2")
	a.change("POST /projects/{name}", "/projects/beta", form("url", "http://127.0.0.1:3"), "project.changed", "beta", "→ http://127.0.0.1:3")
	a.change("POST /api/gateway/switch", "/api/gateway/switch", `{"project":"beta"}`, "project.switched", "beta", "none → beta")
	a.change("POST /switch", "/switch", form("project", "alpha"), "project.switched", "alpha", "beta → alpha")
	a.change("POST /mcp", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"switch_project","arguments":{"project":"beta"}}}`, "project.switched", "beta", "alpha → beta")

	a.change("PATCH /api/gateway/projects/{name}/stories/{story_id}", "/api/gateway/projects/alpha/stories/7_pay", `{"version":"v1","stage":"3_qa"}`, "story.changed", "alpha/7_pay", "stage: ", "→ 3_qa")
	a.change("POST /projects/{name}/stories/{story_id}", "/projects/alpha/stories/7_pay", form("do", "move", "stage", "3_qa", "version", "v1"), "story.changed", "alpha/7_pay", "→ 3_qa")
	a.change("POST /api/gateway/projects/{name}/stories/claim", "/api/gateway/projects/alpha/stories/claim", `{"story_id":"7_pay"}`, "story.claimed", "alpha/7_pay", "claim: none → zoe")
	a.change("DELETE /api/gateway/projects/{name}/stories/{story_id}/claim", "/api/gateway/projects/alpha/stories/7_pay/claim", "", "story.released", "alpha/7_pay", "claim: zoe → none")
	a.change("POST /api/gateway/projects/{name}/stories/{story_id}/review", "/api/gateway/projects/alpha/stories/7_pay/review", `{"verdict":"sent_back","head":"`+gatewaytest.StoryHead+`","note":"no"}`, "story.reviewed", "alpha/7_pay", "sent back at c0ffee1234; note: no")
	a.change("POST /api/gateway/projects/{name}/stories/{story_id}/merge", "/api/gateway/projects/alpha/stories/7_pay/merge", `{"branch":"story/7","head":"`+gatewaytest.StoryHead+`"}`, "story.merged", "alpha/7_pay", "story/7 at c0ffee1234; commit: beef5678be")
	a.change("POST /api/gateway/projects/{name}/stories", "/api/gateway/projects/alpha/stories", `{"name":"New"}`, "story.created", "alpha/8_new")
	a.change("POST /projects/{name}/stories", "/projects/alpha/stories", form("name", "New"), "story.created", "alpha/8_new")

	asked := 0
	question := func() string {
		asked++
		asked := a.change("POST /api/gateway/questions", "/api/gateway/questions", fmt.Sprintf(`{"kind":"text","prompt":"Which table? %d","project":"alpha","story_id":"7_pay"}`, asked),
			"question.asked", "alpha/7_pay", "Which table?")
		return field(t, asked.Text, "id")
	}
	a.change("POST /api/gateway/questions/{id}/answer", "/api/gateway/questions/"+question()+"/answer", `{"value":"carts"}`, "question.answered", "alpha/7_pay", "Which table?", "answer: carts")
	a.change("POST /questions/{id}/answer", "/questions/"+question()+"/answer", form("value", "orders"), "question.answered", "alpha/7_pay", "answer: orders")
	a.change("DELETE /api/gateway/questions/{id}", "/api/gateway/questions/"+question(), "", "question.withdrawn", "alpha/7_pay", "Which table?")

	const hook = `{"hook_event_name":"PermissionRequest","tool_name":"Bash","tool_input":{"command":"ls"}}`
	decided := make(chan gatewaytest.Answer, 1)
	go func() { decided <- a.Send("POST", "/api/hooks/claude-code", hook, "Authorization", "Bearer "+a.zoe) }()
	waittest.Until(t, "the hook asks", func() bool { return a.last().Action == "question.asked" })
	a.change("POST /api/gateway/questions/{id}/answer", "/api/gateway/questions/4/answer", `{"value":"deny"}`, "question.answered", "", "answer: deny")
	if got := <-decided; got.StatusCode != 200 || !strings.Contains(got.Text, `"deny"`) {
		t.Errorf("the hook: %d %s", got.StatusCode, got.Text)
	}
	a.tried["POST /api/hooks/claude-code"] = true

	waittest.Until(t, "beta is known to be unreachable", func() bool {
		return strings.Contains(a.Send("GET", "/api/gateway/attention", "", "Authorization", "Bearer "+a.zoe).Text, `"unreachable/beta"`)
	})
	a.change("POST /api/gateway/attention/acknowledge", "/api/gateway/attention/acknowledge", `{"key":"unreachable/beta","for":"4h"}`, "alert.acknowledged", "unreachable/beta", "until: ")
	if list := a.Send("GET", "/api/gateway/attention", "", "Authorization", "Bearer "+a.viewer).Text; !strings.Contains(list, `"by":"zoe"`) {
		t.Errorf("who acknowledged it is not said: %s", list)
	}
	a.change("POST /api/gateway/attention/reopen", "/api/gateway/attention/reopen", `{"key":"unreachable/beta"}`, "alert.reopened", "unreachable/beta", "by zoe")

	a.change("POST /attention/acknowledge", "/attention/acknowledge", form("key", "unreachable/beta", "for", ""), "alert.acknowledged", "unreachable/beta", "refused")
	a.change("POST /attention/reopen", "/attention/reopen", form("key", "unreachable/beta"), "alert.reopened", "unreachable/beta", "by zoe")

	id, secret := a.join("builder")
	a.change("POST /gateway/agents/{id}/assign", "/gateway/agents/"+id+"/assign", `{"project":"alpha"}`, "agent.assigned", "builder", "id: "+id, "none → alpha")
	before := a.last()
	issued := a.Send("POST", "/gateway/agents/"+id+"/token", "", "Authorization", "Bearer "+secret)
	a.wantEntry("POST /gateway/agents/{id}/token", before, issued, id, "agent", "", "token.created", "builder", "role: viewer; project: alpha")
	a.tried["POST /gateway/agents/{id}/token"] = true
	a.change("POST /agents/{id}/assign", "/agents/"+id+"/assign", form("project", ""), "agent.assigned", "builder", "alpha → none")
	a.change("POST /agents/{id}/label", "/agents/"+id+"/label", form("label", "packer"), "agent.labelled", "packer", "builder → packer")
	a.change("POST /agents/{id}/remove", "/agents/"+id+"/remove", form("x", ""), "agent.removed", "packer", "id: "+id)
	id, _ = a.join("second")
	a.change("DELETE /gateway/agents/{id}", "/gateway/agents/"+id, "", "agent.removed", "second")
	id, secret = a.join("third")
	before = a.last()
	left := a.Send("DELETE", "/gateway/agents/"+id, "", "Authorization", "Bearer "+secret)
	a.wantEntry("DELETE /gateway/agents/{id}", before, left, "third", "agent", "", "agent.removed", "third")

	token := a.change("POST /gateway/tokens", "/gateway/tokens", "", "join_token.created", anySubject)
	a.change("POST /agents", "/agents", "x=", "join_token.created", anySubject)
	unused, err := a.Agents.UnusedJoinTokens(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	hash := unused[0].Hash
	a.change("POST /agents/tokens/{hash}/revoke", "/agents/tokens/"+hash+"/revoke", "x=", "join_token.revoked", hash[:12])

	a.change("POST /api/gateway/bot-config", "/api/gateway/bot-config", `{"transport":"matrix","homeserver":"https://m.example","username":"bot","password":"canary-password"}`,
		"bot.configured", "matrix", "homeserver: none → https://m.example", "password: set")
	a.change("POST /api/gateway/bot-config", "/api/gateway/bot-config", `{"transport":"team","team_bot_token":"canary-bot-token"}`,
		"bot.configured", "team", "transport: matrix → team", "password: removed", "bot token: set")
	a.change("POST /api/gateway/bot/test", "/api/gateway/bot/test", "", "bot.tested", "matrix")
	a.change("POST /tell", "/tell", form("next", "/", "story", "/projects/alpha/stories/7_pay", "word", "look"), "bot.told", "alpha/7_pay", "word: look", "rooms: #yard")

	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer receiver.Close()
	target := field(t, a.change("POST /api/gateway/targets", "/api/gateway/targets", `{"name":"hook","url":"`+receiver.URL+`/canary-path","events":["story_blocked"]}`,
		"target.created", "hook", "url: "+receiver.URL+"/…", "story_blocked").Text, "id")
	hooks := "/api/gateway/targets/" + target
	a.change("PUT /api/gateway/targets/{id}", hooks, `{"name":"hooked","url":"`+receiver.URL+`/canary-other"}`, "target.changed", "hooked", "name: hook → hooked", "address: changed", "rules: ")
	a.change("POST /api/gateway/targets/{id}/test", hooks+"/test", "", "target.tested", "hooked", target)
	rotated := a.change("POST /api/gateway/targets/{id}/secret", hooks+"/secret", "", "target.secret_changed", "hooked", "the former secret signs")
	a.change("POST /api/gateway/targets/{id}/resend", hooks+"/resend", "", "target.resent", "hooked", target)
	pushed := `{"name":"phone","endpoint":"https://push.example/canary-push","keys":{"p256dh":"BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4","auth":"BTBZMqHH6r4Tts7J_aSIgg"}}`
	by := func(method, pattern, path, body, media, action string) string {
		before := a.last()
		got := a.Send(method, path, body, "Authorization", "Bearer "+a.zoe, "Content-Type", media)
		a.wantEntry(method+" "+pattern, before, got, "zoe", "token", "admin", action, "phone", "url: webpush://push.example/")
		a.tried[method+" "+pattern] = true
		return got.Text
	}
	device := field(t, by("POST", "/api/gateway/push", "/api/gateway/push", pushed, "application/json", "target.created"), "id")
	by("DELETE", "/api/gateway/push/{id}", "/api/gateway/push/"+device, "", "", "target.removed")
	device = field(t, by("POST", "/api/gateway/push", "/api/gateway/push", pushed, "application/json", "target.created"), "id")
	by("POST", "/notifications/devices/{id}/remove", "/notifications/devices/"+device+"/remove", "x=", asForm, "target.removed")
	rules := []string{"digest", "none", "digest_at", "08:00", "time_zone", "UTC"}
	a.change("POST /notifications", "/notifications", form(append(rules, "name", "mail", "url", "mailto:a@example.net")...), "target.created", "mail", "url: mailto:a@example.net")
	a.change("POST /notifications/test", "/notifications/test", form("name", "first", "url", receiver.URL+"/canary-first"), "target.tested", "first", "url: "+receiver.URL+"/…")
	a.change("POST /notifications/{id}", "/notifications/"+target, form(append(rules, "name", "hook again")...), "target.changed", "hook again", "name: hooked → hook again")
	a.change("POST /notifications/{id}/{do}", "/notifications/"+target+"/off", "x=", "target.changed", "hook again", "rules: ")
	a.change("DELETE /api/gateway/targets/{id}", hooks, "", "target.removed", "hook again", target)

	a.change("POST /sign-in", "/sign-in", form("callback", a.callback()), "sign_in.completed", "identity provider")
	a.change("POST /sign-out", "/sign-out", "x=", "sign_in.removed", "identity provider")
	a.change("POST /oauth/sign-out", "/oauth/sign-out", "", "sign_in.removed", "identity provider")
	before = a.last()
	back := a.Send("GET", a.callback(), "")
	a.wantEntry("GET /callback", before, back, "unknown", "callback", "", "sign_in.completed", "identity provider")

	given := a.change("POST /api/gateway/tokens", "/api/gateway/tokens", `{"name":"ci","role":"operator","expires_in":"1h"}`, "token.created", "ci", "role: operator", "expires: ")
	ci := field(t, given.Text, "token")
	before = a.last()
	login := a.Send("POST", "/login", form("token", ci), "Content-Type", asForm)
	a.wantEntry("POST /login", before, login, "ci", "token", "operator", "session.began", "ci", "role: operator")
	a.change("DELETE /api/gateway/sessions/{id}", "/api/gateway/sessions/"+a.Access.Sessions()[0].ID, "", "session.ended", "ci")
	login = a.Send("POST", "/login", form("token", ci), "Content-Type", asForm)
	cookie, _, _ := strings.Cut(login.Header.Get("Set-Cookie"), ";")
	before = a.last()
	a.wantEntry("POST /logout", before, a.Send("POST", "/logout", "", "Cookie", cookie), "ci", "token", "operator", "session.ended", "ci")
	made := a.change("POST /access", "/access", form("name", "cd", "role", "viewer", "expires_in", "24h"), "token.created", "cd", "role: viewer", "expires: ")
	if !strings.Contains(made.Text, "swk_") || made.Header.Get("Cache-Control") != "no-store" {
		t.Error("the page does not show the token, or is kept")
	}
	a.Send("POST", "/login", form("token", ci), "Content-Type", asForm)
	a.change("POST /access/sessions/{id}/end", "/access/sessions/"+a.Access.Sessions()[0].ID+"/end", "x=", "session.ended", "ci")
	a.Send("POST", "/login", form("token", ci), "Content-Type", asForm)
	a.change("POST /access/sessions/end-others", "/access/sessions/end-others", "x=", "session.ended", "ci")
	for _, token := range a.Access.Tokens() {
		if token.Name == "cd" {
			a.change("POST /access/tokens/{id}/revoke", "/access/tokens/"+token.ID+"/revoke", "x=", "token.revoked", "cd")
		}
	}
	a.change("DELETE /api/gateway/tokens/{id}", "/api/gateway/tokens/"+field(t, given.Text, "id"), "", "token.revoked", "ci", "role: operator")
	a.tried["POST /login"], a.tried["POST /logout"] = true, true

	a.change("DELETE /api/gateway/projects/{name}", "/api/gateway/projects/beta", "", "project.removed", "beta", "it was the active one")
	removed := a.change("POST /projects/{name}/remove", "/projects/alpha/remove", "x=", "project.removed", "alpha", alpha)
	cookie, _, _ = strings.Cut(removed.Header.Get("Set-Cookie"), ";")
	undo := regexp.MustCompile(`name="removal" value="([^"]*)"`).FindStringSubmatch(
		a.Send("GET", "/projects", "", "Authorization", "Bearer "+a.zoe, "Cookie", cookie).Text)
	if undo == nil {
		t.Fatal("the removal cannot be undone")
	}
	a.change("POST /restore-project", "/restore-project", form("removal", undo[1]), "project.restored", "alpha", alpha)

	eachRoute(t, a.HTTP, func(method, pattern string) {
		route := method + " " + pattern
		if method != "GET" && method != "HEAD" && !changesNothing[route] && !a.tried[route] {
			t.Errorf("%s: what does it leave in the audit?", route)
		}
	})

	all, _ := a.entries("?limit=200")
	text, _ := json.Marshal(all)
	for _, secret := range []string{"canary", field(t, rotated.Text, "secret"), "correct-horse", a.zoe, a.viewer, secret, ci, field(t, token.Text, "token"), signintest.AccessToken} {
		if strings.Contains(string(text), secret) || strings.Contains(a.log.String(), secret) {
			t.Errorf("the audit or the log has the secret %q", secret)
		}
	}
}

// TestWhatFailsIsNoEntry: a refused request, whatever the reason, changed nothing.
func TestWhatFailsIsNoEntry(t *testing.T) {
	a := newAudited(t)
	a.Add("alpha", gatewaytest.ProjectServer(t, gatewaytest.Says(gatewaytest.BoardText)))
	before := a.last()
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "/api/gateway/projects", `{"name":"alpha","url":"http://127.0.0.1:1"}`, 409},
		{"POST", "/api/gateway/projects", `{"name":"beta","url":"no address"}`, 400},
		{"PUT", "/api/gateway/projects/none", `{"url":"http://127.0.0.1:1"}`, 404},
		{"DELETE", "/api/gateway/projects/none", "", 404},
		{"POST", "/api/gateway/switch", `{"project":"none"}`, 400},
		{"PATCH", "/api/gateway/projects/alpha/stories/none", `{"version":"v1"}`, 404},
		{"POST", "/api/gateway/projects/none/stories", `{"name":"x"}`, 404},
		{"POST", "/api/gateway/attention/acknowledge", `{"key":"none"}`, 404},
		{"POST", "/api/gateway/attention/reopen", `{"key":"none"}`, 404},
		{"POST", "/gateway/agents", `{"token":"swj_none"}`, 401},
		{"POST", "/gateway/agents/none/assign", `{"project":"alpha"}`, 404},
		{"DELETE", "/gateway/agents/none", "", 404},
		{"POST", "/api/gateway/bot-config", `{"transport":"pigeon"}`, 400},
		{"POST", "/api/gateway/tokens", `{"name":"","role":"viewer"}`, 400},
		{"DELETE", "/api/gateway/tokens/none", "", 404},
		{"DELETE", "/api/gateway/sessions/none", "", 404},
	} {
		if got := a.Send(c.method, c.path, c.body, "Authorization", "Bearer "+a.zoe); got.StatusCode != c.status {
			t.Errorf("%s %s: %d %s, want %d", c.method, c.path, got.StatusCode, got.Text, c.status)
		}
		if after := a.last(); after.ID != before.ID {
			t.Errorf("%s %s left %+v", c.method, c.path, after)
			before = after
		}
	}
}

func TestTheAuditIsReadInPages(t *testing.T) {
	a := newAudited(t)
	for i := range 7 {
		a.Add(fmt.Sprint("p", i), "http://127.0.0.1:1")
	}
	var subjects []string
	next := int64(0)
	for pages := 0; ; pages++ {
		query := "?limit=3&before="
		if pages > 0 {
			query += fmt.Sprint(next)
		}
		entries, position := a.entries(query)
		if len(entries) == 0 {
			if position != next {
				t.Errorf("the end of the audit is at %d, want %d", position, next)
			}
			break
		}
		if len(entries) > 3 || position != entries[len(entries)-1].ID {
			t.Errorf("page %d: %d entries, next %d", pages, len(entries), position)
		}
		for _, e := range entries {
			subjects = append(subjects, e.Subject)
		}
		next = position
	}
	if got := strings.Join(subjects, " "); got != "p6 p5 p4 p3 p2 p1 p0 guest zoe" {
		t.Errorf("the newest first: %s", got)
	}
	for _, query := range []string{"?limit=0", "?limit=201", "?limit=x", "?before=x", "?before=-1", "?limit="} {
		if got := a.Send("GET", "/api/gateway/audit"+query, "", "Authorization", "Bearer "+a.zoe); got.StatusCode != 400 {
			t.Errorf("%s: %d, want 400", query, got.StatusCode)
		}
	}
}
