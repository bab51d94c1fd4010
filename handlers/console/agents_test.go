package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"switchyard/handlers"
	"switchyard/internal/browsertest"
	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/service"
	"switchyard/views"
)

// join makes an agent.
func (s *consoleSite) join(label string) domain.Agent {
	s.Helper()
	token, _, err := s.Agents.CreateJoinToken(context.Background(), "")
	if err != nil {
		s.Fatal(err)
	}
	return s.redeem(token.Reveal(), label)
}

func (s *consoleSite) redeem(token, label string) domain.Agent {
	s.Helper()
	a, _, err := s.Agents.Join(context.Background(), domain.Secret(token), &label, "0.1.0")
	if err != nil {
		s.Fatal(err)
	}
	return a
}

// says sends a report of an agent.
func (s *consoleSite) says(a domain.Agent, state domain.AgentState, detail string) {
	s.Helper()
	if _, err := s.Agents.Heartbeat(context.Background(), a.ID, service.Heartbeat{State: &state, Detail: &detail}); err != nil {
		s.Fatal(err)
	}
}

func (s *consoleSite) wantText(what string, text string, wants ...string) {
	s.Helper()
	for _, want := range wants {
		no, negated := strings.CutPrefix(want, "!")
		if strings.Contains(text, no) == negated {
			s.Errorf("%s: want %q in\n%s", what, want, text)
		}
	}
}

var tokenPattern = regexp.MustCompile(`swj_[a-z2-7]{32}`)

// TestAgentsPageWithoutScripts: every action is a plain form.
func TestAgentsPageWithoutScripts(t *testing.T) {
	s := newConsoleSite(t)
	s.add("alpha", board("1_backlog:"))
	s.wantText("empty", s.Get("/agents").Text, "<h1>Agents</h1>", "No agent yet", "Add agent")

	added := s.Submit("/agents")
	token := tokenPattern.FindString(added.Text)
	s.wantText("added", added.Text, "SWITCHYARD_TOKEN=", ">"+token+"<", "switchyard agent --gateway "+s.URL+"<", "only works on this machine", "Waiting for the agent", "Unused join tokens")
	if added.StatusCode != 200 || token == "" || added.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("adding: %d %v", added.StatusCode, added.Header)
	}
	state := regexp.MustCompile(`/agents/tokens/[0-9a-f]{64}`).FindString(added.Text)
	for _, path := range []string{"/agents", state} {
		s.wantText("shown once", s.Get(path).Text, "!"+token, "Unused join tokens")
	}
	builder := s.redeem(token, "builder-<2>")
	s.wantText("joined", s.Get(state).Text, "builder-&lt;2&gt; joined", "!Waiting")
	s.wantText("listed", s.Get("/agents").Text, "builder-&lt;2&gt;", ">idle<", "0.1.0", "!Unused join tokens")

	for _, c := range []struct {
		path, field, value, notice string
		holds                      []string
	}{
		{"/assign", "project", "alpha", "is assigned to alpha.", []string{`<option value="alpha" selected>`, "Undo"}},
		{"/assign", "project", "", "is unassigned.", []string{`<option value="" selected>`, "Undo"}},
		{"/label", "label", " builder-3 ", "The agent is now called builder-3.", []string{"Remove builder-3?"}},
		{"/remove", "", "", "builder-3 is removed.", []string{"No agent yet"}},
	} {
		answer := s.Submit("/agents/"+builder.ID+c.path, c.field, c.value)
		if answer.StatusCode != 303 || answer.Header.Get("Location") != "/agents" {
			t.Errorf("%s: %d to %q", c.path, answer.StatusCode, answer.Header.Get("Location"))
		}
		s.wantText(c.path, s.Get("/agents").Text, append(c.holds, c.notice)...)
	}

	other := s.join("other")
	for _, c := range []struct {
		path, field, value, notice string
		status                     int
	}{
		{"/assign", "project", "nowhere", "Project &#39;nowhere&#39; does not exist.", 400},
		{"/label", "label", "", "Label: must not be empty.", 400},
		{"/label", "label", strings.Repeat("x", 101), "Label: must be at most 100 characters.", 400},
		{"gone/assign", "project", "alpha", "Agent not found.", 404},
		{"gone/label", "label", "x", "Agent not found.", 404},
		{"gone/remove", "", "", "Agent not found.", 404},
	} {
		answer := s.Submit("/agents/"+other.ID+c.path, c.field, c.value)
		if answer.StatusCode != c.status {
			t.Errorf("%s: %d, want %d", c.path, answer.StatusCode, c.status)
		}
		s.wantText(c.path, answer.Text, c.notice, "<h1>Agents</h1>", `role="alert"`)
	}

	state = regexp.MustCompile(`/agents/tokens/[0-9a-f]{64}`).FindString(s.Submit("/agents").Text)
	if answer := s.Submit(state + "/revoke"); answer.StatusCode != 303 {
		t.Errorf("revoking: %d", answer.StatusCode)
	}
	s.wantText("revoked", s.Get("/agents").Text, "The join token is revoked.", "!Unused join tokens")
	if answer := s.Submit(state + "/revoke"); answer.StatusCode != 404 {
		t.Errorf("revoking again: %d", answer.StatusCode)
	}
}

