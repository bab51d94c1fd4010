package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/waittest"
	"switchyard/internal/wire"
)

type questionReply struct {
	ID, Kind, Prompt, State string
	Project, Detail         *string
	StoryID                 *string `json:"story_id"`
	Options                 []string
	AskedBy                 string `json:"asked_by"`
	Tool                    *struct {
		Name  string
		Input json.RawMessage
		CWD   *string
	}
	Answer *struct{ Value, By, Via string }
}

// asker sends requests with a token.
func asker(s *gatewaytest.Site, token string) func(method, path, body string) (gatewaytest.Answer, questionReply) {
	return func(method, path, body string) (gatewaytest.Answer, questionReply) {
		a := s.Do(method, path, body, "Authorization", "Bearer "+token, "Content-Type", "application/json")
		var q questionReply
		_ = json.Unmarshal([]byte(a.Text), &q)
		return a, q
	}
}

func TestPeopleAnswerQuestions(t *testing.T) {
	s := newTokenSite(t)
	s.assign("alpha")
	agent := asker(s.Site, s.issue("alpha"))
	_, operatorToken := gatewaytest.NamedToken(t, s.Service, "mara", domain.RoleOperator)
	_, viewerToken := gatewaytest.NamedToken(t, s.Service, "jo", domain.RoleViewer)
	operator, viewer := asker(s.Site, operatorToken), asker(s.Site, viewerToken)

	const address = "/api/gateway/questions"
	asked, q := agent("POST", address, `{"kind":"choice","prompt":"Which table?","story_id":"7_pay","options":["carts","orders"]}`)
	asked.WantStatus(t, http.StatusCreated)
	if q.ID == "" || q.State != "open" || *q.Project != "alpha" || *q.StoryID != "7_pay" || q.AskedBy != "builder" || q.Tool != nil || q.Answer != nil {
		t.Fatalf("asked: %s", asked.Text)
	}
	for body, want := range map[string]int{
		`{"kind":"choice","prompt":"x","project":"beta","options":["a","b"]}`: 403, `{"kind":"choice","prompt":"x","options":["a"]}`: 400,
		`{"kind":"text","prompt":""}`: 400, `{"kind":"other","prompt":"x"}`: 400, `{"kind":"text","prompt":"x","options":["a","b"]}`: 400,
		`{"kind":"text","prompt":"` + strings.Repeat("ä", 4001) + `"}`: 400, `{"kind":"text","prompt":"x","detail":"` + strings.Repeat("d", 65537) + `"}`: 400,
		`{"kind":"text","prompt":"x","expires_in":"25h"}`: 400, `{"kind":"text","prompt":"x","expires_in":"0s"}`: 400, `{"kind":"text","prompt":"x","expires_in":"soon"}`: 400,
		`{"kind":"choice","prompt":"x","options":["a","a"]}`: 400, `{"kind":"choice","prompt":"x","options":"ab"}`: 400, `{"prompt":"x"}`: 400,
		`{"kind":"choice","prompt":"x","options":["1","2","3","4","5","6","7","8","9","10"]}`: 400,
	} {
		a, _ := agent("POST", address, body)
		if a.StatusCode != want {
			t.Errorf("%.80s: %d, want %d: %s", body, a.StatusCode, want, a.Text)
		}
	}
	if a, _ := viewer("POST", address, `{"kind":"text","prompt":"x"}`); a.StatusCode != 403 {
		t.Errorf("a viewer asks: %d", a.StatusCode)
	}
	if a, _ := operator("POST", address, `{"kind":"text","prompt":"x","project":"none"}`); a.StatusCode != 404 {
		t.Errorf("an unknown project: %d", a.StatusCode)
	}
	list, _ := viewer("GET", address, "")
	if list.WantStatus(t, 200); !strings.Contains(list.Text, `"id":"`+q.ID+`"`) {
		t.Errorf("open: %s", list.Text)
	}
	attention, _ := viewer("GET", "/api/gateway/attention", "")
	if !strings.Contains(attention.Text, `"kind":"question"`) || !strings.Contains(attention.Text, "Which table?") {
		t.Errorf("attention: %s", attention.Text)
	}

	// One waits for the answer; of many at once the first wins.
	waited := make(chan questionReply)
	go func() {
		_, q := agent("GET", address+"/"+q.ID+"?wait=50s", "")
		waited <- q
	}()
	for _, value := range []string{"", "tables", "allow"} {
		if a, _ := operator("POST", address+"/"+q.ID+"/answer", fmt.Sprintf(`{"value":%q}`, value)); a.StatusCode != 400 {
			t.Errorf("answering %q: %d", value, a.StatusCode)
		}
	}
	a, _ := operator("POST", address+"/"+q.ID+"/answer", `{"value":"orders","text":"`+strings.Repeat("ä", domain.MaxAnswer+1)+`"}`)
	a.WantStatus(t, http.StatusBadRequest).WantText(t, "text: must be at most 16000 characters")
	if a, _ := agent("POST", address+"/"+q.ID+"/answer", `{"value":"carts"}`); a.StatusCode != 403 {
		t.Errorf("the agent answers itself: %d", a.StatusCode)
	}
	var mu sync.Mutex
	statuses := []int{}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			a, _ := operator("POST", address+"/"+q.ID+"/answer", `{"value":"orders","text":"the new one"}`)
			mu.Lock()
			defer mu.Unlock()
			if statuses = append(statuses, a.StatusCode); a.StatusCode == 409 && (!strings.Contains(a.Text, "orders") || !strings.Contains(a.Text, "mara")) {
				t.Errorf("a late answer: %s", a.Text)
			}
		})
	}
	all.Wait()
	slices.Sort(statuses)
	if fmt.Sprint(statuses) != "[200 409 409 409 409 409 409 409]" {
		t.Errorf("answers: %v", statuses)
	}
	if a, _ := operator("POST", address+"/"+q.ID+"/answer", `{"value":"tables"}`); a.StatusCode != 409 || !strings.Contains(a.Text, "mara") {
		t.Errorf("a late answer that is none of the options: %d %s", a.StatusCode, a.Text)
	}
	if got := <-waited; got.State != "answered" || got.Answer == nil || got.Answer.Value != "orders" || got.Answer.By != "mara" || got.Answer.Via != "api" {
		t.Errorf("waited for %+v", got)
	}

	_, own := operator("POST", address, `{"kind":"text","prompt":"Where is the key?","project":"beta"}`)
	if a, _ := agent("DELETE", address+"/"+own.ID, ""); a.StatusCode != 403 {
		t.Errorf("an agent withdraws another's: %d", a.StatusCode)
	}
	if a, _ := operator("DELETE", address+"/"+own.ID, ""); a.StatusCode != 204 {
		t.Errorf("withdrawing: %d", a.StatusCode)
	}
	if a, _ := operator("DELETE", address+"/"+own.ID, ""); a.StatusCode != 409 {
		t.Errorf("withdrawing again: %d", a.StatusCode)
	}
	for _, path := range []string{"/0", "/x", "/99999", "/01"} {
		if a, _ := viewer("GET", address+path, ""); a.StatusCode != 404 {
			t.Errorf("%s: %d", path, a.StatusCode)
		}
	}
	if list, _ := viewer("GET", address, ""); list.Text != `{"questions":[]}` {
		t.Errorf("none is open: %s", list.Text)
	}
	if list, _ := viewer("GET", address+"?state=all&project=beta&limit=1", ""); !strings.Contains(list.Text, "Where is the key?") {
		t.Errorf("all: %s", list.Text)
	}
	for _, query := range []string{"?state=none", "?limit=0", "?limit=201"} {
		if a, _ := viewer("GET", address+query, ""); a.StatusCode != 400 {
			t.Errorf("%s: %d", query, a.StatusCode)
		}
	}

	var first questionReply
	for n := range domain.MaxOpenQuestions + 1 {
		a, q := operator("POST", address, fmt.Sprintf(`{"kind":"text","prompt":"number %d"}`, n))
		if want := map[bool]int{true: 201, false: 429}[n < domain.MaxOpenQuestions]; a.StatusCode != want {
			t.Fatalf("question %d: %d", n, a.StatusCode)
		}
		if n == 0 {
			first = q
		}
	}
	if a, again := operator("POST", address, `{"kind":"text","prompt":"number 0"}`); a.StatusCode != 200 || again.ID != first.ID {
		t.Errorf("one that is open already: %d %s", a.StatusCode, a.Text)
	}
	audit := s.Do("GET", "/api/gateway/audit?limit=200", "", "Authorization", "Bearer "+gatewaytest.AdminToken)
	for _, action := range []string{"question.asked", "question.answered", "question.withdrawn"} {
		if !strings.Contains(audit.Text, action) {
			t.Errorf("the audit has no %s", action)
		}
	}
}

