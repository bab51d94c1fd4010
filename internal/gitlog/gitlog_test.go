package gitlog_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/internal/board"
	"switchyard/internal/domain"
	"switchyard/internal/gitlog"
	"switchyard/internal/gittest"
	"switchyard/internal/waittest"
)

// project is a work tree with a work directory in it, and the log of its commits.
type project struct {
	t     *testing.T
	dir   string
	view  atomic.Pointer[board.View]
	log   *gitlog.Log
	past  board.Past
	input string // of git
	logs  waittest.Log
}

func (p *project) View() *board.View { return p.view.Load() }

func (p *project) Past() board.Past { return p.past }

// newProject returns a project with a new repository and stories on its board. It is not running yet.
func newProject(t *testing.T, stories ...string) *project {
	t.Helper()
	p := &project{t: t, dir: t.TempDir(), past: board.Past{Unit: func(string) string { return "" }}}
	t.Setenv("HOME", t.TempDir())
	p.stories(stories...)
	p.git("init", "-q", "-b", "main")
	p.write("work/1_backlog/.keep", "")
	p.log = gitlog.New(gitlog.Options{Dir: filepath.Join(p.dir, "work"), Board: p, Log: slog.New(slog.NewTextHandler(&p.logs, nil))})
	return p
}

func (p *project) stories(ids ...string) {
	stage := board.Stage{Name: "1_backlog"}
	for _, id := range ids {
		stage.Stories = append(stage.Stories, board.Story{ID: id})
	}
	p.view.Store(&board.View{Stages: []board.Stage{stage}})
}

func (p *project) run() {
	p.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := p.log.Run(ctx); err != nil {
			p.t.Error(err)
		}
	})
	p.t.Cleanup(func() { cancel(); running.Wait() })
}

func (p *project) rename(from, to string) {
	p.t.Helper()
	if err := os.Rename(from, to); err != nil {
		p.t.Fatal(err)
	}
}

