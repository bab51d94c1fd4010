package api_test

import (
	"strings"
	"testing"

	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
)

// reviewBoard is a board whose story 1_a an agent has taken to QA, with a place at each of the heads.
func reviewBoard(t *testing.T) (s *tokenSite, b *claimBoard, agent string, review func(body string) string) {
	s, b, agent = claimSite(t)
	b.setHeads("1_a", "aaaa1111", "bbbb2222")
	s.want(s.as(agent, "POST", gammaStories+"/claim", ""), `200 `, `"story_id":"1_a"`, `"review":null`)
	s.want(s.as(agent, "PATCH", gammaStories+"/1_a", `{"version":"v","stage":"3_qa"}`), `200 `)
	return s, b, agent, func(body string) string {
		return s.as(gatewaytest.AdminToken, "POST", gammaStories+"/1_a/review", body)
	}
}

func TestAStoryIsSentBackAndItsAgentGetsTheNote(t *testing.T) {
	s, _, agent, review := reviewBoard(t)
	s.want(review(`{"verdict":"sent_back","head":"aaaa1111","note":"say which currency"}`), `200 `, `"stage":"2_current"`,
		`"review":{"verdict":"sent_back","by":"admin","via":"api","at_ms":`,
		`"head":"aaaa1111","note":"say which currency","outdated":false,"taken_at_ms":null}`, `"claim":{"by":"builder"`)
	s.want(s.as(agent, "POST", gammaStories+"/claim", `{"resume":false,"look":true}`), `"taken_at_ms":null`)
	got := s.as(agent, "POST", gammaStories+"/claim", `{"resume":false}`)
	s.want(got, `200 `, `"story_id":"1_a"`, `"stage":"2_current"`, `"note":"say which currency"`, `"taken_at_ms":1`)
	s.want(s.as(agent, "POST", "/mcp", callTool("get_story", `{"story_id":"1_a"}`)), `\"review\":{\"verdict\":\"sent_back\"`)
	s.want(s.as(agent, "PATCH", gammaStories+"/1_a", `{"version":"v","stage":"3_qa"}`), `200 `)
	s.want(s.as(agent, "POST", gammaStories+"/claim", `{"resume":false}`), `"story_id":"2_b"`)

	events := s.as(gatewaytest.AdminToken, "GET", "/api/gateway/events?type=story_reviewed", "")
	s.want(events, `"project":"gamma"`, `"story_id":"1_a"`, `"story_name":"1_a"`, `"verdict":"sent_back"`, `"head":"aaaa1111"`,
		`"reason":"say which currency"`, `"by":"admin"`, `"via":"api"`)
	s.want(s.as(gatewaytest.AdminToken, "GET", gammaStories+"/1_a", ""), `"history":[{"id":`, `"type":"story_reviewed","verdict":"sent_back","via":"api"}`)
	page, err := s.Audit.Page(t.Context(), domain.AuditQuery{Limit: 9, Action: domain.ReviewMade})
	if err != nil || len(page.Entries) != 1 || page.Entries[0].Subject != "gamma/1_a" ||
		page.Entries[0].Detail != "sent back at aaaa1111; stage: 3_qa → 2_current; note: say which currency" {
		t.Errorf("%+v, %v", page.Entries, err)
	}
}

// TestASessionThatStopsGetsTheNote with which its story was sent back since it stopped last, once.
func TestASessionThatStopsGetsTheNote(t *testing.T) {
	s, _, agent, review := reviewBoard(t)
	stop := func(event string) string {
		return s.as(agent, "POST", "/api/hooks/claude-code", `{"hook_event_name":"`+event+`","session_id":"s"}`)
	}
	sentBack := func(note string) {
		s.want(review(`{"verdict":"sent_back","head":"aaaa1111","note":"`+note+`"}`), `200 `)
	}
	for _, event := range []string{"UserPromptSubmit", "Stop", "SubagentStop"} {
		if got := stop(event); got != "200 " {
			t.Errorf("%s: %s", event, got)
		}
	}
	sentBack(`say \"which\" currency`)
	if got := stop("PostToolUse"); got != "200 " {
		t.Error(got)
	}
	s.want(stop("Stop"), `200 {"decision":"block","reason":"say \"which\" currency"}`)
	s.want(s.as(agent, "GET", gammaStories+"/1_a", ""), `"taken_at_ms":1`)
	if got := stop("Stop"); got != "200 " {
		t.Errorf("a second time: %s", got)
	}
	s.want(review(`{"verdict":"approved","head":"aaaa1111","stage":"3_qa"}`), `200 `)
	if got := stop("Stop"); got != "200 " {
		t.Errorf("approved: %s", got)
	}
}