// TestAPermissionIsOfItsAskersClaim, also where it is no tool's, unless it names a story.
func TestAPermissionIsOfItsAskersClaim(t *testing.T) {
	s := newTokenSite(t)
	s.assign("alpha")
	agent := asker(s.Site, s.issue("alpha"))
	claimed, _ := agent("POST", "/api/gateway/projects/alpha/stories/claim", `{"story_id":"7_pay"}`)
	claimed.WantStatus(t, http.StatusOK)
	for body, want := range map[string]string{
		`{"kind":"permission","prompt":"May I deploy?"}`:                   "7_pay",
		`{"kind":"permission","prompt":"And here?","story_id":"8_refund"}`: "8_refund",
		`{"kind":"text","prompt":"Which key?"}`:                            "",
	} {
		asked, q := agent("POST", "/api/gateway/questions", body)
		asked.WantStatus(t, http.StatusCreated)
		if got := wire.Text(q.StoryID); got != want || *q.Project != "alpha" {
			t.Errorf("%s: of %q", body, got)
		}
	}
}

func TestQuestionsAreReturnedAsTheyCame(t *testing.T) {
	s := newSite(t)
	const address, text = "/api/gateway/questions", `\u0000a\u202eb\u0007\n\tc\ufffe0`
	asked := s.Send("POST", address, `{"kind":"text","prompt":"`+text+`","detail":"`+text+`"}`).WantStatus(t, http.StatusCreated)
	var q questionReply
	asked.Decode(t, &q)
	if now := s.Send("GET", address+"/"+q.ID, ""); now.Text != asked.Text {
		t.Errorf("asked %s, then %s", asked.Text, now.Text)
	}
	answered := s.Send("POST", address+"/"+q.ID+"/answer", `{"value":"`+text+`","text":"`+text+`"}`).WantStatus(t, http.StatusOK)
	if again := s.Send("GET", address+"/"+q.ID, ""); again.Text != answered.Text {
		t.Errorf("answered %s, then %s", answered.Text, again.Text)
	}
}

