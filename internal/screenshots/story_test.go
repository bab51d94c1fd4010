package screenshots_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"switchyard/internal/gittest"
	"switchyard/internal/waittest"
)

// storyText is the text of the story whose page is shown.
const storyText = `As an administrator I want to see who changed what, so that I can answer questions of the auditors.

## Acceptance

- [x] every write of the API leaves a line
- [x] the page filters by person and by day
- [ ] refunds name the payment at the provider

## Notes of the agent

The refund call needs a key with the scope ` + "`refunds:read`" + `. Asked in #payments.

` + "```\nGET /v1/refunds/{id}  →  403 missing scope\n```\n" + `
| Endpoint | Lines a day |
|---|---:|
| /v1/payments | 1,204 |
| /v1/refunds | 18 |
`

// addHistory gives the story its text, and stays in earlier stages.
func (s *storySample) addHistory(now time.Time) {
	s.text = storyText
	s.moves = []time.Time{now.Add(-104 * time.Hour), now.Add(-28 * time.Hour)}
	s.came, s.blocked = s.moves[1], now.Add(-2*time.Hour)
}

// work makes a repository of the story's project, with a branch that has work on the story.
func (y *yardSample) work() {
	y.Helper()
	p := y.projects[0]
	dir, tree, id := filepath.Join(y.dir, "src", p.name), filepath.Join(y.dir, "trees", "audit"), p.stories[1].id()
	put := func(dir, text string) {
		name := filepath.Join(dir, "audit", "refunds.go")
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			y.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			y.Fatal(err)
		}
	}
	put(dir, "package audit\n\n// Refund is a refund as the audit tells it.\ntype Refund struct {\n\tOrder string\n\tAmount int64\n}\n")
	gittest.Git(y.TB.(*testing.T), dir, "init", "-q")
	gittest.Git(y.TB.(*testing.T), dir, "add", "audit")
	gittest.Git(y.TB.(*testing.T), dir, "commit", "-qm", "Refunds in the audit")
	gittest.Git(y.TB.(*testing.T), dir, "worktree", "add", "-q", "-b", "story/"+id, tree)
	put(tree, "package audit\n\n// Refund is a refund as the audit tells it.\ntype Refund struct {\n\tOrder string\n\tAmount money.Amount\n\t// By is who has made it.\n\tBy string\n}\n")
	gittest.Git(y.TB.(*testing.T), tree, "commit", "-qam", "Refunds say who has made them")
	gittest.Git(y.TB.(*testing.T), dir, "worktree", "remove", tree) // whose path is not for pictures
}

// story returns the address of that story's page.
func (y *yardSample) story() string {
	p := y.projects[0]
	return "/projects/" + p.name + "/stories/" + p.stories[1].id()
}

// asks has an agent ask for a permission, as the hook of Claude Code does.
func (y *yardSample) asks() {
	y.Helper()
	var join, made struct{ Token string }
	y.decode(y.post("/gateway/tokens", ""), &join)
	var joined struct {
		Agent  struct{ ID string }
		Secret string
	}
	y.decode(y.post("/gateway/agents", `{"label":"builder-4","token":"`+join.Token+`"}`), &joined)
	y.post("/gateway/agents/"+joined.Agent.ID+"/assign", string(encode(y, map[string]any{"project": y.projects[0].name})))
	y.decode(y.send("/gateway/agents/"+joined.Agent.ID+"/token", "", joined.Secret), &made)
	const hook = `{"hook_event_name":"PermissionRequest","session_id":"s","cwd":"/src/payments","tool_name":"Bash",` +
		`"tool_input":{"command":"psql \"$STAGING_URL\" -c 'ALTER TABLE audit ADD COLUMN refund_id text' &&\n  go test ./audit -run Refund -count=1"}}`
	go func() { // it is held until the test ends
		if response, err := y.request("/api/hooks/claude-code", hook, made.Token); err == nil {
			response.Body.Close()
		}
	}()
	waittest.Until(y, "the question", func() bool {
		response, err := http.Get(y.url + "/api/gateway/questions")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		return strings.Contains(string(text), `"state":"open"`)
	})
}