func TestAVerdictMovesAStoryWhereItIsDue(t *testing.T) {
	s, b, agent, review := reviewBoard(t)
	s.want(review(`{"verdict":"approved","head":"bbbb2222"}`), `200 `, `"stage":"5_done"`, `"verdict":"approved"`, `"note":null`)
	s.want(review(`{"verdict":"approved","head":"bbbb2222"}`), `200 `, `"stage":"5_done"`)
	s.want(review(`{"verdict":"approved","head":"bbbb2222","stage":"3_qa"}`), `200 `, `"stage":"3_qa"`)
	s.want(review(`{"verdict":"approved","head":"bbbb2222","stage":"3_qa"}`), `200 `, `"stage":"3_qa"`)
	s.want(s.as(agent, "DELETE", gammaStories+"/1_a/claim", ""), `204 `)
	s.want(review(`{"verdict":"sent_back","head":"bbbb2222","note":"no"}`), `200 `, `"stage":"1_backlog"`, `"claim":null`)
	b.fix("1_a", 403)
	s.want(review(`{"verdict":"approved","head":"bbbb2222"}`), `200 `, `"stage":"1_backlog"`, `"verdict":"approved"`)
	b.setHeads("1_a", "cccc3333")
	s.want(s.as(agent, "GET", gammaStories+"/1_a", ""), `"head":"bbbb2222"`, `"outdated":true`)
}

func TestAVerdictThatIsRefusedIsNotRecorded(t *testing.T) {
	s, b, agent, review := reviewBoard(t)
	long := strings.Repeat("x", 4001)
	for _, c := range []struct{ body, want string }{
		{`{"verdict":"sent_back","head":"aaaa1111"}`, "400 note: sending back needs a note"},
		{`{"verdict":"sent_back","head":"aaaa1111","note":" \n"}`, "400 note: sending back needs a note"},
		{`{"verdict":"sent_back","head":"aaaa1111","note":"` + long + `"}`, "400 note: must have at most 4000 characters"},
		{`{"verdict":"good","head":"aaaa1111"}`, "400 verdict:"},
		{`{"verdict":"approved"}`, "400 "},
		{`{"verdict":"approved","head":"dddd4444"}`, "409 "},
	} {
		s.want(review(c.body), c.want)
	}
	for status, want := range map[int]string{400: "400 not that one", 403: "403 not that one", 409: "409 not that one", 500: "502 "} {
		b.fix("1_a", status)
		s.want(review(`{"verdict":"approved","head":"aaaa1111","stage":"2_current"}`), want)
	}
	s.want(s.as(agent, "POST", gammaStories+"/1_a/review", `{"verdict":"approved","head":"aaaa1111"}`), "403 ")
	s.want(s.as(gatewaytest.AdminToken, "POST", gammaStories+"/9_none/review", `{"verdict":"approved","head":"a"}`), "404 ")
	s.want(s.as(agent, "GET", gammaStories+"/1_a", ""), `"review":null`)
	s.want(s.as(agent, "GET", "/api/gateway/events?type=story_reviewed", ""), `"events":[]`)
}

func TestAProjectsOwnReviewsAreForeign(t *testing.T) {
	s := newSite(t)
	s.Add("alpha", gatewaytest.StoryServer(t))
	s.Record("alpha", `{"type":"story_reviewed","story_id":"7_pay","story_name":"Pay","verdict":"approved","by":"boss","timestamp_ms":1000}`)
	if got := s.Send("GET", "/api/gateway/events", ""); !strings.Contains(got.Text, `"type":"foreign_story_reviewed"`) {
		t.Error(got.Text)
	}
}

