package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"switchyard/handlers"
	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/service"
	"switchyard/internal/store/sqlite"
	"switchyard/internal/store/storetest"
	"switchyard/internal/waittest"
	"switchyard/internal/wire"
)

// captured returns what a real client sent to its hooks, by name, in order.
func captured(t testing.TB, client string) (names []string, hooks map[string]string) {
	t.Helper()
	paths, err := filepath.Glob("testdata/" + client + "-*.jsonl")
	if err != nil || len(paths) != 1 {
		t.Fatal(paths, err)
	}
	text, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	hooks = map[string]string{}
	for line := range strings.Lines(string(text)) {
		var one struct {
			Name string
			Hook json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatal(err)
		}
		if one.Hook != nil { // else it is a call over MCP
			names, hooks[one.Name] = append(names, one.Name), string(one.Hook)
		}
	}
	return names, hooks
}

type sessionReply struct {
	ID, Client, By, CWD, State             string
	AgentID                                *string `json:"agent_id"`
	Host, Worktree, Branch, Project, Model *string
	Tool, Mode                             *string
	StoryID                                *string `json:"story_id"`
	QuestionID                             *string `json:"question_id"`
	SinceMS                                int64   `json:"since_ms"`
	StartedMS                              int64   `json:"started_ms"`
	LastMS                                 int64   `json:"last_ms"`
}

func sessionsOf(t testing.TB, s *gatewaytest.Site, headers ...string) (more int, list []sessionReply) {
	t.Helper()
	var reply struct {
		More     int
		Sessions []sessionReply
	}
	s.Get("/api/gateway/agent-sessions", headers...).WantStatus(t, 200).Decode(t, &reply)
	return reply.More, reply.Sessions
}

