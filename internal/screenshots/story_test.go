package screenshots_test

import "time"

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
