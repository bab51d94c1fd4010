package views

import "testing"

func TestAStorysNameIsShownWhereItSaysMore(t *testing.T) {
	for _, c := range []struct {
		id, name string
		repeats  bool
	}{
		{"14_story_log_in", "Log in", true},
		{"14_story_log_in", "log-in!", true},
		{"14_story_log_in", "14_story_log_in", true},
		{"14_bug_log_in", "Log in", true},
		{"14", "14", true},
		{"14", "", true},
		{"14_story_log_in", "Log in with a passkey", false},
		{"14_story_log_in", "In", false},
		{"14", "Log in", false},
		{"", "Log in", false},
	} {
		if got := repeats(c.id, c.name); got != c.repeats {
			t.Errorf("repeats(%q, %q) = %t", c.id, c.name, got)
		}
	}
}
