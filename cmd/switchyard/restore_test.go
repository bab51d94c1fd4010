package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"switchyard/internal/bottest"
	"switchyard/internal/waittest"
)

// TestARestoredBackupLosesNoChatMessage, although its events get ids that others had when the homeserver saw them.
func TestARestoredBackupLosesNoChatMessage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	homeserver := bottest.NewHomeserver(t)
	settings := fmt.Sprintf("transport = 'matrix'\nhomeserver = %q\nusername = 'yard'\npassword = %q\n",
		homeserver.HTTP.URL, bottest.Password)
	work, address := newStories(t, filepath.Join(dir, "work"), 6), freeAddress(t)
	operators := fmt.Sprintf("[bot]\noperators = [%q]\n[[projects]]\nname = 'alpha'\nurl = 'http://%s'\n", bottest.Operator, address)
	for name, text := range map[string]string{"bot.toml": settings, "switchyard.toml": operators} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	beginProject := func() *process {
		return start(t, switchyard(t, dir, "project", "--name=alpha", "--work="+work.dir, "--listen="+address))
	}
	beginGateway := func() *process {
		return start(t, switchyard(t, dir, "gateway", "--config=DIR/switchyard.toml", "--listen=localhost:0", "--data=DIR/data",
			"--bot-config=DIR/bot.toml"))
	}
	posted := func(story int) func() bool {
		return func() bool {
			for _, p := range homeserver.Posts("!ops") {
				if strings.Contains(p.Body, fmt.Sprintf(" %d_story ", story)) {
					return true
				}
			}
			return false
		}
	}
	move := func(stories ...int) {
		t.Helper()
		for _, story := range stories {
			work.move(story, "1_backlog", "2_current")
			waittest.Until(t, fmt.Sprintf("the move of %d_story posted", story), posted(story))
		}
	}

	project, gateway := beginProject(), beginGateway()
	homeserver.Create("!ops", "Operations", bottest.Operator, false)
	homeserver.Invite("!ops", bottest.Operator)
	waittest.Until(t, "the bot in the room", func() bool { return homeserver.IsMember("!ops") })
	move(0)
	if out, err := switchyard(t, dir, "backup", "--data=DIR/data", "DIR/copy.db").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	move(1, 2)
	gateway.stop(t, syscall.SIGTERM)
	project.stop(t, syscall.SIGTERM) // which forgets its events
	if err := os.Rename(filepath.Join(dir, "copy.db"), filepath.Join(dir, "data", "switchyard.db")); err != nil {
		t.Fatal(err)
	}
	beginProject()
	beginGateway()
	move(3, 4, 5)
}
