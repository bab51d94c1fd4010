package console_test

import (
	"strings"
	"testing"
	"time"

	"switchyard/handlers"
	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/service"
	"switchyard/internal/waittest"
)

// TestPagesShowWhatSessionsDo: those that wait first; without any, Agents says how one comes here.
func TestPagesShowWhatSessionsDo(t *testing.T) {
	client := gatewaytest.NewProjectClient(t)
	s := gatewaytest.NewSite(t, service.Options{Projects: client, Stories: client}, handlers.Gateway{})
	if page := s.Get("/agents").WantStatus(t, 200).Text; !strings.Contains(page, "switchyard hook settings") || !strings.Contains(page, "SWITCHYARD_GATEWAY_URL="+s.URL) {
		t.Errorf("without any: %s", page)
	}
	heard := func(session string, e domain.HookEvent) {
		e.Session, e.Host, e.CWD = session, "mara-mbp", "/src/<b>"
		s.Sessions.Receive(t.Context(), e)
	}
	heard("works", domain.HookEvent{Name: "PreToolUse", Tool: "<i>Bash", Branch: "fix/sort"})
	heard("waits", domain.HookEvent{Name: "Notification", Notification: "permission_prompt", Client: "codex"})
	heard("gone", domain.HookEvent{Name: "SessionEnd"})
	page := s.Get("/agents").WantStatus(t, 200).WantText(t, "Wait for somebody</dt>", "Wait for somebody <", "Codex on mara-mbp", "/src/&lt;b&gt;", "at its terminal", "Work <", "Claude Code on mara-mbp", "fix/sort", "&lt;i&gt;Bash", "Ended today", "Connect a session of your own").Text
	if strings.Index(page, "waits</span>") > strings.Index(page, "working</span>") {
		t.Errorf("the page: %s", page)
	}
	zoe := domain.WithActor(t.Context(), &domain.Actor{Who: "zoe", Account: "token z", Role: domain.RoleOperator, Channel: domain.ChannelHook})
	s.Sessions.Receive(zoe, domain.HookEvent{Name: "PreToolUse", Session: "hers", Host: "zoe-pc", Worktree: "/src/pay", Branch: "fix/\u202epay"})
	s.Get("/agents").WantText(t, "All <", ">3<", "Sent by this yard <", ">0<", "People’s own <", ">3<", "Mine <", ">2<", "<em>you</em>", ">zoe</b>")
	s.Get("/agents?show=mine").WantText(t, "<em>you</em>").WantNoText(t, ">zoe</b>")
	s.Get("/agents?show=own").WantText(t, ">zoe</b>", "fix/U+202Epay")
	s.Get("/agents?show=sent").WantText(t, "No matching agents").WantNoText(t, ">zoe</b>")

	which := domain.Question{Kind: domain.QuestionChoice, Prompt: "Which table?", Options: []string{"carts", "orders"}, Session: "hers", Lasting: true}
	if _, err := s.Questions.Ask(zoe, which, time.Hour); err != nil {
		t.Fatal(err)
	}
	s.Get("/questions").WantText(t, "zoe’s session", "asks which way", "fix/U+202Epay", "Its own terminal may answer, too").WantNoText(t, "\u202e")
}

// TestAWagonAndACardShowTheSessionOfTheirStory: what it does, and since when.
func TestAWagonAndACardShowTheSessionOfTheirStory(t *testing.T) {
	s := newStorySite(t, true, map[string]string{"2_current/2_story_audit.md": "# Audit\n"})
	zoe := domain.WithActor(t.Context(), &domain.Actor{Who: "zoe", Account: "token z", Role: domain.RoleOperator, Channel: domain.ChannelHook})
	if _, _, err := s.Claims.Claim(zoe, "webshop", service.ClaimRequest{StoryID: "2_story_audit"}); err != nil {
		t.Fatal(err)
	}
	s.Sessions.Receive(zoe, domain.HookEvent{Name: "PreToolUse", Session: "works", Tool: "Bash", Project: "webshop"})
	waittest.Until(t, "the wagon", func() bool {
		page := s.Get("/").Text
		return strings.Contains(page, `title="session: working"`) && strings.Contains(page, "session working, ")
	})
	s.Get("/projects/webshop").WantText(t, ">working</span>  for <time")
}
