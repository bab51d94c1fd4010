package views

import (
	"regexp"
	"strings"
)

// Command is what starts the agent. The token stands before it, in the environment: a command line is for all users of a
// machine to see.
func (t NewToken) Command() string {
	command := "switchyard agent --gateway " + t.Address
	if t.Form.Label != "" {
		command += " --label " + shellWord(t.Form.Label)
	}
	if run := strings.Join(strings.Fields(t.Form.Command), " "); run != "" {
		command += " -- " + run
	}
	return command
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+=,-]+$`)

// shellWord is text as one word of a shell's command line.
func shellWord(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
