package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/waittest"
)

// TestPagesShowTheSameOwner: a wagon, a card, the waiting list and the story's page have the badge of whoever has claimed the
// story, else of the agent whose output has its id as a word.
func TestPagesShowTheSameOwner(t *testing.T) {
	s := newStorySite(t, true, map[string]string{"2_current/2_story_audit.md": "# Audit\n", "2_current/12_story_audit.md": "# Other\n", "1_backlog/3_story.md": "# Free\n"})
	agent := s.join("builder-1")
	if _, err := s.Agents.Assign(t.Context(), agent.ID, "webshop"); err != nil {
		t.Fatal(err)
	}
	pages := []string{"/", "/projects/webshop", "/waiting", auditPage}
	badges := func(name string, want int) {
		t.Helper()
		for _, page := range pages {
			waittest.Until(t, page+" with the badge of "+name, func() bool {
				text := s.Get(page).Text
				return strings.Count(text, `="`+name+` is at work"`)+strings.Count(text, "<bdi>"+name+"</bdi> works on it") >= want
			})
			if other := s.Get(page); want > 0 && strings.Contains(strings.ReplaceAll(other.Text, name+" is at work", ""), " is at work") {
				t.Errorf("%s has another badge", page)
			}
		}
	}
	s.says(agent, domain.AgentIdle, "working on 12_story_audit-2, x2_story_audit")
	for _, page := range pages {
		s.Get(page).WantNoText(t, " is at work", "</bdi> works on it")
	}
	s.says(agent, domain.AgentRunning, "claimed 2_story_audit, go")
	badges("builder-1", 1)
	s.says(agent, domain.AgentRunning, "claimed 2_story_audit, go\nall \u202etests pass\n\n")
	waittest.Until(t, "the last line of its output", func() bool {
		return strings.Contains(s.Get("/").Text, `data-says="all U+202Etests pass"`)
	})
	zoe := domain.Actor{Who: "zoe", Account: "token z", Role: domain.RoleOperator, Channel: domain.ChannelMCP}
	if _, _, err := s.Claims.Claim(domain.WithActor(t.Context(), &zoe), "webshop", service.ClaimRequest{StoryID: "2_story_audit", To: "3_qa"}); err != nil {
		t.Fatal(err)
	}
	badges("zoe", 1)
	s.move("webshop", "2_story_audit", "2_current", "3_qa", time.Now())
	s.Get(auditPage).WantText(t, "claimed by <bdi>zoe</bdi>", "by zoe over MCP")
	s.Get("/projects/webshop").WantText(t, "Latest moves", "by zoe over MCP")
}

// TestAStoryIsClaimedByPlainForms: claimed, taken over and released, and found by Mine.
func TestAStoryIsClaimedByPlainForms(t *testing.T) {
	s := newStorySite(t, true, map[string]string{"2_current/2_story_audit.md": "# Audit\n", "1_backlog/3_story.md": "# Free\n"})
	const board = "/projects/webshop"
	zoe := domain.Actor{Who: "zoe", Account: "token z", Role: domain.RoleOperator}
	if _, _, err := s.Claims.Claim(domain.WithActor(t.Context(), &zoe), "webshop", service.ClaimRequest{StoryID: "2_story_audit"}); err != nil {
		t.Fatal(err)
	}
	page := s.Get(auditPage).WantText(t, ">Take over</button>", ">Release</button>", "claimed by")
	page.WantNoText(t, ">Claim</button>")
	s.Get(board+"?show=mine").WantNoText(t, "2_story_audit", "3_story")
	s.Get(board+"?show=claimed").WantText(t, "2_story_audit").WantNoText(t, `href="/projects/webshop/stories/3_story`)
	refused := s.Submit(auditPage, "do", "move", "stage", "3_qa", "version", version(t, page)).WantStatus(t, http.StatusConflict)
	refused.WantText(t, "is claimed by zoe")
	s.Submit("/projects/webshop/stories/3_story", "do", "claim").WantStatus(t, http.StatusSeeOther)
	s.Submit("/projects/webshop/stories/3_story", "do", "release").WantStatus(t, http.StatusSeeOther)
	s.Submit(auditPage, "do", "claim").WantStatus(t, http.StatusConflict).WantText(t, "is claimed by zoe")
	s.Submit(auditPage, "do", "take_over").WantStatus(t, http.StatusSeeOther)
	page = s.Get(auditPage).WantText(t, ">Release</button>", "claimed by <bdi>admin</bdi>")
	page.WantNoText(t, ">Take over</button>")
	s.Get(board+"?show=mine").WantText(t, "2_story_audit").WantNoText(t, `href="/projects/webshop/stories/3_story`)
	s.Submit(auditPage, "do", "move", "stage", "3_qa", "version", version(t, page)).WantStatus(t, http.StatusSeeOther)
	s.Submit(auditPage, "do", "release").WantStatus(t, http.StatusSeeOther)
	s.Get(auditPage).WantText(t, ">Claim</button>").WantNoText(t, "claimed by", ">Release</button>")
	s.Submit(auditPage, "do", "claim").WantStatus(t, http.StatusSeeOther)
	if story := s.Get(auditPage); len(markupFaults(story.Text)) > 0 {
		t.Error(markupFaults(story.Text))
	}
	s.Submit("/projects/webshop/stories/none", "do", "claim").WantStatus(t, http.StatusNotFound)
}
