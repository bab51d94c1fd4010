package projectserver_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"switchyard/internal/board"
	"switchyard/internal/domain"
	"switchyard/internal/feed"
	"switchyard/internal/gittest"
)

// committing is a project server whose changes are commits, of a board that git tracks.
type committing struct {
	*stories
	id, path, stage, next string // of a story
}

func commitMoves(t *testing.T, layout string, ignored ...string) committing {
	t.Helper()
	c := committing{&stories{t: t, dir: t.TempDir(), feed: feed.New(time.Now)}, "7", "1_backlog/7.md", "1_backlog", "2_current"}
	c.write("2_current/8.md", "other")
	if layout == domain.LayoutBacklog {
		c.id, c.path, c.stage, c.next = "task-7", "backlog/tasks/task-7 - Pay.md", "2_to_do", "3_in_progress"
		c.write("backlog/config.yml", "project_name: x\nstatuses: [\"To Do\", \"In Progress\", \"Done\"]\n")
		c.write(c.path, "---\nid: task-7\ntitle: Pay\nstatus: To Do\ncreated_date: '2026-01-01'\n---\n\n"+
			"## Acceptance Criteria\n<!-- AC:BEGIN -->\n- [ ] #1 works\n<!-- AC:END -->\n")
	} else {
		c.write(c.path, "---\nname: Pay\n---\n- [ ] works\n")
	}
	c.write("staged", "1\n")
	c.write("changed", "1\n")
	c.write(".gitignore", strings.Join(ignored, "\n"))
	c.git("init", "-q", "-b", "main")
	c.git("add", ".")
	c.git("commit", "-qm", "board")
	c.write("staged", "2\n")
	c.git("add", "staged")
	c.write("changed", "2\n")
	c.write("new", "1\n")
	c.openBoard(board.Options{Dir: c.dir, Layout: layout, AllowWrites: true, CommitMoves: true})
	return c
}

func (c committing) git(args ...string) string { return gittest.Git(c.t, c.dir, args...) }

