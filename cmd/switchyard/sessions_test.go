package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"switchyard/internal/gittest"
	"switchyard/internal/pgtest"
	"switchyard/internal/waittest"
)

type sessionReply struct {
	ID, Client, By, Host, Worktree, Branch, Project, State string
	StoryID                                                string `json:"story_id"`
	Tool                                                   *string
	QuestionID                                             *string `json:"question_id"`
}

// seen waits until the session of a client is in a state, of its story.
func (s *site) seen(t *testing.T, client, state string) (one sessionReply) {
	t.Helper()
	waittest.Until(t, "the session of "+client+" is "+state, func() bool {
		var list struct{ Sessions []sessionReply }
		_, text := s.do(t, "GET", "/api/gateway/agent-sessions", "")
		if json.Unmarshal([]byte(text), &list) != nil {
			return false
		}
		for _, one = range list.Sessions {
			if one.Client == client && one.State == state && one.StoryID == "1_login" {
				return true
			}
		}
		return false
	})
	return one
}

// TestASessionOfClaudeCodeIsSeen as it works, waits for a person, is silent, has stopped, and ends, with its host, work tree and story.
// Its laptop sleeps for a while, another one, with Codex, loses its power, and the gateway is killed.
func TestASessionOfClaudeCodeIsSeen(t *testing.T) {
	t.Parallel()
	codingAgent(t, "claude")
	database := pgtest.WrongClock(t, 0)
	s := newSite(t, "--database="+database)
	onboard(t, s)
	board, tree := filepath.Join(s.dir, "board"), filepath.Join(s.dir, "repository")
	if err := os.MkdirAll(filepath.Join(board, "work", "2_current"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(board, "work", "2_current", "1_login.md"), []byte("# Login\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	gittest.Git(t, board, "init", "-q", "-b", "main")
	gittest.Git(t, board, "add", "-A")
	gittest.Git(t, board, "commit", "-q", "-m", "a board")
	gittest.Git(t, board, "worktree", "add", "-q", "-b", "story/1_login", tree)
	project := start(t, switchyard(t, s.dir, "project", "--name=alpha", "--work=DIR/board/work", "--listen=127.0.0.1:0"))
	if status, text := s.do(t, "PUT", "/api/gateway/projects/alpha", fmt.Sprintf(`{"url":%q}`, project.url)); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	hook := func(text string) *process {
		cmd := withEnv(switchyard(t, s.dir, "hook"), "SWITCHYARD_GATEWAY_URL="+s.url)
		cmd.Stdin = strings.NewReader(fmt.Sprintf(`{%s,"session_id":"codex","turn_id":"t","cwd":%q}`, text, tree))
		return launch(t, cmd)
	}
	hook(`"hook_event_name":"UserPromptSubmit"`)
	s.seen(t, "codex", "working")
	asks := hook(`"hook_event_name":"PermissionRequest","tool_name":"Bash","tool_input":{"command":"make"}`)
	question := s.seen(t, "codex", "waiting").QuestionID
	asks.killHard()
	s.seen(t, "codex", "working")
	if status, text := s.do(t, "DELETE", questionsURL+"/"+*question, ""); status != 204 {
		t.Fatalf("%d %s", status, text)
	}

	c := newCodingSite(t, s, "claude", 2, strings.Replace(inTerminal(`CODER 'make a file' $*`), "exec ", `echo \$\$ >../pid; exec `, 1))
	seen := func(state string) sessionReply { t.Helper(); return s.seen(t, "claude-code", state) }
	id := c.asked()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if is := seen("waiting"); *is.QuestionID != id || *is.Tool != "Bash" || is.By != "builder" || is.Project != "alpha" ||
		is.Host != host || is.Worktree != tree || is.Branch != "story/1_login" {
		t.Errorf("it waits: %+v", is)
	}
	c.answer(id, "allow")
	waittest.Until(t, "the command", c.done)
	seen("working") // the model thinks
	text, err := os.ReadFile(filepath.Join(s.dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	signal := func(signal syscall.Signal) {
		t.Helper()
		if err := syscall.Kill(pid, signal); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP)
	pgtest.SetClock(t, database, 11*time.Minute)
	seen("silent")
	s.seen(t, "codex", "silent")
	c.killHard()
	c.again()
	seen("silent")
	s.seen(t, "codex", "silent")
	signal(syscall.SIGCONT)
	close(c.model.again)
	c.answer(c.asked(), "allow")
	if is := seen("idle"); is.Tool != nil || is.QuestionID != nil {
		t.Errorf("it has stopped: %+v", is)
	}
	signal(syscall.SIGTERM)
	seen("ended")
}
