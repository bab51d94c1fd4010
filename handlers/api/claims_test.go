package api_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"switchyard/internal/gatewaytest"
)

// claimBoard is a project server whose answers to changes may be lost.
type claimBoard struct {
	mu      sync.Mutex
	stages  map[string]string // of stories
	blocked map[string]string
	fixed   map[string]int      // the status of changes to stories that are not writable
	changes []string            // the bodies of those that were carried out
	lose    string              // "answer", or "change" with it
	heads   map[string][]string // of the places of stories
	lack    map[string]string   // a work tree that does not have a story
	gone    string              // a work tree that is no longer there
	merge   http.HandlerFunc    // merges a branch
}

var claimStages = []string{"1_backlog", "2_current", "3_qa", "5_done"}

func newClaimBoard(s *gatewaytest.Site, project string, ids ...string) *claimBoard {
	b := &claimBoard{stages: map[string]string{}, blocked: map[string]string{}}
	for _, id := range ids {
		b.stages[id] = claimStages[0]
	}
	s.Add(project, gatewaytest.ProjectServer(s, b.pipeline, func(mux *http.ServeMux) {
		mux.HandleFunc("GET /api/stories/{id}", func(w http.ResponseWriter, r *http.Request) { b.story(w, r.PathValue("id")) })
		mux.HandleFunc("PATCH /api/stories/{id}", b.change)
		mux.HandleFunc("POST /api/stories/{id}/merge", func(w http.ResponseWriter, r *http.Request) { b.merge(w, r) })
	}))
	return b
}

func (b *claimBoard) object(id string) map[string]any {
	story := map[string]any{
		"story_id": id, "story_name": id, "stage": b.stages[id], "since_ms": 1, "version": "v", "writable": true, "blocked": nil,
		"depends_on": []string{"0"}, "tasks": []any{map[string]any{"path": "a/tasks.md", "line": 1, "text": "a box"}},
	}
	if reason := b.blocked[id]; reason != "" {
		story["blocked"] = reason
	}
	if b.fixed[id] != 0 {
		story["writable"] = false
	}
	work := []any{}
	for _, head := range b.heads[id] {
		work = append(work, map[string]any{"branch": "story/" + head, "worktree": "/trees/" + head, "head": head, "ahead": 1, "link": "name"})
	}
	story["work"] = work
	return story
}

func (b *claimBoard) pipeline(w http.ResponseWriter, _ *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	stages := []any{}
	for _, stage := range claimStages {
		items := []any{}
		for id := range b.stages {
			if b.stages[id] == stage {
				item := b.object(id)
				delete(item, "work") // which items have in another form
				items = append(items, item)
			}
		}
		stages = append(stages, map[string]any{"name": stage, "items": items})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"project": "x", "stages": stages})
}

func (b *claimBoard) story(w http.ResponseWriter, id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stages[id] == "" {
		http.Error(w, "no such story", http.StatusNotFound)
		return
	}
	_ = json.NewEncoder(w).Encode(b.object(id))
}

func (b *claimBoard) change(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var asked struct {
		Stage, Blocked *string
		Worktree       string
	}
	_ = json.Unmarshal(body, &asked)
	id := r.PathValue("id")
	b.mu.Lock()
	status, said := b.fixed[id], "not that one"
	switch asked.Worktree {
	case "":
	case b.lack[id]:
		status = http.StatusNotFound
	case b.gone:
		status, said = http.StatusBadRequest, "worktree: none"
	}
	if status != 0 {
		b.mu.Unlock()
		http.Error(w, said, status)
		return
	}
	lose := b.lose
	if lose != "change" {
		b.changes = append(b.changes, string(body))
		if b.blocked[id] = ""; asked.Blocked != nil {
			b.blocked[id] = *asked.Blocked
		}
		if asked.Stage != nil {
			b.stages[id] = *asked.Stage
		}
	}
	b.mu.Unlock()
	if lose != "" {
		panic(http.ErrAbortHandler)
	}
	b.story(w, id)
}

func (b *claimBoard) setHeads(id string, heads ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.heads = map[string][]string{id: heads}
}

