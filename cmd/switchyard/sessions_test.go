package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"switchyard/internal/gittest"
	"switchyard/internal/waittest"
)

// TestASessionOfClaudeCodeIsSeen as it works, waits for a person, has stopped, and ends, with its host, work tree and story.
func TestASessionOfClaudeCodeIsSeen(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	onboard(t, s)
	gittest.Git(t, s.dir, "init", "-q", "-b", "story/1", filepath.Join(s.dir, "repository"))
	c := newCodingSite(t, s, "claude", 2, strings.Replace(inTerminal(`CODER 'make a file' $*`), "exec ", `echo \$\$ >../pid; exec `, 1))
	type session struct {
		ID, Client, By, Host, Worktree, Branch, Project, State string
		Tool                                                   *string
		QuestionID                                             *string `json:"question_id"`
	}
	seen := func(state string) (one session) {
		t.Helper()
		waittest.Until(t, "the session is "+state, func() bool {
			var list struct{ Sessions []session }
			_, text := c.do(t, "GET", "/api/gateway/agent-sessions", "")
			if json.Unmarshal([]byte(text), &list) != nil || len(list.Sessions) != 1 {
				return false
			}
			one = list.Sessions[0]
			return one.State == state
		})
		return one
	}
	id := c.asked()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if is := seen("waiting"); *is.QuestionID != id || *is.Tool != "Bash" || is.Client != "claude-code" || is.By != "builder" || is.Project != "alpha" ||
		is.Host != host || is.Worktree != filepath.Join(s.dir, "repository") || is.Branch != "story/1" {
		t.Errorf("it waits: %+v", is)
	}
	c.answer(id, "allow")
	waittest.Until(t, "the command", c.done)
	seen("working") // the model thinks
	close(c.model.again)
	c.answer(c.asked(), "allow")
	if is := seen("idle"); is.Tool != nil || is.QuestionID != nil {
		t.Errorf("it has stopped: %+v", is)
	}
	text, err := os.ReadFile(filepath.Join(s.dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	process, err := os.FindProcess(pid)
	if err == nil {
		err = process.Signal(syscall.SIGTERM)
	}
	if err != nil {
		t.Fatal(err)
	}
	seen("ended")
}
