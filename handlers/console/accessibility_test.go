package console_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"switchyard/internal/browsertest"
	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/service"
)

// newWholeSite is a gateway with everything set up, something in every state, and an admin token.
func newWholeSite(t testing.TB) *consoleSite {
	t.Helper()
	s := &consoleSite{boards: &boards{pipelines: map[string][]domain.Stage{}}}
	s.Site = gatewaytest.NewWholeSite(t, service.Options{Projects: s.boards, Stories: s.boards}, gatewaytest.AdminToken)
	s.URL = strings.Replace(s.URL, "127.0.0.1", "localhost", 1)

	s.add("alpha", board("1_backlog: 30_story_export", "2_current: 14_story_login, 9_story_search", "3_qa: 12_story_pay!waiting for a key", "5_done: 1_story_first"))
	s.add("beta", board("1_backlog:", "2_current:", "4_merge: 7_story_cache?conflict in go.mod", "5_done:"))
	s.add("gamma", nil)
	if err := s.Projects.Switch(t.Context(), "alpha"); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for i, story := range []string{"1_story_first", "2_story_second", "3_story_third"} {
		began := now.Add(-time.Duration(i+2) * 26 * time.Hour)
		s.move("alpha", story, "1_backlog", "2_current", began)
		s.move("alpha", story, "2_current", "3_qa", began.Add(3*time.Hour))
		s.move("alpha", story, "3_qa", "5_done", began.Add(20*time.Hour))
	}
	ms := now.UnixMilli()
	s.Record("alpha", fmt.Sprintf(`{"type":"story_blocked","story_id":"12_story_pay","story_name":"Pay","reason":"waiting for a key","timestamp_ms":%d}`, ms))
	s.Record("beta", fmt.Sprintf(`{"type":"merge_failure","story_id":"7_story_cache","story_name":"Cache","reason":"conflict in go.mod","timestamp_ms":%d}`, ms))
	s.Record("beta", fmt.Sprintf(`{"type":"feed_gap","missed":3,"timestamp_ms":%d}`, ms))
	s.says(s.join("builder-1"), domain.AgentRunning, "14_story_login")
	s.join("builder-2")
	return s
}

// TestEveryPageIsAccessible checks every page for people with poor sight, a keyboard or a screen reader: light
// and dark, on a phone, a desktop and a wall display.
func TestEveryPageIsAccessible(t *testing.T) {
	browsertest.Parallel(t)
	s := newWholeSite(t)
	tab := browsertest.Open(t)
	inspect := func() { tab.AccessibleAt(360, 768, 1280, 2560) }
	check := func(path string) {
		t.Helper()
		tab.Goto(s.URL + path)
		inspect()
	}
	// refused checks a page with an error status, which the browser logs.
	refused := func(path string) {
		t.Helper()
		check(path)
		for _, complaint := range tab.Complaints() {
			if !strings.Contains(complaint, "the server responded with a status of 4") {
				t.Errorf("%s: the browser's console: %s", path, complaint)
			}
		}
	}

	check("/login")
	refused("/callback?error=access_denied")
	tab.Goto(s.URL + "/login")
	tab.Find("textbox", "Token").Type(gatewaytest.AdminToken)
	tab.Find("button", "Log in").Click()
	tab.Find("heading", "Overview")
	refused("/no-such-page")
	for _, q := range []domain.Question{
		permissionFor("make"), permissionFor(strings.Repeat(`echo line\n`, 50)),
		{Kind: domain.QuestionText, Prompt: "Which?"},
		{Kind: domain.QuestionChoice, Prompt: "Which way?", Options: []string{"left", "right"}, Detail: "The map."},
	} {
		s.asks(q)
	}
	for _, path := range []string{"/", "/projects", "/projects/alpha", "/projects/gamma", "/projects/alpha/stories/12_story_pay", "/search?q=story", "/agents", "/events", "/waiting", "/questions", "/notifications?kind=ntfy", "/flow", "/bot-config", "/sign-in"} {
		check(path)
	}
	tab.Goto(s.URL + "/access")
	tab.Find("textbox", "Name").Type("dashboard")
	tab.Find("button", "Create token").Click()
	tab.WaitText("Copy it now")
	inspect()
	check("/access")
	check("/audit")
	tab.Goto(s.URL + "/agents")
	tab.Find("button", "Add agent").Click()
	tab.WaitText("Waiting for the agent…")
	inspect()
	token := browsertest.Eval[string](tab, `document.getElementById('join-token').textContent`)
	s.redeem(token, "builder-3")
	tab.WaitText("builder-3 joined")
	inspect()
	tab.Goto(s.URL + "/oauth/authorize")
	tab.Find("link", "Allow").Click()
	tab.WaitText("Login successful")
	inspect()
}