// TestAgentsPart: it is sent only when something has changed.
func TestAgentsPart(t *testing.T) {
	s := newConsoleSite(t)
	a := s.join("builder")
	at := partAddress(t, s.Get("/agents"))
	if answer := s.Get(at, "HX-Request", "true"); answer.StatusCode != 204 {
		t.Errorf("unchanged: %d %s", answer.StatusCode, answer.Text)
	}
	s.says(a, domain.AgentFailed, "exit status 3\nno <space> left")
	part := s.Get(at, "HX-Request", "true")
	s.wantText("changed", part.Text, `<div id="agents"`, ">failed<", "exit status 3", "no &lt;space&gt; left", "!<h1>")
	if partAddress(t, part) == at {
		t.Error("the part changed, its version did not")
	}
	s.says(a, domain.AgentStopped, "")
	s.wantText("stopped", s.Get("/agents").Text, ">stopped<")
}

func TestJoiningAnAgentInTheBrowser(t *testing.T) {
	browsertest.Parallel(t)
	s := newConsoleSite(t)
	s.add("alpha", board("1_backlog:"))
	s.add("beta", board("1_backlog:"))
	s.join("builder-1")
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/agents")
	tab.Find("button", "Add agent").Click()
	tab.WaitText("Waiting for the agent…")
	command := browsertest.Eval[string](tab, `document.getElementById("join-command").innerText`)
	token := browsertest.Eval[string](tab, `document.getElementById("join-token").innerText`)
	if command != "SWITCHYARD_TOKEN="+token+" switchyard agent --gateway "+s.URL || tokenPattern.FindString(token) != token || token == "" {
		t.Fatalf("the command is %q", command)
	}
	screenshot(tab, "agents-waiting")
	builder := s.redeem(token, "builder-2")
	tab.WaitText("builder-2 joined")
	tab.Wait(`location.hash === "#agent-` + builder.ID + `" && !document.getElementById("join")`) // the panel is its line now
	tab.Wait(`document.querySelectorAll("#agents .agent-lines > li").length === 2 && !document.querySelector(".htmx-request, .htmx-swapping, .htmx-settling")`)

	// A choice applies at once, and leaves the rest of the page as it is.
	choose := `(select, value) => { select.value = value; select.dispatchEvent(new Event("change", {bubbles: true})) }`
	row := `document.getElementById("agent-` + builder.ID + `")`
	browsertest.Eval[any](tab, `(`+choose+`)(`+row+`.querySelector("select"), "beta")`)
	tab.WaitText("builder-2 is assigned to beta.")
	s.wantAssigned(builder, "beta")
	tab.WaitText("builder-2 joined")
	tab.Find("button", "Undo").Click()
	tab.WaitText("builder-2 is unassigned.")
	s.wantAssigned(builder, "")
	browsertest.Eval[any](tab, row+`.querySelector("select").value = "alpha"`)
	browsertest.Eval[any](tab, `[...`+row+`.querySelectorAll("button")].find(b => b.textContent === "Assign").click()`)
	tab.WaitText("builder-2 is assigned to alpha.")
	s.wantAssigned(builder, "alpha")

	s.says(builder, domain.AgentRunning, "compiling\nlinking")
	tab.Wait(row + `.innerText.includes("running")`) // the table refreshes itself
	screenshot(tab, "agents")
	tab.Size(390, 844)
	screenshot(tab, "agents-narrow")
	tab.Size(1280, 800)

	tab.Find("button", "Actions for builder-2").Click()
	tab.Find("button", "Rename").Click()
	tab.Find("textbox", "Label").Type("painter")
	tab.Find("button", "Save").Click()
	tab.WaitText("The agent is now called painter.")
	if open := tab.All("dialog", "Rename painter"); len(open) > 0 {
		t.Error("the dialog stays open")
	}
	tab.Find("button", "Actions for painter").Click()
	tab.Find("button", "Remove").Click()
	tab.Find("dialog", "Remove painter?")
	browsertest.Eval[any](tab, `document.querySelector("[role=dialog]:popover-open form button:last-child").click()`)
	tab.WaitText("painter is removed.")
	tab.Wait(`document.querySelectorAll("#agents .agent-lines > li").length === 1`)
}

