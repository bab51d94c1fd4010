package handlers_test

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"switchyard/handlers"
	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/service"
	"switchyard/internal/waittest"
)

func loadOpenAPI(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(handlers.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestOpenAPIHasEveryRoute(t *testing.T) {
	g := gatewaytest.NewWholeSite(t, service.Options{}, "").HTTP
	documented := map[string]bool{}
	for path, item := range loadOpenAPI(t).Paths.Map() {
		for method := range item.Operations() {
			documented[method+" "+path] = true
		}
	}
	eachRoute(t, g, func(method, pattern string) {
		described := false
		for _, below := range []string{"/api/", "/gateway/", "/oauth/", "/mcp"} {
			described = described || strings.HasPrefix(pattern, below)
		}
		route := method + " " + pattern
		if described && method != "HEAD" && !documented[route] {
			t.Errorf("%s is not in openapi.json", route)
		}
		delete(documented, route)
	})
	for route := range documented {
		t.Errorf("openapi.json has %s, which is not a route", route)
	}
}

// exchange is a request whose answer is checked against the document, and its expected status.
type exchange struct {
	method, pattern string // the path as in the document
	path            string
	body            string
	headers         []string
	status          int
}

func TestAnswersAreAsOpenAPISays(t *testing.T) {
	doc := loadOpenAPI(t)
	for _, media := range []string{"text/html", "text/event-stream"} {
		openapi3filter.RegisterBodyDecoder(media, openapi3filter.PlainBodyDecoder)
	}
	s := gatewaytest.NewWholeSite(t, service.Options{}, "")
	alpha := gatewaytest.StoryServer(t)
	checked := map[string]bool{}
	var mu sync.Mutex // of checked: one call is held
	check := func(e exchange) string {
		t.Helper()
		if e.path == "" {
			e.path = e.pattern
		}
		request, err := http.NewRequest(e.method, s.URL+e.path, strings.NewReader(e.body))
		if err != nil {
			t.Fatal(err)
		}
		if e.body != "" {
			request.Header.Set("Content-Type", "application/json")
		}
		for i := 0; i < len(e.headers); i += 2 {
			request.Header.Set(e.headers[i], e.headers[i+1])
		}
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		data := ""
		if response.Header.Get("Content-Type") != "text/event-stream" { // which never ends
			all, err := io.ReadAll(response.Body)
			if err != nil {
				t.Fatal(err)
			}
			data = string(all)
		}
		name := e.method + " " + e.path
		if response.StatusCode != e.status {
			t.Errorf("%s: status %d, want %d: %s", name, response.StatusCode, e.status, data)
			return data
		}
		item := doc.Paths.Value(e.pattern)
		if item == nil || item.GetOperation(e.method) == nil {
			t.Errorf("%s is not in the document", name)
			return data
		}
		operation := item.GetOperation(e.method)
		mu.Lock()
		checked[operation.OperationID] = checked[operation.OperationID] || e.status < 400
		mu.Unlock()
		if err := isAsDocumented(doc, e.pattern, request, response, data); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return data
	}
	get := func(pattern, query string, status int) {
		t.Helper()
		check(exchange{method: "GET", pattern: pattern, path: pattern + query, status: status})
	}
	post := func(pattern, body string, status int) string {
		t.Helper()
		return check(exchange{method: "POST", pattern: pattern, body: body, status: status})
	}

	get("/gateway/mode", "", 200)
	get("/api/openapi.json", "", 200)
	get("/api/gateway", "", 200)
	get("/api/gateway/projects", "", 200)
	post("/api/gateway/projects", `{"name":"alpha","url":"`+alpha+`"}`, 200)
	post("/api/gateway/projects", `{"name":"gone","url":"http://127.0.0.1:1"}`, 200)
	post("/api/gateway/projects", `{"name":"gone","url":"http://127.0.0.1:1"}`, 409)
	post("/api/gateway/projects", `{"name":""}`, 400)
	check(exchange{method: "POST", pattern: "/api/gateway/projects", body: "{}", headers: []string{"Content-Type", "text/plain"}, status: 415})
	post("/api/gateway/projects", `{"name":"`+strings.Repeat("x", 1<<20)+`"}`, 413)
	post("/api/gateway/switch", `{"project":"alpha"}`, 200)
	post("/api/gateway/switch", `{"project":"nowhere"}`, 400)
	post("/api/gateway/switch", strings.Repeat(" ", 1<<20)+"{}", 413)
	check(exchange{method: "POST", pattern: "/api/gateway/switch", body: "{}", headers: []string{"Content-Type", "text/plain"}, status: 415})
	check(exchange{method: "POST", pattern: "/api/gateway/switch", body: "{}", headers: []string{"Sec-Fetch-Site", "cross-site"}, status: 403})
	get("/api/gateway", "", 200)
	named := func(method, name, body string, status int) {
		t.Helper()
		check(exchange{method: method, pattern: "/api/gateway/projects/{name}", path: "/api/gateway/projects/" + name, body: body, status: status})
	}
	named("PUT", "alpha", `{"url":"`+alpha+`"}`, 200)
	named("PUT", "alpha", `{"url":7}`, 400)
	named("PUT", "nowhere", `{"url":"`+alpha+`"}`, 404)
	get("/api/gateway/pipeline", "", 200)
	story := func(method, project, id, body string, status int) {
		t.Helper()
		pattern, path := "/api/gateway/projects/{name}/stories", "/api/gateway/projects/"+project+"/stories"
		if id != "" {
			pattern, path = pattern+"/{story_id}", path+"/"+id
		}
		check(exchange{method: method, pattern: pattern, path: path, body: body, status: status})
	}
	story("GET", "alpha", "7_pay", "", 200)
	story("GET", "gone", "7_pay", "", 404)
	story("PATCH", "alpha", "7_pay", `{"version":"v1","stage":"3_qa"}`, 200)
	story("PATCH", "alpha", "7_pay", `{"version":"v0"}`, 409)
	story("PATCH", "gone", "7_pay", `{"version":"v1"}`, 502)
	story("POST", "alpha", "", `{"name":"New"}`, 201)
	story("POST", "alpha", "", `[]`, 400)
	claim := func(project, body string, status int) {
		t.Helper()
		check(exchange{method: "POST", pattern: "/api/gateway/projects/{name}/stories/claim", path: "/api/gateway/projects/" + project + "/stories/claim", body: body, status: status})
	}
	openapi3filter.RegisterBodyDecoder("image/png", openapi3filter.FileBodyDecoder)
	picture := func(path string, status int) {
		t.Helper()
		const pattern = "/api/gateway/projects/{name}/stories/{story_id}/picture"
		check(exchange{method: "GET", pattern: pattern, path: "/api/gateway/projects/alpha/stories/7_pay/picture?path=" + path, status: status})
	}
	picture("form.png", 200)
	picture("other.png", 404)
	changes := func(query string, status int) {
		t.Helper()
		const pattern = "/api/gateway/projects/{name}/stories/{story_id}/changes"
		check(exchange{method: "GET", pattern: pattern, path: "/api/gateway/projects/alpha/stories/7_pay/changes" + query, status: status})
	}
	changes("?branch=story%2F7", 200)
	changes("?branch=other", 404)
	review := func(body string, status int) {
		t.Helper()
		const pattern = "/api/gateway/projects/{name}/stories/{story_id}/review"
		check(exchange{method: "POST", pattern: pattern, path: "/api/gateway/projects/alpha/stories/7_pay/review", body: body, status: status})
	}
	review(`{"verdict":"approved","head":"`+gatewaytest.StoryHead+`"}`, 200)
	review(`{"verdict":"approved","head":"a"}`, 409)
	review(`{"verdict":"sent_back","head":"a"}`, 400)
	merge := func(body string, status int) {
		t.Helper()
		const pattern = "/api/gateway/projects/{name}/stories/{story_id}/merge"
		check(exchange{method: "POST", pattern: pattern, path: "/api/gateway/projects/alpha/stories/7_pay/merge", body: body, status: status})
	}
	merge(`{"branch":"story/7","head":"`+gatewaytest.StoryHead+`"}`, 200)
	merge(`{"branch":"story/7","head":"a"}`, 409)
	merge(`{"branch":"","head":"a"}`, 400)
	claim("alpha", `{"story_id":"7_pay"}`, 200)
	claim("alpha", "", 204)
	claim("alpha", `{"from":"x"}`, 400)
	claim("nowhere", `{}`, 404)
	claim("gone", `{}`, 502)
	get("/api/gateway/pipeline", "", 200)
	check(exchange{method: "DELETE", pattern: "/api/gateway/projects/{name}/stories/{story_id}/claim", path: "/api/gateway/projects/alpha/stories/7_pay/claim", status: 204})
	get("/api/gateway/search", "?q=pay", 200)
	get("/api/gateway/search", "?q=", 400)
	recordOf(s, "alpha", domain.NewFeedGap(3, time.UnixMilli(1_700_000_000_000)))
	recordOf(s, "alpha", domain.Record{At: time.UnixMilli(5), JSON: []byte(`{"type":7,"story_id":[],"timestamp_ms":5}`)})
	waittest.Until(t, "gone is known to be unreachable", func() bool {
		return strings.Contains(s.Send("GET", "/api/gateway/attention", "").Text, `"unreachable/gone"`)
	})
	post("/api/gateway/attention/acknowledge", `{"key":"unreachable/gone","for":"4h"}`, 200)
	post("/api/gateway/attention/acknowledge", `{"key":"none"}`, 404)
	get("/api/gateway/attention", "", 200)
	get("/api/gateway/flow", "", 200)
	asked := field(t, post("/api/gateway/questions", `{"kind":"choice","prompt":"Which?","options":["a","b"],"project":"alpha"}`, 201), "id")
	post("/api/gateway/questions", `{"kind":"other","prompt":"x"}`, 400)
	get("/api/gateway/questions", "?state=all", 200)
	s.Sessions.Receive(t.Context(), domain.HookEvent{Name: "PreToolUse", Session: "s", Host: "h", Worktree: "/w", Branch: "b", Tool: "Bash"})
	get("/api/gateway/agent-sessions", "", 200)
	one := func(method, call, body string, status int) {
		t.Helper()
		check(exchange{method: method, pattern: "/api/gateway/questions/{id}" + call, path: "/api/gateway/questions/" + asked + call, body: body, status: status})
	}
	one("GET", "", "", 200)
	one("POST", "/answer", `{"value":"c"}`, 400)
	one("POST", "/answer", `{"value":"a","text":"since"}`, 200)
	one("POST", "/answer", `{"value":"b"}`, 409)
	one("GET", "", "", 200)
	asked = field(t, post("/api/gateway/questions", `{"kind":"text","prompt":"Why?"}`, 201), "id")
	one("DELETE", "", "", 204)
	one("DELETE", "", "", 409)
	held := make(chan string)
	go func() {
		held <- check(exchange{method: "POST", pattern: "/api/hooks/claude-code", body: `{"hook_event_name":"PermissionRequest","tool_name":"Bash","tool_input":{}}`, status: 200})
	}()
	waittest.Until(t, "the hook asks", func() bool { return s.Questions.Open() > 0 })
	asked = strconv.FormatInt(s.Questions.Recent()[len(s.Questions.Recent())-1].ID, 10)
	one("GET", "", "", 200)
	one("POST", "/answer", `{"value":"allow"}`, 200)
	<-held
	post("/api/gateway/attention/reopen", `{"key":"unreachable/gone"}`, 200)
	post("/api/gateway/attention/reopen", `{}`, 400)
	get("/api/events", "?since=0", 200)
	get("/api/events", "?since=x", 400)
	get("/api/gateway/events", "", 200)
	get("/api/gateway/events", "?before=&limit=1", 200)
	get("/api/gateway/events", "?after=x", 400)
	get("/api/gateway/events/stream", "", 200)
	get("/api/gateway/events/stream", "?after=-1", 400)

	token := field(t, post("/gateway/tokens", "", 200), "token")
	joined := post("/gateway/agents", `{"token":"`+token+`","label":"builder"}`, 201)
	post("/gateway/agents", `{"token":"`+token+`"}`, 401)
	post("/gateway/agents", `{"token":7}`, 400)
	get("/gateway/agents", "", 200)
	var agent struct {
		Agent  struct{ ID string }
		Secret string
	}
	gatewaytest.Answer{Text: joined}.Decode(t, &agent)
	bearer := []string{"Authorization", "Bearer " + agent.Secret}
	of := func(method, call, body string, headers []string, status int) {
		t.Helper()
		check(exchange{method: method, pattern: "/gateway/agents/{id}" + call, path: "/gateway/agents/" + agent.Agent.ID + call, body: body, headers: headers, status: status})
	}
	of("POST", "/heartbeat", `{"state":"running"}`, bearer, 200)
	of("POST", "/heartbeat", `{"state":"asleep"}`, bearer, 400)
	of("POST", "/heartbeat", `{}`, nil, 401)
	of("POST", "/token", "", bearer, 409)
	of("POST", "/assign", `{"project":"alpha"}`, nil, 200)
	of("POST", "/token", "", bearer, 201)
	of("POST", "/token", "", nil, 401)
	of("POST", "/assign", `{"project":"nowhere"}`, nil, 400)
	of("DELETE", "", "", bearer, 204)
	of("DELETE", "", "", nil, 404)
	of("POST", "/assign", `{}`, nil, 404)

	get("/api/gateway/bot-config", "", 200)
	post("/api/gateway/bot-config", `{"transport":"matrix","homeserver":"https://m.example"}`, 200)
	post("/api/gateway/bot-config", `{"transport":"pigeon"}`, 400)
	get("/api/gateway/bot-config", "", 200)
	get("/api/gateway/bot", "", 200)
	post("/api/gateway/bot/test", "", 200)

	made := post("/api/gateway/targets", `{"name":"hook","url":"https://hooks.example/x","events":["story_blocked"],"quiet":{"from":"22:00","to":"07:00"}}`, 201)
	post("/api/gateway/targets", `{"name":"hook","url":"sms://1"}`, 400)
	get("/api/gateway/targets", "", 200)
	get("/api/gateway/push", "", 200)
	pushed := `{"endpoint":"https://push.example/x","keys":{"p256dh":"BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4","auth":"BTBZMqHH6r4Tts7J_aSIgg"},"alerts":["question"]}`
	device := post("/api/gateway/push", pushed, 201)
	post("/api/gateway/push", `{"endpoint":"x","keys":{}}`, 400)
	check(exchange{method: "DELETE", pattern: "/api/gateway/push/{id}", path: "/api/gateway/push/" + field(t, device, "id"), status: 204})
	check(exchange{method: "DELETE", pattern: "/api/gateway/push/{id}", path: "/api/gateway/push/none", status: 404})
	target := func(method, call, body string, status int) {
		t.Helper()
		check(exchange{method: method, pattern: "/api/gateway/targets/{id}" + call, path: "/api/gateway/targets/" + field(t, made, "id") + call, body: body, status: status})
	}
	target("PUT", "", `{"name":"hook","projects":["alpha"]}`, 200)
	target("PUT", "", `{"name":"hook","alerts":["boredom"]}`, 400)
	target("POST", "/test", "", 502)
	target("POST", "/secret", "", 200)
	target("POST", "/resend", "", 200)
	check(exchange{method: "GET", pattern: "/api/gateway/targets/{id}/deliveries", path: "/api/gateway/targets/" + field(t, made, "id") + "/deliveries?limit=1", status: 200})
	target("DELETE", "", "", 204)
	target("DELETE", "", "", 404)
	target("POST", "/test", "", 404)
	checked["testTarget"] = true // success needs a receiver; the tests of targets cover it

	given := post("/api/gateway/tokens", `{"name":"ci","role":"operator","expires_in":"1h"}`, 201)
	post("/api/gateway/tokens", `{"name":"ci","role":"root"}`, 400)
	get("/api/gateway/tokens", "", 200)
	check(exchange{method: "DELETE", pattern: "/api/gateway/tokens/{id}", path: "/api/gateway/tokens/" + field(t, given, "id"), status: 204})
	check(exchange{method: "DELETE", pattern: "/api/gateway/tokens/{id}", path: "/api/gateway/tokens/none", status: 404})
	session, err := s.Access.BeginSession(t.Context(), domain.Administrator(domain.ViaAdminToken), "", "")
	if err != nil {
		t.Fatal(err)
	}
	get("/api/gateway/sessions", "", 200)
	get("/api/gateway/audit", "", 200)
	get("/api/gateway/audit", "?before=2&limit=1", 200)
	get("/api/gateway/audit", "?limit=0", 400)
	check(exchange{method: "DELETE", pattern: "/api/gateway/sessions/{id}", path: "/api/gateway/sessions/" + session.ID, status: 204})
	check(exchange{method: "DELETE", pattern: "/api/gateway/sessions/{id}", path: "/api/gateway/sessions/none", status: 404})

	accept := []string{"Accept", "application/json, text/event-stream"}
	check(exchange{method: "POST", pattern: "/mcp", body: `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, headers: accept, status: 200})
	check(exchange{method: "POST", pattern: "/mcp", body: "[", headers: append(accept, "Content-Type", "text/plain"), status: 415})

	for _, path := range []string{"/v1/logs", "/v1/metrics", "/v1/traces"} {
		post(path, "{}", 200)
	}
	post("/v1/logs", "[]", 400)
	const usage = `{"id":"1","client":"mine","model":"m","usd":0.5,"project":"alpha","story_id":"x"}`
	post("/api/gateway/usage", usage, 201)
	post("/api/gateway/usage", usage, 200)
	post("/api/gateway/usage", "{}", 400)
	get("/api/gateway/cost", "", 200)
	get("/api/gateway/cost", "?days=181", 400)
	get("/api/gateway/cost", "?project=nowhere", 404)

	get("/oauth/authorize", "", 307)
	get("/oauth/callback", "?code=a&state=b", 400)
	get("/oauth/status", "", 200)
	post("/oauth/sign-out", "", 200)
	checked["callback"] = true // success needs a provider; the sign-in's own tests cover it

	named("DELETE", "alpha", "", 204)
	named("DELETE", "alpha", "", 404)
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			if !checked[operation.OperationID] {
				t.Errorf("no good answer of %s %s was checked", method, path)
			}
		}
	}
}

// isAsDocumented returns an error unless the answer is as the document says.
func isAsDocumented(doc *openapi3.T, pattern string, request *http.Request, response *http.Response, body string) error {
	item := doc.Paths.Value(pattern)
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{
			Request: request,
			Route: &routers.Route{
				Spec: doc, Path: pattern, PathItem: item, Method: request.Method, Operation: item.GetOperation(request.Method),
			},
		},
		Status: response.StatusCode, Header: response.Header, Options: &openapi3filter.Options{IncludeResponseStatus: true},
	}
	input.SetBodyBytes([]byte(body))
	return openapi3filter.ValidateResponse(context.Background(), input)
}

// TestRefusalsAreAsOpenAPISays: of callers without a token, with a wrong one, with too many wrong ones, and with too low a role.
func TestRefusalsAreAsOpenAPISays(t *testing.T) {
	doc := loadOpenAPI(t)
	openapi3filter.RegisterBodyDecoder("text/html", openapi3filter.PlainBodyDecoder)
	s := gatewaytest.NewWholeSite(t, service.Options{}, "correct-horse")
	_, viewer := gatewaytest.NamedToken(t, s.Service, "viewer", domain.RoleViewer)
	refusals := 0
	ask := func(token string) {
		for path, item := range doc.Paths.Map() {
			for method := range item.Operations() {
				request, err := http.NewRequest(method, s.URL+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				if token != "" {
					request.Header.Set("Authorization", "Bearer "+token)
				}
				response, err := http.DefaultTransport.RoundTrip(request)
				if err != nil {
					t.Fatal(err)
				}
				if response.StatusCode < 400 {
					response.Body.Close()
					continue
				}
				refusals++
				body, err := io.ReadAll(response.Body)
				response.Body.Close()
				if err == nil {
					err = isAsDocumented(doc, path, request, response, string(body))
				}
				if err != nil {
					t.Errorf("%s %s with the token %q: %v", method, path, token, err)
				}
			}
		}
	}
	ask("")
	ask(viewer)
	ask("wrong") // the first 20 are 401
	ask("wrong") // all are 429
	if refusals < 100 {
		t.Errorf("%d refusals", refusals)
	}
}

// record stores one record of a project.
func recordOf(s *gatewaytest.Site, project string, record domain.Record) {
	s.Helper()
	read := domain.FeedRead{Cursor: domain.FeedCursor{Project: project}, ReceivedAt: time.Now(), Records: []domain.Record{record}}
	if err := s.Events.Record(s.Context(), read); err != nil {
		s.Fatal(err)
	}
}

// field is a string in a JSON object.
func field(t *testing.T, text, name string) string {
	t.Helper()
	var fields map[string]any
	gatewaytest.Answer{Text: text}.Decode(t, &fields)
	value, _ := fields[name].(string)
	return value
}