func (b *claimBoard) fix(id string, status int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fixed = map[string]int{id: status}
}

func (b *claimBoard) put(id, stage, blocked string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stages[id], b.blocked[id] = stage, blocked
}

// claimSite is a gateway with an agent, whose token is bearer, and a board of four stories.
func claimSite(t *testing.T) (s *tokenSite, b *claimBoard, bearer string) {
	s = newTokenSite(t)
	b = newClaimBoard(s.Site, "gamma", "1_a", "2_b", "3_c", "4_d")
	s.assign("gamma")
	return s, b, s.issue("gamma")
}

const gammaStories = "/api/gateway/projects/gamma/stories"

// as sends a request with a token, and returns status and text.
func (s *tokenSite) as(bearer, method, path, body string) string {
	s.Helper()
	got := s.Send(method, path, body, "Authorization", "Bearer "+bearer, "Accept", "application/json, text/event-stream")
	return fmt.Sprintf("%d %s", got.StatusCode, got.Text)
}

func (s *tokenSite) want(got string, texts ...string) {
	s.Helper()
	for _, text := range texts {
		if !strings.Contains(got, text) {
			s.Errorf("%s is not in %s", text, got)
		}
	}
}

func callTool(name, arguments string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `","arguments":` + arguments + `}}`
}

// TestAMoveWhoseAnswerIsLostIsDone: the story is where it was to go, so it is claimed, in the audit, and its history says who.
func TestAMoveWhoseAnswerIsLostIsDone(t *testing.T) {
	s, b, agent := claimSite(t)
	b.lose = "answer"
	s.want(s.as(agent, "POST", gammaStories+"/claim", ""), `200 `, `"story_id":"1_a"`, `"stage":"2_current"`, `"claim":{"by":"builder"`)
	s.want(s.as(agent, "PATCH", gammaStories+"/1_a", `{"version":"v","stage":"3_qa"}`), `200 `, `"story_id":"1_a"`, `"stage":"3_qa"`)
	s.want(s.as(agent, "POST", "/mcp", callTool("update_story", `{"project":"gamma","story_id":"1_a","stage":"2_current"}`)), `\"stage\":\"2_current\"`)
	s.want(s.as(gatewaytest.AdminToken, "PATCH", gammaStories+"/2_b", `{"version":"v","blocked":"a key"}`), `200 `, `"blocked":"a key"`)
	s.want(s.as(gatewaytest.AdminToken, "GET", "/api/gateway/audit", ""), `stage: 1_backlog → 2_current`, `stage: 2_current → 3_qa`, `stage: 3_qa → 2_current`, `blocked: none → a key`)
	s.Record("gamma", `{"type":"stage_transition","story_id":"1_a","story_name":"1_a","from_stage":"1_backlog","to_stage":"2_current","timestamp_ms":1000}`)
	s.want(s.as(gatewaytest.AdminToken, "GET", gammaStories+"/1_a", ""), `"by":"builder"`)
	b.lose = "change"
	s.want(s.as(agent, "POST", gammaStories+"/claim", `{"resume":false}`), `502 `)
	s.want(s.as(agent, "PATCH", gammaStories+"/1_a", `{"version":"v","stage":"5_done"}`), `502 `)
	s.want(s.as(gatewaytest.AdminToken, "GET", gammaStories+"/3_c", ""), `"stage":"1_backlog"`, `"claim":null`)
}

