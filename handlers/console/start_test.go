package console_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"switchyard/handlers"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/service"
)

// TestAnEmptyGatewaySaysWhatToType in one place, which both pages show.
func TestAnEmptyGatewaySaysWhatToType(t *testing.T) {
	s := newConsoleSite(t)
	for _, path := range []string{"/", "/projects"} {
		s.Get(path).WantText(t, "No project yet", "switchyard up ~/src/my-project", "switchyard project --name", `value="localhost:3001"`, ">Look<", ">Add project<").WantNoText(t, "Add a project")
	}
	s.add("webshop", board("1_backlog:", "2_current: 4_story_pay", "3_done:"))
	s.Get("/").WantText(t, `href="/waiting"`).WantNoText(t, "No project yet")
}

var (
	ticked = regexp.MustCompile(`name="(?:alerts|events|quiet)" value="(\w+)" checked`)
	chosen = regexp.MustCompile(`name="digest" value="(\w+)" checked`)
)

// TestANewTargetHasWhatIsWantedMost by its kind, by the reader's clock.
func TestANewTargetHasWhatIsWantedMost(t *testing.T) {
	s := newConsoleSite(t)
	for _, c := range []struct {
		kind, digest string
		has, lacks   []string
	}{
		{"ntfy", "none", []string{"question", "blocked", "unreachable", "on"}, []string{"stuck", "stage_transition"}},
		{"slack", "hourly", []string{"question", "stage_transition", "merge_failure"}, []string{"stuck", "feed_gap", "on"}},
		{"mail", "daily", []string{"question", "stage_transition"}, []string{"stuck", "on"}},
		{"webhook", "none", []string{"question", "stuck", "clock_ahead", "stage_transition", "feed_gap"}, []string{"on"}},
	} {
		page := s.Get("/notifications?kind="+c.kind, "Cookie", "switchyard_zone=Asia%2FTokyo").WantText(t, `value="Asia/Tokyo"`)
		var ticks []string
		for _, m := range ticked.FindAllStringSubmatch(page.Text, -1) {
			ticks = append(ticks, m[1])
		}
		isTicked := func(value string) bool { return slices.Contains(ticks, value) }
		if slices.ContainsFunc(c.has, func(value string) bool { return !isTicked(value) }) || slices.ContainsFunc(c.lacks, isTicked) {
			t.Errorf("%s has ticks at %q", c.kind, ticks)
		}
		if m := chosen.FindStringSubmatch(page.Text); m == nil || m[1] != c.digest {
			t.Errorf("%s is sent %q, want %q", c.kind, m, c.digest)
		}
		if n := strings.Count(page.Text, "Add a target"); n != 1 {
			t.Errorf("%s: Add a target stands there %d times", c.kind, n)
		}
	}
}

// TestTheBotsPageSaysWhoMayCommandIt and how it comes into a room, or what to write where nobody may.
func TestTheBotsPageSaysWhoMayCommandIt(t *testing.T) {
	for operators, want := range map[string]string{
		"":                  "operators = [&#34;@you:example.org&#34;]",
		"@mara:example.org": "<bdi>@mara:example.org</bdi>",
	} {
		s := gatewaytest.NewSite(t, service.Options{Bot: &gatewaytest.Bot{}, BotOperators: strings.Fields(operators)}, handlers.Gateway{})
		s.Get("/bot-config").WantText(t, ">Saved<", ">Connected<", ">May be commanded<", ">In rooms<", "Who may command it", want, "without encryption", "/invite @switchyard", "docs/bot.md")
	}
}