// TestAPermissionHookIsHeldUntilSomebodyAnswers: it is denied when nobody does, and the same use of a tool in a session is
// the same question while it is open.
func TestAPermissionHookIsHeldUntilSomebodyAnswers(t *testing.T) {
	s := newTokenSite(t)
	s.assign("alpha")
	agent := asker(s.Site, s.issue("alpha"))
	_, operatorToken := gatewaytest.NamedToken(t, s.Service, "mara", domain.RoleOperator)
	operator := asker(s.Site, operatorToken)
	const hook = `{"hook_event_name":"PermissionRequest","session_id":"s1","cwd":"/w","tool_name":"Bash","tool_input":{"command":"rm -r x"}}`
	if a, _ := agent("POST", "/api/hooks/claude-code", `{"hook_event_name":"Stop"}`); a.StatusCode != 200 || a.Text != "" {
		t.Errorf("another event: %d %q", a.StatusCode, a.Text)
	}
	answers := make(chan string, 2)
	for range 2 {
		go func() {
			a, _ := agent("POST", "/api/hooks/claude-code", hook)
			answers <- a.Text
		}()
	}
	var open struct{ Questions []questionReply }
	waittest.Until(t, "the question", func() bool {
		a, _ := operator("GET", "/api/gateway/questions", "")
		return json.Unmarshal([]byte(a.Text), &open) == nil && len(open.Questions) > 0
	})
	q := open.Questions[0]
	if len(open.Questions) != 1 || q.Kind != "permission" || q.Tool == nil || q.Tool.Name != "Bash" || string(q.Tool.Input) != `{"command":"rm -r x"}` || *q.Tool.CWD != "/w" {
		t.Fatalf("asked: %+v", open.Questions)
	}
	s.AwaitHeld(2)
	if a, _ := operator("POST", "/api/gateway/questions/"+q.ID+"/answer", `{"value":"deny","text":"not that"}`); a.StatusCode != 200 {
		t.Fatalf("%d %s", a.StatusCode, a.Text)
	}
	for range 2 {
		if got, want := <-answers, `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"not that"}}}`; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if _, err := s.Questions.Ask(domain.WithActor(t.Context(), new(domain.Administrator(domain.ViaOpen))), domain.Question{Kind: domain.QuestionText, Prompt: "soon over"}, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "the end", func() bool { return s.Questions.Open() == 0 })
}

// TestManyAskAtOnce: none is forgotten, while others end, and each is held until it is answered.
func TestManyAskAtOnce(t *testing.T) {
	s := newTokenSite(t)
	const rounds, each = 18, 16 // fewer than may end within a minute
	ctx := domain.WithActor(t.Context(), new(domain.Administrator(domain.ViaOpen)))
	for range rounds {
		var all sync.WaitGroup
		for n := range each {
			all.Go(func() {
				q, err := s.Questions.Ask(ctx, domain.Question{Kind: domain.QuestionText, Prompt: fmt.Sprint(n)}, 0)
				if err != nil {
					t.Error(err)
					return
				}
				if !slices.ContainsFunc(s.Questions.Recent(), func(r domain.Question) bool { return r.ID == q.ID }) {
					t.Errorf("question %d is not known", q.ID)
				}
				if err := s.Questions.Withdraw(ctx, q.ID); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := s.Questions.Open(); n != 0 {
			t.Errorf("%d questions are still open", n)
		}
	}
}

// TestALongInputCanBeAllowed, of 1 MiB, by MCP and by hook: lists show it cut; it is whole in its own answer, and goes back as it came.
func TestALongInputCanBeAllowed(t *testing.T) {
	s := newSite(t)
	long := fmt.Sprintf(`{"file_path":"x","content":%q}`, strings.Repeat("line\n", 60_000)+strings.Repeat("x", domain.MaxToolInput-360_030))
	if len(long) != domain.MaxToolInput {
		t.Fatal(len(long))
	}
	answers := make(chan gatewaytest.Answer, 1)
	go func() {
		answers <- s.Send("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"permission","arguments":{"tool_name":"Write","input":`+long+`}}}`,
			"Accept", "application/json, text/event-stream")
	}()
	waittest.Until(t, "the question", func() bool { return s.Questions.Open() == 1 })
	list := s.Get("/api/gateway/questions").WantStatus(t, 200).WantText(t, `{\"file_path\":\"x\"`, `"input_cut":true`)
	if len(list.Text) > 160<<10 {
		t.Errorf("the list has %d bytes", len(list.Text))
	}
	if whole := s.Get("/api/gateway/questions/1").Text; !strings.Contains(whole, `"input":`+long+`,"cwd":null,"input_cut":false`) {
		t.Errorf("the question: %.300s", whole)
	}
	s.Send("POST", "/api/gateway/questions/1/answer", `{"value":"allow"}`).WantStatus(t, 200)
	allowed := <-answers
	if !strings.Contains(allowed.Text, `\"behavior\":\"allow\"`) || !strings.Contains(allowed.Text, strings.Repeat(`line\\n`, 60_000)) {
		t.Errorf("allowed: %.300s", allowed.Text)
	}
	s.Get("/api/gateway/questions/1").WantText(t, `"input_cut":true`) // nobody needs the rest any more
	hook := func(input string) gatewaytest.Answer {
		return s.Send("POST", "/api/hooks/claude-code", `{"hook_event_name":"PermissionRequest","tool_name":"Write","tool_input":`+input+`}`)
	}
	hook(long).WantStatus(t, 200).WantText(t, `"behavior":"allow"`) // the other way of the same use
	hook(strings.Replace(long, "x", "xx", 1)).WantStatus(t, http.StatusRequestEntityTooLarge)
}

// TestWhatAModeAllowsIsNotAsked, but questions and plans are in every mode.
func TestWhatAModeAllowsIsNotAsked(t *testing.T) {
	s := newSite(t)
	for _, allowed := range []string{"bypassPermissions Bash", "bypassPermissions Write", "acceptEdits Edit", "acceptEdits Write", "acceptEdits MultiEdit", "acceptEdits NotebookEdit"} {
		mode, tool, _ := strings.Cut(allowed, " ")
		got := s.Send("POST", "/api/hooks/claude-code", fmt.Sprintf(`{"hook_event_name":"PermissionRequest","permission_mode":%q,"tool_name":%q,"tool_input":{}}`, mode, tool))
		if got.StatusCode != 200 || got.Text != "" {
			t.Errorf("%s: %d %q", allowed, got.StatusCode, got.Text)
		}
	}
	var asking sync.WaitGroup
	for i, asked := range []string{"default Write", "acceptEdits Bash", "bypassPermissions AskUserQuestion", "bypassPermissions ExitPlanMode", "plan ExitPlanMode"} {
		mode, tool, _ := strings.Cut(asked, " ")
		asking.Go(func() {
			s.Send("POST", "/api/hooks/claude-code", fmt.Sprintf(`{"hook_event_name":"PermissionRequest","permission_mode":%q,"session_id":%q,"tool_name":%q,"tool_input":{}}`, mode, asked, tool))
		})
		waittest.Until(t, asked+" is asked", func() bool { return s.Questions.Open() == i+1 })
	}
	for _, q := range s.Questions.Recent() {
		s.Send("DELETE", fmt.Sprintf("/api/gateway/questions/%d", q.ID), "").WantStatus(t, http.StatusNoContent)
	}
	asking.Wait()
}