// TestAnAgentGoesOnWithWhatItHolds before it gets another story; other callers do so when they ask for it.
func TestAnAgentGoesOnWithWhatItHolds(t *testing.T) {
	s, b, agent := claimSite(t)
	claim := func(bearer, body string, texts ...string) {
		t.Helper()
		s.want(s.as(bearer, "POST", gammaStories+"/claim", body), texts...)
	}
	claim(agent, `{"look":true}`, `"story_id":"1_a"`, `"stage":"1_backlog"`, `"claim":null`)
	claim(agent, ``, `"story_id":"1_a"`, `"stage":"2_current"`)
	claim(agent, ``, `"story_id":"1_a"`, `"stage":"2_current"`)
	claim(agent, `{"resume":false}`, `"story_id":"2_b"`)
	s.want(s.as(agent, "POST", "/mcp", callTool("claim_story", `{}`)), `\"story_id\":\"1_a\"`)
	b.put("1_a", "2_current", "a key")
	claim(agent, ``, `"story_id":"2_b"`)
	b.put("1_a", "2_current", "")
	claim(agent, ``, `"story_id":"1_a"`)
	b.put("1_a", "3_qa", "") // it has been moved on
	claim(agent, `{"look":true}`, `"story_id":"2_b"`)
	const program = gatewaytest.AdminToken
	claim(program, `{"to":""}`, `"story_id":"3_c"`, `"stage":"1_backlog"`)
	claim(program, ``, `"story_id":"4_d"`)
	claim(program, `{"resume":true}`, `"story_id":"3_c"`)
	claim(program, ``, `204 `)
	b.put("3_c", "2_current", "")
	claim(program, `{"resume":true}`, `"story_id":"4_d"`)
}

// TestAClaimPassesOverWhatCannotBeWritten on a board that is; where nothing is, the claim counts and the story stays.
func TestAClaimPassesOverWhatCannotBeWritten(t *testing.T) {
	s, b, agent := claimSite(t)
	b.fixed = map[string]int{"1_a": 409, "3_c": 403}
	claim := func(body string, texts ...string) {
		t.Helper()
		s.want(s.as(agent, "POST", gammaStories+"/claim", body), texts...)
	}
	claim(``, `200 `, `"story_id":"2_b"`, `"stage":"2_current"`)
	claim(`{"resume":false}`, `200 `, `"story_id":"3_c"`, `"stage":"1_backlog"`)
	claim(`{"story_id":"1_a"}`, `200 `, `"story_id":"1_a"`, `"stage":"1_backlog"`)
	claim(`{"from":"1_never"}`, `400 from: there is no stage '1_never'`)
	claim(`{"from":"1_backlog","to":"3_qa"}`, `200 `, `"story_id":"2_b"`)
	s.want(s.as(agent, "POST", "/mcp", callTool("claim_story", `{}`)), `\"depends_on\":[\"0\"]`,
		`\"tasks\":[{\"path\":\"a/tasks.md\",\"line\":1,\"text\":\"a box\",\"done\":false,\"optional\":false}]`)
}

// TestOperatorsHelpWithAClaimedStory: they block and unblock it, clear its failed merge and tick boxes, and its holder goes on with
// it. Moving it takes it over; other agents may do neither.
func TestOperatorsHelpWithAClaimedStory(t *testing.T) {
	s, b, agent := claimSite(t)
	s.want(s.as(agent, "POST", gammaStories+"/claim", ""), `"story_id":"1_a"`)
	const operator = gatewaytest.AdminToken
	patch := func(change string) string {
		return s.as(operator, "PATCH", gammaStories+"/1_a", `{"version":"v",`+change+`}`)
	}
	s.want(s.as(agent, "PATCH", gammaStories+"/1_a", `{"version":"v","blocked":"a key"}`), `200 `)
	s.want(patch(`"blocked":null`), `200 `)
	s.want(patch(`"merge_failure":null`), `200 `)
	s.want(patch(`"task":{"line":1,"done":true}`), `200 `)
	s.want(s.as(operator, "POST", "/mcp", callTool("update_story", `{"project":"gamma","story_id":"1_a","blocked":"a key"}`)), `\"blocked\":\"a key\"`)
	s.want(s.as(operator, "POST", "/mcp", callTool("update_story", `{"project":"gamma","story_id":"1_a","task":{"line":2,"done":true}}`)), `\"story_id\":\"1_a\"`)
	s.want(s.as(operator, "GET", gammaStories+"/1_a", ""), `"claim":{"by":"builder"`)
	s.want(patch(`"stage":"3_qa"`), `409 `, `is claimed by builder`)
	s.want(patch(`"stage":"3_qa","blocked":null`), `409 `)
	s.want(patch(`"take_over":true,"stage":"3_qa"`), `200 `)
	s.want(s.as(agent, "PATCH", gammaStories+"/1_a", `{"version":"v","blocked":null}`), `409 `, `is claimed by`)
	if slices.ContainsFunc(b.changes, func(c string) bool { return strings.Contains(c, "take_over") }) {
		t.Errorf("the project server got %v", b.changes)
	}
}

