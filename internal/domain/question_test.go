package domain_test

import (
	"encoding/json"
	"testing"

	"switchyard/internal/domain"
)

// TestACommandIsShownAsOne, whatever else its tool takes: nothing of that is hidden.
func TestACommandIsShownAsOne(t *testing.T) {
	for input, want := range map[string]string{
		`{"command":"make\n-j2","description":"build"}`:                           "make\n-j2",
		`{"command":"make"}`:                                                      "make",
		`{"command":"make","description":"build","timeout":60000,"sandbox":null}`: "make\n\n" + `{"sandbox":null,"timeout":60000}`,
		`{"command":["make"]}`:                                                    "", `{"command":null}`: "", `{"path":"x"}`: "", `[]`: "",
	} {
		u := domain.ToolUse{Name: "Bash", Input: json.RawMessage(input)}
		if got, _, ok := u.Command(); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %v", input, got, ok)
		}
	}
}