// as asks in somebody's name.
func (c committing) as(name, method, target, body string) (status int, answer string) {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Host = "localhost:3001"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Switchyard-By", url.PathEscape(name))
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func (c committing) patch(name, change string) (status int, answer string) {
	return c.as(name, "PATCH", "/api/stories/"+c.id, `{"version":"`+c.version(c.id)+`",`+change+`}`)
}

const others = "M changed\nM  staged\n?? new"

func TestEachChangeIsACommitOfItsFileAlone(t *testing.T) {
	long := strings.Repeat("Zoë ", 40)
	for layout, steps := range map[string][]struct{ by, change, author, subject, files string }{
		domain.LayoutStages: {
			{"Zoë", `"stage":"2_current"`, "Zoë", "7: 1_backlog → 2_current", "1_backlog/7.md\n2_current/7.md"},
			{"", `"blocked":"waits for\na key"`, "switchyard", "7: blocked", "2_current/7.md"},
			{"<>", `"blocked":null`, "switchyard", "7: unblocked", "2_current/7.md"},
			{long, `"task":{"line":4,"done":true}`, long[:len(long)*100/160-1], "7: box ticked", "2_current/7.md"},
			{"a\nb", `"stage":"1_backlog","blocked":"x"`, "a b", "7: 2_current → 1_backlog, blocked", "1_backlog/7.md\n2_current/7.md"},
		},
		domain.LayoutBacklog: {
			{"Zoë", `"stage":"3_in_progress"`, "Zoë", "task-7: 2_to_do → 3_in_progress", "backlog/tasks/task-7 - Pay.md"},
			{"Bo", `"task":{"line":11,"done":true}`, "Bo", "task-7: box ticked", "backlog/tasks/task-7 - Pay.md"},
		},
	} {
		t.Run(layout, func(t *testing.T) {
			c := commitMoves(t, layout)
			for _, step := range steps {
				before := c.git("rev-parse", "HEAD")
				if status, answer := c.patch(step.by, step.change); status != http.StatusOK {
					t.Fatalf("%s: %d %s", step.subject, status, answer)
				}
				c.is(before, step.author, step.subject, step.files)
			}
			before := c.git("rev-parse", "HEAD") // what is so already is no commit
			stage := c.story("GET", "/api/stories/"+c.id, "")["stage"].(string)
			if status, _ := c.patch("Zoë", `"stage":"`+stage+`"`); status != http.StatusOK || c.git("rev-parse", "HEAD") != before {
				t.Errorf("no change: %d, %s", status, c.git("log", "-1"))
			}
			if _, events, _ := c.ask("GET", "/api/events?since=0", ""); strings.Count(events, "stage_transition") != strings.Count(c.git("log", "--format=%s"), "→") {
				t.Errorf("events %s", events)
			}
		})
	}
	c := commitMoves(t, domain.LayoutStages)
	before := c.git("rev-parse", "HEAD")
	if status, answer := c.as("Zoë", "POST", "/api/stories", `{"name":"Log in"}`); status != http.StatusCreated {
		t.Fatal(status, answer)
	}
	c.is(before, "Zoë", "9_story_log_in: created in 1_backlog", "1_backlog/9_story_log_in.md")
}

// is checks the commit after another one, and that it has left all else as it was.
func (c committing) is(before, author, subject, files string) {
	c.t.Helper()
	got := c.git("log", "--format=%P %an %cn: %s%b", "-1")
	if got != before+" "+author+" switchyard: "+subject {
		c.t.Errorf("commit %q, want %q by %q", got, subject, author)
	}
	if got := c.git("show", "--no-renames", "--name-only", "--format="); got != files {
		c.t.Errorf("%s: files %q", subject, got)
	}
	if got := c.git("status", "--porcelain"); got != others {
		c.t.Errorf("%s: status %q", subject, got)
	}
}

// TestWhereGitCannotCommitNothingIsWritten, and the answer has its words.
func TestWhereGitCannotCommitNothingIsWritten(t *testing.T) {
	for name, test := range map[string]struct {
		words string
		begin func(c committing)
	}{
		"merge":         {"You have unmerged paths", func(c committing) { c.fails("merge", "side") }},
		"resolved":      {"still merging", func(c committing) { c.fails("merge", "side"); c.git("add", "both") }},
		"rebase":        {"rebase in progress", func(c committing) { c.fails("rebase", "side") }},
		"bisect":        {"bisecting", func(c committing) { c.git("bisect", "start") }},
		"filter":        {"has a filter", func(c committing) { c.write(".git/info/attributes", "*.md filter=crypt\n") }},
		"a locked head": {"main.lock", func(c committing) { c.write(".git/refs/heads/main.lock", "") }},
	} {
		for _, layout := range []string{domain.LayoutStages, domain.LayoutBacklog} {
			t.Run(name+" "+layout, func(t *testing.T) {
				t.Parallel()
				c := commitMoves(t, layout)
				c.git("add", ".")
				c.write("both", "1\n")
				c.git("add", ".")
				c.git("commit", "-qm", "one")
				c.git("checkout", "-qb", "side", "HEAD~1")
				c.write("both", "2\n")
				c.git("add", "both")
				c.git("commit", "-qm", "two")
				c.git("checkout", "-q", "main")
				test.begin(c)
				head, status := c.git("rev-parse", "HEAD"), c.git("status", "--porcelain")
				before, _ := os.ReadFile(filepath.Join(c.dir, c.path))
				refused := func(code int, answer string) {
					t.Helper()
					if code != http.StatusConflict || !strings.Contains(answer, test.words) {
						t.Errorf("%d %s", code, answer)
					}
				}
				refused(c.patch("Zoë", `"stage":"`+c.next+`"`))
				if layout == domain.LayoutStages {
					refused(c.patch("Zoë", `"stage":"`+c.next+`","blocked":"x"`))
					refused(c.patch("Zoë", `"blocked":"x"`))
					if name != "filter" {
						refused(c.as("Zoë", "POST", "/api/stories", `{"name":"Log in"}`))
					}
				}
				after, _ := os.ReadFile(filepath.Join(c.dir, c.path))
				if c.git("rev-parse", "HEAD") != head || c.git("status", "--porcelain") != status || string(after) != string(before) {
					t.Errorf("%s\n%s", c.git("status"), after)
				}
			})
		}
	}
}

func (c committing) fails(args ...string) {
	c.t.Helper()
	out := c.git("-c", "alias.try=!git "+strings.Join(args, " ")+" || echo failed", "try")
	if !strings.Contains(out, "failed") {
		c.t.Fatal(out)
	}
}

func TestABoardThatGitDoesNotTrackIsWrittenWithoutCommits(t *testing.T) {
	c := commitMoves(t, domain.LayoutStages, "*_backlog", "*_current")
	c.git("rm", "-rq", "--cached", "--ignore-unmatch", "1_backlog", "2_current")
	before := c.git("rev-parse", "HEAD")
	if status, answer := c.patch("Zoë", `"stage":"2_current"`); status != http.StatusOK || c.git("rev-parse", "HEAD") != before {
		t.Errorf("%d %s", status, answer)
	}
}