func (p *project) git(args ...string) string {
	p.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", p.dir, "-c", "user.name=Ada", "-c", "user.email=ada@example.org"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_EDITOR=true")
	cmd.Stdin = strings.NewReader(p.input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (p *project) write(path, content string) {
	p.t.Helper()
	path = filepath.Join(p.dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
		p.t.Fatal(err)
	}
}

// commit commits a new file at Unix time seconds and returns the hash.
func (p *project) commit(message string, seconds int) string {
	p.t.Helper()
	p.write(fmt.Sprintf("file%d", seconds), "one\ntwo\n")
	p.git("add", "-A")
	p.t.Setenv("GIT_COMMITTER_DATE", fmt.Sprintf("%d +0000", 1_700_000_000+seconds))
	p.git("commit", "-q", "--allow-empty", "-m", message)
	return p.git("rev-parse", "HEAD")
}

// subjects returns the subjects of a story's commits, "null" for no history.
func (p *project) subjects(story string) string {
	commits := p.log.Commits(story)
	if commits == nil {
		return "null"
	}
	var list []string
	for _, c := range commits {
		list = append(list, c.Subject)
	}
	return strings.Join(list, "; ")
}

func (p *project) expect(story, want string) {
	p.t.Helper()
	waittest.Until(p.t, "commits of "+story+": "+want, func() bool { return p.subjects(story) == want })
}

func TestCommitsAreThoseThatMentionTheStory(t *testing.T) {
	p := newProject(t, "7_login", "8_card")
	p.commit("7_login: begin", 1)
	p.commit("Other work\n\nSee 8_card, and\nnot 17_login nor 7_login_form.", 2)
	hash := p.commit("Ready\n\nCloses (7_login).", 3)
	if p.subjects("7_login") != "null" {
		t.Error("something is known before it runs")
	}
	p.run()
	p.expect("7_login", "Ready; 7_login: begin")
	p.expect("8_card", "Other work")
	p.expect("9_none", "")
	got := p.log.Commits("7_login")[0]
	want := domain.Commit{Hash: hash, Author: "Ada", AtMS: 1_700_000_003_000, Subject: "Ready", Files: 1, Added: 2}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestWhatIsNewIsFollowed(t *testing.T) {
	p := newProject(t, "7_login")
	p.run()
	p.expect("7_login", "") // a repository without any commit
	p.commit("7_login: one", 1)
	p.expect("7_login", "7_login: one")
	p.commit("7_login: two", 2)
	p.expect("7_login", "7_login: two; 7_login: one")
	p.git("checkout", "-q", "-b", "side", "HEAD~1")
	p.expect("7_login", "7_login: one")
	p.commit("7_login: three", 3)
	p.expect("7_login", "7_login: three; 7_login: one")
	p.git("rebase", "-q", "main")
	p.expect("7_login", "7_login: three; 7_login: two; 7_login: one")
	p.git("reset", "-q", "--hard", "HEAD~2")
	p.expect("7_login", "7_login: one")
	p.git("checkout", "-q", "--orphan", "empty")
	p.expect("7_login", "")
	p.git("checkout", "-q", "main")
	p.expect("7_login", "7_login: two; 7_login: one")
	p.git("merge", "-q", "--no-ff", "-m", "Merge 7_login", p.git("commit-tree", "-p", "HEAD", "-m", "7_login: four", "HEAD^{tree}"))
	waittest.Until(t, "the merge", func() bool { return len(p.log.Commits("7_login")) == 4 })
	p.stories("7_login", "1_two")
	p.commit("1_two begins", 9)
	p.expect("1_two", "1_two begins")
}

func TestAStoryThatAppearsLaterHasItsOlderCommits(t *testing.T) {
	p := newProject(t, "7_login")
	p.commit("8_card: one", 1)
	p.commit("7_login: two", 2)
	p.run()
	p.expect("7_login", "7_login: two")
	p.stories("7_login", "8_card")
	p.expect("8_card", "8_card: one")
}

func TestAtMostFiftyCommitsAreKept(t *testing.T) {
	p := newProject(t, "7_login")
	var history strings.Builder
	for i := range 60 {
		message := fmt.Sprintf("7_login: %d", i)
		fmt.Fprintf(&history, "commit refs/heads/main\ncommitter Ada <ada@example.org> %d +0000\ndata %d\n%s\n", 1_700_000_000+i, len(message), message)
	}
	p.input = history.String()
	p.git("fast-import", "--quiet")
	p.input = ""
	p.run()
	newest := func(subject string) {
		t.Helper()
		waittest.Until(t, subject, func() bool {
			list := p.log.Commits("7_login")
			return len(list) == 50 && list[0].Subject == subject
		})
	}
	newest("7_login: 59")
	p.git("reset", "-q", "--hard", "HEAD~5") // older ones replace the removed ones
	newest("7_login: 54")
	p.commit("7_login: 60", 60)
	newest("7_login: 60")
}

func TestWithoutGitNothingIsKnown(t *testing.T) {
	p := newProject(t, "7_login")
	p.commit("7_login: one", 1)
	if err := os.RemoveAll(filepath.Join(p.dir, ".git")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GIT_CEILING_DIRECTORIES", filepath.Dir(p.dir))
	p.log.SetRecheck(time.Millisecond)
	t.Cleanup(func() { // once it no longer runs
		if p.logs.String() != "" {
			t.Errorf("logged %s", p.logs.String())
		}
	})
	p.run()
	p.expect("7_login", "null")
	elsewhere, here := filepath.Join(t.TempDir(), ".git"), filepath.Join(p.dir, ".git")
	p.git("init", "-q", "-b", "main", filepath.Dir(elsewhere))
	p.rename(elsewhere, here) // at once: half a repository would be logged
	p.expect("7_login", "")
	p.rename(here, elsewhere)
	p.expect("7_login", "null")
}

func TestWithoutAGitProgramNothingIsKnown(t *testing.T) {
	p := newProject(t, "7_login")
	p.commit("7_login: one", 1)
	t.Setenv("PATH", t.TempDir())
	p.run()
	p.expect("7_login", "null")
}

func TestAShallowCloneHasTheCommitsThatItHas(t *testing.T) {
	p := newProject(t, "7_login")
	p.commit("7_login: one", 1)
	p.commit("7_login: two", 2)
	p.commit("7_login: three", 3)
	clone := t.TempDir()
	p.git("clone", "-q", "--depth", "2", "file://"+p.dir, clone)
	p.log = gitlog.New(gitlog.Options{Dir: clone, Board: p, Log: slog.New(slog.DiscardHandler)})
	p.run()
	p.expect("7_login", "7_login: three; 7_login: two")
}

// Programs named in a repository's configuration are not run, nor are files read that it names.
func TestNoProgramOfTheRepositoryIsRun(t *testing.T) {
	p := newProject(t, "7_login")
	p.write("work/1_backlog/7_login.md", "x")
	p.commit("7_login: one", 1)
	p.git("switch", "-qc", "side")
	p.write("both", "theirs")
	p.commit("7_login: two", 2)
	p.git("switch", "-q", "main")
	p.write("both", "ours")
	p.commit("7_login: three", 3)
	p.git("merge", "-q", "-s", "ours", "side", "-m", "7_login: merged")
	p.onLayout("work", "")
	gittest.Traps(t, p.dir)
	p.run()
	waittest.Until(t, "its commits", func() bool { return len(p.log.Commits("7_login")) == 4 && p.log.Moves().Complete })
	for _, c := range p.log.Commits("7_login") {
		if c.Files == 0 && c.Subject != "7_login: merged" {
			t.Errorf("%+v", c)
		}
	}
	if len(p.log.Moves().List) != 0 { // they are of 2023
		t.Errorf("%+v", p.log.Moves())
	}
}