func (s *consoleSite) wantAssigned(a domain.Agent, project string) {
	s.Helper()
	known, _ := s.Agents.Find(a.ID)
	got := ""
	if known.Project != "" {
		got = known.Project
	}
	if got != project {
		s.Errorf("%s is assigned to %q, want %q", a.Label, got, project)
	}
}

// screenshot saves a picture if SCREENSHOTS names a directory.
func screenshot(tab *browsertest.Tab, name string) {
	if dir := os.Getenv("SCREENSHOTS"); dir != "" {
		tab.Screenshot(filepath.Join(dir, name+".png"))
	}
}

// TestTheJoinLineSaysWhatTheAgentIsToBe: the line has the label and the command, and the agent is assigned as soon as it joins.
func TestTheJoinLineSaysWhatTheAgentIsToBe(t *testing.T) {
	s := newConsoleSite(t)
	s.add("alpha", board("1_backlog:"))
	first := s.Submit("/agents")
	old := tokenPattern.FindString(first.Text)
	hash := regexp.MustCompile(`name="instead" value="([0-9a-f]{64})"`).FindStringSubmatch(first.Text)[1]

	second := s.Submit("/agents", "instead", hash, "label", "it's mine", "project", "alpha", "command", " make  build\n")
	token := tokenPattern.FindString(second.Text)
	s.wantText("line", second.Text, token+"</span> switchyard agent --gateway "+s.URL+" --label &#39;it&#39;\\&#39;&#39;s mine&#39; -- make build<",
		`value="it&#39;s mine"`, `<option value="alpha" selected>`, "!"+old)
	if _, _, err := s.Agents.Join(t.Context(), domain.Secret(old), nil, ""); domain.CodeOf(err) != domain.Unauthorized {
		t.Errorf("the token before still works: %v", err)
	}
	s.wantText("list", s.Get("/agents").Text, "for ", ">alpha</a>", "created ")
	s.wantAssigned(s.redeem(token, "it's mine"), "alpha")

	s.wantText("bad label", s.Submit("/agents", "label", strings.Repeat("x", 101)).Text, "Must be at most 100 characters.", "switchyard agent --gateway "+s.URL+"<")
	s.wantText("gone project", s.Submit("/agents", "project", "gone").Text, "does not exist.", "switchyard agent --gateway "+s.URL+"<")
}

func TestTheAgentsPageSaysHowCodingAgentsConnect(t *testing.T) {
	s := gatewaytest.NewSite(t, service.Options{}, handlers.Gateway{AdminToken: gatewaytest.AdminToken})
	s.Submit("/login", "token", gatewaytest.AdminToken)
	page := html.UnescapeString(s.Get("/agents").Text)
	for _, part := range []string{
		`claude mcp add --transport http switchyard ` + s.URL + `/mcp --header "Authorization: Bearer $SWITCHYARD_API_TOKEN"`,
		`bearer_token_env_var = "SWITCHYARD_API_TOKEN"`, `"Authorization": "Bearer ${env:SWITCHYARD_API_TOKEN}"`, `"args": [`, `data-copy="mcp-claude"`,
	} {
		if !strings.Contains(page, part) {
			t.Errorf("the page lacks %s", part)
		}
	}
	open := gatewaytest.NewSite(t, service.Options{}, handlers.Gateway{})
	page = html.UnescapeString(open.Get("/agents", "X-Forwarded-Proto", "https").Text)
	address := strings.Replace(open.URL, "http:", "https:", 1)
	if !strings.Contains(page, "claude mcp add --transport http switchyard "+address+"/mcp<") || strings.Contains(page, "API_TOKEN") {
		t.Errorf("of a gateway that asks for no token: %s", page)
	}
}

