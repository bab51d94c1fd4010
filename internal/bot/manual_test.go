package bot_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"switchyard/internal/bottest"
	"switchyard/internal/domain"
)

// TestTheManualShowsWhatRoomsGet of a permission and its answer, word for word, on each network.
func TestTheManualShowsWhatRoomsGet(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile("../../docs/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	asked := domain.Question{
		Kind: domain.QuestionPermission, Prompt: "May I use Bash?", Project: "webshop", StoryID: "2_story_audit",
		Tool: &domain.ToolUse{Name: "Bash", Input: json.RawMessage(`{"command":"npx playwright install chromium"}`)},
	}
	shows := func(posts ...string) {
		t.Helper()
		for _, post := range posts {
			if !strings.Contains(string(manual), "\n"+post+"\n") {
				t.Errorf("docs/agents.md does not show\n%s", post)
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		p, h := joined(t)
		p.gateway.questions.ask(asked)
		h.Event("!ops", bottest.Operator, "m.reaction", reaction(roomPosts(t, h, "!ops", 1)[0].ID, "👍"))
		posts := roomPosts(t, h, "!ops", 2)
		shows(posts[0].Body, posts[1].Body)
	})
	synctest.Test(t, func(t *testing.T) {
		p, s := team(t)
		p.gateway.questions.ask(asked)
		shows(teamPosts(t, s, 1)[0].Text)
	})
}