// TestSessionsAreAsTheirHooksSay, by what the real clients send; nothing of a prompt, an input or an output is kept or shown anywhere.
func TestSessionsAreAsTheirHooksSay(t *testing.T) {
	dir := storetest.Dir(t)
	db, err := sqlite.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	var log waittest.Log
	client := gatewaytest.NewProjectClient(t)
	s := gatewaytest.NewSite(t, service.Options{Store: db, Projects: client, Stories: client, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}, handlers.Gateway{})
	var loops sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	loops.Go(func() { _ = s.Sessions.Run(ctx) })
	hook := func(body string) {
		t.Helper()
		if a := s.Send("POST", "/api/hooks/claude-code", body); a.StatusCode != 200 || a.Text != "" {
			t.Errorf("%s: %d %s", body, a.StatusCode, a.Text)
		}
	}
	states := map[string][2]string{ // and tools
		"SessionStart": {"idle"}, "SessionStart -p": {"idle"}, "UserPromptSubmit": {"working"}, "PreToolUse": {"working", "Bash"}, "PostToolUse": {"working"},
		"PostToolBatch": {"working"}, "Stop": {"idle"}, "SessionEnd": {"ended"}, "PostToolUseFailure": {"ended"}, "StopFailure": {"ended"},
		"Notification permission_prompt": {"ended"}, "Notification idle_prompt": {"ended"}, "SubagentStart": {"ended"}, "PreToolUse in a subagent": {"working", "Bash"},
		"SubagentStop": {"working", "Bash"}, "Stop with a subagent at work": {"idle"}, "PreToolUse AskUserQuestion": {"working", "AskUserQuestion"},
		"PostToolUse AskUserQuestion at the terminal": {"working"}, "SessionEnd clear": {"ended"}, "SessionStart clear": {"idle"},
	}
	var sent strings.Builder
	for _, client := range []string{"claude-code", "codex"} {
		names, hooks := captured(t, client)
		for _, name := range names {
			if sent.WriteString(hooks[name]); strings.HasPrefix(name, "PermissionRequest") {
				continue
			}
			hook(hooks[name])
			_, list := sessionsOf(t, s)
			is := list[slices.IndexFunc(list, func(one sessionReply) bool { return one.Client == client })]
			tool := ""
			if is.Tool != nil {
				tool = *is.Tool
			}
			if want := states[name]; is.State != want[0] || tool != want[1] || is.Client != client || is.CWD != "/home/dev/shop" || is.Host != nil || is.Worktree != nil || is.By != "admin" {
				t.Errorf("%s of %s: %+v, want %s", name, client, is, want)
			}
		}
	}
	// Large ones are read and dropped; what says nothing of a session passes by.
	hook(fmt.Sprintf(`{"session_id":"large","hook_event_name":"PostToolUse","tool_input":{"text":"%s"},"tool_name":"Write"}`, strings.Repeat("unheard-of ", 350_000)))
	hook(`{"session_id":7,"hook_event_name":"Stop"}`)
	hook(`{"session_id":"s","hook_event_name":"Another"}`)
	more, list := sessionsOf(t, s)
	if len(list) != 3 || more != 0 || list[0].ID != "large" {
		t.Errorf("%+v", list)
	}
	if *list[1].Model != "claude-opus-5-5" || *list[1].Mode != "auto" || *list[2].Mode != "bypassPermissions" || *list[2].Model != "gpt-5" {
		t.Errorf("%+v", list)
	}
	pages := s.Get("/api/gateway/agent-sessions").Text + s.Get("/agents").Text + s.Get("/").Text
	stop()
	loops.Wait()
	stored := readAll(t, dir)
	for _, secret := range []string{"made-by-agent", "make a file", "Make a file", "exit 3", "Exit code", "Done.", "API Error", "needs your permission", "Which database", "unheard-of", ".jsonl", "noOutputExpected"} {
		if !strings.Contains(sent.String()+"unheard-of", secret) {
			t.Errorf("nobody sent %q", secret)
		}
		for where, text := range map[string]string{"the database": stored, "the log": log.String(), "pages": pages} {
			if strings.Contains(text, secret) {
				t.Errorf("%s have %q", where, secret)
			}
		}
	}
	if !strings.Contains(stored, "claude-opus-5-5") {
		t.Error("nothing was stored")
	}
	// Another process knows them all.
	again := gatewaytest.NewSite(t, service.Options{Store: db, Projects: client, Stories: client}, handlers.Gateway{})
	if _, known := sessionsOf(t, again); len(known) != 3 || known[1].LastMS != list[1].LastMS || known[1].State != list[1].State {
		t.Errorf("after a start: %+v", known)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// readAll returns the bytes of all files of a directory.
func readAll(t testing.TB, dir string) string {
	t.Helper()
	var all bytes.Buffer
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// TestASessionIsLinkedToItsStory and to its project, and waits while somebody holds what it asks; it belongs to whoever's token made it.
func TestASessionIsLinkedToItsStory(t *testing.T) {
	s := newTokenSite(t)
	s.assign("alpha")
	agent := asker(s.Site, s.issue("alpha"))
	_, operatorToken := gatewaytest.NamedToken(t, s.Service, "mara", domain.RoleOperator)
	_, viewerToken := gatewaytest.NamedToken(t, s.Service, "vera", domain.RoleViewer)
	mara := asker(s.Site, operatorToken)
	list := func() []sessionReply {
		_, list := sessionsOf(t, s.Site, "Authorization", "Bearer "+viewerToken)
		return list
	}
	hook := func(by func(_, _, _ string) (gatewaytest.Answer, questionReply), session, event, more string) gatewaytest.Answer {
		a, _ := by("POST", "/api/hooks/claude-code", fmt.Sprintf(`{"hook_event_name":%q,"session_id":%q%s}`, event, session, more))
		return a
	}
	if a := hook(asker(s.Site, viewerToken), "x", "Stop", ""); a.StatusCode != 403 {
		t.Errorf("a viewer: %d", a.StatusCode)
	}
	hook(agent, "same", "UserPromptSubmit", `,"host":"build-7","worktree":"/w","branch":"story/7","project":"beta","cwd":"/w/src"`)
	hook(mara, "same", "UserPromptSubmit", `,"project":"beta"`)
	hook(mara, "other", "SessionStart", `,"project":"nothing"`)
	of := func(by string) sessionReply {
		t.Helper()
		for _, one := range list() {
			if one.By == by && one.ID == "same" {
				return one
			}
		}
		t.Fatal("no session of " + by)
		return sessionReply{}
	}
	if one := of("builder"); *one.AgentID != s.id || *one.Project != "alpha" || one.StoryID != nil || *one.Host != "build-7" || *one.Worktree != "/w" || *one.Branch != "story/7" || one.CWD != "/w/src" {
		t.Errorf("an agent's: %+v", one)
	}
	if one := of("mara"); one.AgentID != nil || *one.Project != "beta" || one.Host != nil {
		t.Errorf("a person's: %+v", one)
	}
	if a, _ := agent("POST", "/api/gateway/projects/alpha/stories/claim", `{"story_id":"7_pay"}`); a.StatusCode != 200 {
		t.Fatalf("%d %s", a.StatusCode, a.Text)
	}
	if one := of("builder"); one.StoryID == nil || *one.StoryID != "7_pay" {
		t.Errorf("of a claim: %+v", one)
	}
	// By hook, and by MCP under the id of a use that has begun.
	hook(mara, "same", "PreToolUse", `,"tool_name":"Bash","tool_use_id":"toolu_9"`)
	decided := make(chan string, 2)
	held := func(n int) {
		t.Helper()
		waittest.Until(t, "they are held", func() bool {
			waiting := 0
			for _, one := range list() {
				if one.State == "waiting" {
					waiting++
				}
			}
			return waiting == n
		})
	}
	go func() {
		decided <- hook(agent, "same", "PermissionRequest", `,"tool_name":"Bash","tool_input":{"command":"ls"}`).Text
	}()
	held(1)
	go func() {
		a := s.Do("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"permission","arguments":{"tool_name":"Bash","input":{"command":"make"},"tool_use_id":"toolu_9"}}}`,
			"Accept", "application/json, text/event-stream", "Authorization", "Bearer "+operatorToken, "Content-Type", "application/json")
		decided <- a.Text
	}()
	held(2)
	if all := list(); all[0].By != "builder" || all[1].By != "mara" || all[1].ID != "same" || all[2].ID != "other" || *all[0].QuestionID != "1" || *all[1].QuestionID != "2" {
		t.Errorf("those that wait, longest first: %+v", all)
	}
	for id, project := range map[string]string{"1": "alpha", "2": "beta"} {
		if _, q := mara("GET", "/api/gateway/questions/"+id, ""); wire.Text(q.Project) != project {
			t.Errorf("question %s is of %v", id, q.Project)
		}
		mara("POST", "/api/gateway/questions/"+id+"/answer", `{"value":"allow"}`)
		<-decided
	}
	if all := list(); all[0].State != "working" || all[1].State != "working" || all[2].State != "idle" || all[0].QuestionID != nil {
		t.Errorf("after the answers: %+v", all)
	}
}

// TestASessionIsOfTheStoryOfItsBranch: in the project that has its work tree, or by the branch's name in a clone of it.
func TestASessionIsOfTheStoryOfItsBranch(t *testing.T) {
	s := newSite(t)
	s.Add("shop", gatewaytest.ProjectServer(t, gatewaytest.Says(`{"host":"h","worktrees":["/src","/src/pay"],"stages":[{"name":"1_todo","items":[]}],`+
		`"links":[{"branch":"story/7","worktree":"/src/pay","story_id":"7_pay"},{"worktree":"/src/8","story_id":"8_cart"}]}`)))
	s.Answered()
	for id, at := range map[string]string{
		"tree": `"host":"h","worktree":"/src/pay","branch":"story/7"`, "clone": `"host":"other","worktree":"/home/src","branch":"story/7","project":"shop"`,
		"main": `"host":"h","worktree":"/src","branch":"main"`, "elsewhere": `"host":"other","worktree":"/src/pay","branch":"story/7"`,
	} {
		s.Send("POST", "/api/hooks/claude-code", `{"hook_event_name":"UserPromptSubmit","session_id":"`+id+`",`+at+`}`)
	}
	got := map[string]string{}
	_, list := sessionsOf(t, s)
	for _, one := range list {
		got[one.ID] = wire.Text(one.Project) + " " + wire.Text(one.StoryID)
	}
	if want := map[string]string{"tree": "shop 7_pay", "clone": "shop 7_pay", "main": "shop ", "elsewhere": " "}; !maps.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	s.Add("alpha", gatewaytest.StoryServer(t))
	const story = "/api/gateway/projects/alpha/stories"
	s.Send("POST", story+"/claim", `{"story_id":"7_pay"}`)
	s.Send("POST", "/api/hooks/claude-code", `{"hook_event_name":"UserPromptSubmit","session_id":"holder","branch":"story/7","host":"h","project":"alpha"}`)
	if a := s.Send("GET", story+"/7_pay", ""); !strings.Contains(a.Text, `"link":"session"`) {
		t.Errorf("its place is not a session's: %s", a.Text)
	}
}

// TestALongTextOfAHookIsCut, however long, and told to nobody whole.
func TestALongTextOfAHookIsCut(t *testing.T) {
	s := newSite(t)
	hook := fmt.Sprintf(`{"hook_event_name":"PreToolUse","session_id":"a","cwd":"%s","tool_name":"Bash","tool_input":{"x":"%s"}}`,
		strings.Repeat("ü", 50_000), strings.Repeat("x", 100_000))
	s.Send("POST", "/api/hooks/claude-code", hook).WantStatus(t, 200)
	if _, list := sessionsOf(t, s); len(list) != 1 || list[0].CWD != strings.Repeat("ü", 1000) || *list[0].Tool != "Bash" {
		t.Errorf("%d sessions: %.100v", len(list), list)
	}
}

// TestAThousandSessionsOfAnAskerAreKept, and a further one ends the oldest.
func TestAThousandSessionsOfAnAskerAreKept(t *testing.T) {
	s := newSite(t)
	for n := range domain.MaxAgentSessions + 1 {
		s.Sessions.Receive(t.Context(), domain.HookEvent{Name: "Stop", Session: fmt.Sprint(n), CWD: strings.Repeat("ü", 2000)})
	}
	more, list := sessionsOf(t, s)
	if more != 800 || len(list) != 200 || list[0].CWD != strings.Repeat("ü", 1000) {
		t.Errorf("%d and %d more", len(list), more)
	}
}
