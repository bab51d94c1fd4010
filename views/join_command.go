package views

import (
	"regexp"
	"strings"
	"unicode"

	"switchyard/internal/domain"
)

// MaxCommand is the longest command of an agent in the form of Add agent, in bytes.
const MaxCommand = 1000

// CheckCommand returns an Invalid error for a command that cannot be part of the line to copy.
func CheckCommand(command string) error {
	switch {
	case len(command) > MaxCommand:
		return domain.Errorf(domain.Invalid, "command: must be at most %d characters", MaxCommand)
	case strings.ContainsFunc(command, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }):
		return domain.Errorf(domain.Invalid, "command: must not contain control characters")
	}
	return nil
}

// Command returns the command line that starts the agent. The token is in its environment, since all users of a machine
// can see arguments. Values that were refused are left out.
func (t NewToken) Command() string {
	command := "switchyard agent --gateway " + t.Address
	if t.Form.Label != "" && t.Form.Error.Field != "label" {
		command += " --label " + shellWord(t.Form.Label)
	}
	if run := strings.Join(strings.Fields(t.Form.Command), " "); run != "" && t.Form.Error.Field != "command" {
		command += " -- " + run
	}
	return command
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+=,-]+$`)

// shellWord returns text as one word of a shell's command line.
func shellWord(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