// TestMCPUnderstandsWhatIsMeant: a stage by its word, a story by its number, an agent's project without a name. What fits several,
// or none, is answered with the choices.
func TestMCPUnderstandsWhatIsMeant(t *testing.T) {
	s, b, agent := claimSite(t)
	b.put("TASK-010", "1_backlog", "")
	b.put("task-011", "1_backlog", "")
	b.put("bug-011", "1_backlog", "")
	call := func(name, arguments string, texts ...string) {
		t.Helper()
		s.want(s.as(agent, "POST", "/mcp", callTool(name, arguments)), texts...)
	}
	call("list_stories", `{"stage":"Backlog"}`, `\"story_id\":\"1_a\"`, `\"story_id\":\"TASK-010\"`)
	call("claim_story", `{"story_id":"2"}`, `\"story_id\":\"2_b\"`)
	call("claim_story", `{"story_id":"task-10"}`, `\"story_id\":\"TASK-010\"`)
	call("claim_story", `{"story_id":"task-11","to":"current"}`, `\"story_id\":\"task-011\"`, `\"stage\":\"2_current\"`)
	call("claim_story", `{"story_id":"11"}`, `story_id: '11' may be each of the stories bug-011, task-011`, `"isError":true`)
	call("update_story", `{"story_id":"2_b","stage":"QA"}`, `\"stage\":\"3_qa\"`)
	call("update_story", `{"story_id":"2_b","stage":"finished"}`, `The stages are: 1_backlog, 2_current, 3_qa, 5_done`, `"isError":true`)
	call("get_story", `{"story_id":"2"}`, `\"story_id\":\"2_b\"`, `\"version\":\"v\"`)
	call("wait_for_events", `{"story_id":"2"}`, `\"stage\":\"3_qa\"`)
	call("overview", `{}`, `\"you\":{\"by\":\"builder\",\"agent_id\":\"`+s.id+`\",\"project\":\"gamma\",\"claims\":[{\"project\":\"gamma\",\"story_id\":\"2_b\",\"stage\":\"3_qa\"}`)
	call("release_story", `{"story_id":"task-10"}`, `\"ok\":true`)
	call("release_story", `{"project":"alpha","story_id":"x"}`, `this token may change project 'gamma' only`)
}

// TestListsAndClaimsCostAModelLittle: 250 tokens of 4 bytes for eight stories, 200 for one.
func TestListsAndClaimsCostAModelLittle(t *testing.T) {
	s, b, agent := claimSite(t)
	for _, id := range []string{"5_story_pay", "6_story_mail", "7_story_login", "8_story_search"} {
		b.put(id, "1_backlog", "")
	}
	text := func(tool, arguments string) string {
		t.Helper()
		_, answer, _ := strings.Cut(s.as(agent, "POST", "/mcp", callTool(tool, arguments)), " ")
		var result struct {
			Result struct{ Content []struct{ Text string } }
		}
		if err := json.Unmarshal([]byte(answer), &result); err != nil || len(result.Result.Content) == 0 {
			t.Fatalf("%v: %s", err, answer)
		}
		return result.Result.Content[0].Text
	}
	claimed, listed := text("claim_story", `{}`), text("list_stories", `{}`)
	if len(claimed) > 800 || len(listed) > 1000 || strings.Count(listed, "story_id") != 8 {
		t.Errorf("%d bytes: %s\n%d bytes: %s", len(claimed), claimed, len(listed), listed)
	}
	for _, long := range []string{"null", "_ms", "version"} {
		if strings.Contains(claimed+listed, long) {
			t.Errorf("%s is in %s %s", long, claimed, listed)
		}
	}
}