// TestTheAgentsPageHasALineForEachAgent: those first that need somebody, each with its story and the end of its output.
func TestTheAgentsPageHasALineForEachAgent(t *testing.T) {
	s := newStorySite(t, true, map[string]string{"2_current/2_story_audit.md": "# Audit log\n", "3_qa/5_story_pay.md": "# Pay by card\n"})
	var agents []domain.Agent
	for _, label := range []string{"asking", "building", "claiming", "failing", "unassigned"} {
		agents = append(agents, s.join(label))
	}
	asking, building, claiming, failing := agents[0], agents[1], agents[2], agents[3]
	for _, a := range agents[:4] {
		if _, err := s.Agents.Assign(t.Context(), a.ID, "webshop"); err != nil {
			t.Fatal(err)
		}
	}
	s.says(building, domain.AgentRunning, "claimed 2_story_audit\nstep 1 ok")
	s.says(failing, domain.AgentFailed, "$ make\nerror: no rule <x>")
	who := domain.Actor{Who: "agent claiming", Via: domain.ViaToken, Role: domain.RoleViewer, Project: "webshop", Account: "agent " + claiming.ID, AgentID: claiming.ID}
	if _, _, err := s.Claims.Claim(domain.WithActor(t.Context(), &who), "webshop", service.ClaimRequest{StoryID: "5_story_pay"}); err != nil {
		t.Fatal(err)
	}
	who = domain.Actor{Who: "agent asking", Via: domain.ViaToken, Role: domain.RoleViewer, Project: "webshop", Account: "agent " + asking.ID, AgentID: asking.ID}
	ask := func(command string) domain.Question {
		t.Helper()
		q, err := s.Questions.Ask(domain.WithActor(t.Context(), &who), domain.Question{
			Project: "webshop", Kind: domain.QuestionPermission, Prompt: "May I use Bash?",
			Tool: &domain.ToolUse{Name: "Bash", Input: json.RawMessage(command)},
		}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	q := ask(`{"command":"rm -r build"}`)
	s.Get("/agents").WantText(t, "Wait for somebody", ">1 <small>longest", "Work", ">1", "In trouble", ">1", "Idle or free", ">2",
		">asking</b>", "asks</span>", ">Bash</b>", "rm -r build", ">Allow<", ">Deny<",
		">failing</b>", "failed</span>", " open>", "error: no rule &lt;x&gt;", `class="bad">error: no rule`,
		">building</b>", "running</span>", "2_story_audit", "Audit log", "Current", "step 1 ok",
		">claiming</b>", "5_story_pay", "Pay by card", "QA", " · claimed", ">Release its story</button>",
		">unassigned</b>", "no project", ">Assign</button>")
	release := []string{"do", "release", "next", "/agents"}
	page := s.follow(s.Submit("/projects/webshop/stories/5_story_pay", release...).WantStatus(t, http.StatusSeeOther))
	page.WantText(t, "The claim is released", "<h1>Agents</h1>").WantNoText(t, " · claimed", ">Release its story<")
	s.Submit(views.AnswerURL(q.ID), "value", "deny", "next", "/agents").WantStatus(t, http.StatusSeeOther)
	s.Get("/agents").WantText(t, "Wait for somebody", ">0").WantNoText(t, "rm -r build")

	// Nobody allows what they cannot read here.
	for _, long := range []string{`{"command":"a\nb\nc\nd"}`, `{"command":"` + strings.Repeat("x", 301) + `"}`, `{"command":"rm \u202e"}`} {
		q = ask(long)
		s.Get("/agents").WantText(t, "asks</span>", fmt.Sprint(views.QuestionsURL, "#question-", q.ID), "Read and answer").WantNoText(t, ">Allow<")
		s.Submit(views.AnswerURL(q.ID), "value", "deny").WantStatus(t, http.StatusSeeOther)
	}

	// A choice between two is answered in its line, one between more on its page.
	for _, options := range [][]string{{"carts", "orders"}, {"carts", "orders", "both"}} {
		which := domain.Question{Project: "webshop", Kind: domain.QuestionChoice, Prompt: "Which table?", Options: options}
		q, err := s.Questions.Ask(domain.WithActor(t.Context(), &who), which, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if page := s.Get("/agents"); strings.Contains(page.Text, `name="option" value="2"`) != (len(options) == 2) {
			t.Errorf("%d options: %s", len(options), page.Text)
		}
		s.Submit(views.AnswerURL(q.ID), "option", "2", "next", "/agents").WantStatus(t, http.StatusSeeOther)
		s.wantAnswer(q, "orders")
	}

	// What explains it is shown with it if it is short.
	for detail, isHere := range map[string]bool{"Both have an index.": true, strings.Repeat("long ", 60): false} {
		which := domain.Question{Project: "webshop", Kind: domain.QuestionChoice, Prompt: fmt.Sprint("Which? ", isHere), Options: []string{"a", "b"}, Detail: detail}
		q, err := s.Questions.Ask(domain.WithActor(t.Context(), &who), which, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if page := s.Get("/agents"); strings.Contains(page.Text, `name="option" value="2"`) != isHere {
			t.Errorf("with %q: %s", detail, page.Text)
		}
		s.Submit(views.AnswerURL(q.ID), "option", "2", "next", "/agents").WantStatus(t, http.StatusSeeOther)
	}
}