// TestAHolderWritesInItsWorkTree: also without saying so, until that tree is gone.
func TestAHolderWritesInItsWorkTree(t *testing.T) {
	s, b, agent := claimSite(t)
	b.lack = map[string]string{"1_a": "/trees/2"}
	s.want(s.as(agent, "POST", gammaStories+"/claim", `{"worktree":"/trees/2"}`), `200 `, `"story_id":"2_b"`)
	s.want(s.as(agent, "POST", gammaStories+"/claim", `{"story_id":"1_a","to":"2_current","worktree":"/trees/2"}`), `404 `)
	s.want(s.as(agent, "POST", gammaStories+"/claim", `{"story_id":"1_a","worktree":"/trees/2"}`), `404 `)
	b.gone = "/trees/9"
	s.want(s.as(agent, "POST", gammaStories+"/claim", `{"story_id":"1_a","worktree":"/trees/9"}`), `400 `)
	s.want(s.as(agent, "GET", gammaStories+"/1_a", ""), `"claim":null`)
	s.want(s.as(agent, "PATCH", gammaStories+"/2_b", `{"version":"v","stage":"3_qa"}`), `200 `)
	s.want(s.as(agent, "PATCH", gammaStories+"/2_b", `{"version":"v","stage":"2_current","worktree":"/trees/3"}`), `200 `)
	s.want(s.as(agent, "PATCH", gammaStories+"/2_b", `{"version":"v","stage":"2_current","worktree":"/trees/4"}`), `200 `) // where it may be in another
	s.want(s.as(gatewaytest.AdminToken, "GET", "/api/gateway/audit", ""), `stage: 3_qa → 2_current; worktree: /trees/3`, `"stage: 2_current; worktree: /trees/4"`)
	b.gone = "/trees/2"
	s.want(s.as(agent, "PATCH", gammaStories+"/2_b", `{"version":"v","blocked":"a key"}`), `200 `)
	s.want(s.as(gatewaytest.AdminToken, "PATCH", gammaStories+"/2_b", `{"version":"v","blocked":null}`), `200 `)
	s.want(strings.Join(b.changes, "\n"),
		`{"stage":"2_current","version":"v","worktree":"/trees/2"}`+"\n"+`{"stage":"3_qa","version":"v","worktree":"/trees/2"}`+"\n"+
			`{"version":"v","stage":"2_current","worktree":"/trees/3"}`+"\n"+`{"version":"v","stage":"2_current","worktree":"/trees/4"}`+"\n"+`{"version":"v","blocked":"a key"}`+"\n"+`{"version":"v","blocked":null}`)
}

// TestChangesOfAStory come as the project server tells them; a model gets whole files as far as they fit.
func TestChangesOfAStory(t *testing.T) {
	s := newSite(t)
	s.Add("alpha", gatewaytest.StoryServer(t))
	const path = "/api/gateway/projects/alpha/stories/7_pay/changes"
	if got := s.Send("GET", path+"?branch=story/7", ""); got.StatusCode != 200 || got.Media() != asJSON || !strings.Contains(got.Text, `"diff":"diff --git a/a.go b/a.go\n+<b>`) {
		t.Errorf("%d %s", got.StatusCode, got.Text[:min(len(got.Text), 300)])
	}
	if got := s.Send("GET", path+"?since=abc", ""); got.StatusCode != 404 || got.Media() != plainText {
		t.Errorf("%d %s", got.StatusCode, got.Text)
	}
	got := s.Send("POST", "/mcp", callTool("get_changes", `{"project":"alpha","story_id":"7_pay"}`), "Accept", "application/json, text/event-stream")
	if got.StatusCode != 200 || !strings.Contains(got.Text, `\"more\":[\"b.go\"]`) || !strings.Contains(got.Text, `diff --git a/a.go`) || len(got.Text) > 3000 {
		t.Errorf("%d %s", got.StatusCode, got.Text[:min(len(got.Text), 3000)])
	}
}
