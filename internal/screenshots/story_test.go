package screenshots_test

import (
	"io"
	"net/http"
	"strings"
	"time"

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

// story returns the address of that story's page.
func (y *yardSample) story() string {
	p := y.projects[0]
	return "/projects/" + p.name + "/stories/" + p.stories[1].id()
}

// asks has an agent ask for a permission about that story's project, as the hook of Claude Code does.
func (y *yardSample) asks() {
	y.Helper()
	var made struct{ Token string }
	y.decode(y.post("/api/gateway/tokens", `{"name":"builder-1","role":"operator"}`), &made)
	const hook = `{"hook_event_name":"PermissionRequest","session_id":"s","cwd":"/src/payments","tool_name":"Bash",` +
		`"tool_input":{"command":"psql \"$STAGING_URL\" -c 'ALTER TABLE audit ADD COLUMN refund_id text' &&\n  go test ./audit -run Refund -count=1"}}`
	request, err := http.NewRequestWithContext(y.Context(), http.MethodPost, y.url+"/api/hooks/claude-code", strings.NewReader(hook))
	if err != nil {
		y.Fatal(err)
	}
	request.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + made.Token}}
	go func() { // it is held until the test ends
		if response, err := http.DefaultClient.Do(request); err == nil {
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
