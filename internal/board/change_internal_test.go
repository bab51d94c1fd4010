//go:build unix

package board

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/feed"
)

// newWritable returns a fixture that allows writes.
func newWritable(t *testing.T, files map[string]string) *fixture {
	t.Helper()
	d := newFixture(t, files)
	d.allowWrites = true
	return d
}

func (d *fixture) content(path string) string {
	d.t.Helper()
	content, err := os.ReadFile(d.path(path))
	d.must(err)
	return string(content)
}

// files returns the names of all files below the work directory.
func (d *fixture) files() string {
	d.t.Helper()
	var names []string
	d.must(filepath.WalkDir(d.dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, strings.TrimPrefix(path, d.dir+"/"))
		}
		return err
	}))
	return strings.Join(names, " ")
}

// change changes the current version of a story.
func (d *fixture) change(id string, c Change) *Details {
	d.t.Helper()
	c.Version = d.read(id).Version
	details, err := d.Board.Change(context.Background(), id, c)
	d.must(err)
	return details
}

// notifications returns the notifications since the last call.
func (d *fixture) notifications() string {
	list := recorded(changes{notifications: d.recorded})
	d.recorded = nil
	return list
}

func TestAChangeIsRecordedLikeOneMadeByHand(t *testing.T) {
	d := newWritable(t, map[string]string{"2_current/7_login.md": "---\nname: Log in # c\nmerge_failure: conflict\n---\n# Title\n", "3_qa/8_card.md": "x"})
	d.must(os.Chmod(d.path("2_current/7_login.md"), 0o640))
	stage, reason, none := "3_qa", "key: none", ""
	for _, step := range []struct {
		change  Change
		news    string
		path    string
		content string
	}{
		{Change{}, "", "2_current/7_login.md", "---\nname: Log in # c\nmerge_failure: conflict\n---\n# Title\n"},
		{Change{Stage: &stage}, "Log in 2_current>3_qa", "3_qa/7_login.md", "---\nname: Log in # c\nmerge_failure: conflict\n---\n# Title\n"},
		{Change{Stage: &stage}, "", "3_qa/7_login.md", "---\nname: Log in # c\nmerge_failure: conflict\n---\n# Title\n"},
		{
			Change{Blocked: &reason},
			"Log in blocked: key: none", "3_qa/7_login.md",
			"---\nname: Log in # c\nmerge_failure: conflict\nblocked: true\nblocked_reason: \"key: none\"\n---\n# Title\n",
		},
		{Change{MergeFailure: &none}, "", "3_qa/7_login.md", "---\nname: Log in # c\nblocked: true\nblocked_reason: \"key: none\"\n---\n# Title\n"},
		{Change{Blocked: &none}, "", "3_qa/7_login.md", "---\nname: Log in # c\n---\n# Title\n"},
		{Change{MergeFailure: ptr("conflict")}, "Log in merge failed: conflict", "3_qa/7_login.md", "---\nname: Log in # c\nmerge_failure: conflict\n---\n# Title\n"},
		{Change{MergeFailure: &none}, "", "3_qa/7_login.md", "---\nname: Log in # c\n---\n# Title\n"},
	} {
		got := d.change("7_login", step.change)
		if got.Path != step.path || d.content(step.path) != step.content || got.Version != d.read("7_login").Version {
			t.Errorf("%+v: at %s: %q", step.change, got.Path, d.content(got.Path))
		}
		if news := d.notifications(); news != step.news {
			t.Errorf("%+v: recorded %q, want %q", step.change, news, step.news)
		}
		d.expect("")
	}
	if info, err := os.Stat(d.path("3_qa/7_login.md")); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if files := d.files(); files != "3_qa/7_login.md 3_qa/8_card.md" {
		t.Errorf("files %s", files)
	}
	both := d.change("7_login", Change{Stage: ptr("2_current"), Blocked: &reason})
	if news := d.notifications(); news != "Log in 3_qa>2_current; Log in blocked: key: none" || both.Blocked != reason || both.BlockedSince.IsZero() {
		t.Errorf("recorded %q, %+v", news, both)
	}
}

func ptr(text string) *string { return &text }

func TestReasonsAreWrittenWhereTheyAre(t *testing.T) {
	for content, want := range map[string]string{
		"---\nblocked: yes # c\n---\n":                                                      "---\nblocked: yes # c\nblocked_reason: new\n---\n",
		"---\nblocked: old # c\n---\n":                                                      "---\nblocked: new # c\n---\n",
		"---\nblocked: 'yes'\nblocked_reason: other\n---\n":                                 "---\nblocked: new\nblocked_reason: other\n---\n",
		"---\nblocked: false\nblocked_reason: old\n---\n":                                   "---\nblocked: true\nblocked_reason: new\n---\n",
		"---\r\nblocked: true\r\nblocked_reason: >\r\n  old\r\n  one\r\nname: x\r\n---\r\n": "---\r\nblocked: true\r\nblocked_reason: new\r\nname: x\r\n---\r\n",
		"":                         "---\nblocked: true\nblocked_reason: new\n---\n",
		"---\nblocked: new\n---\n": "---\nblocked: new\n---\n",
	} {
		d := newWritable(t, map[string]string{"1_a/x.md": content})
		got := d.change("x", Change{Blocked: ptr(" new ")})
		if text := d.content("1_a/x.md"); text != want || got.Blocked != "new" {
			t.Errorf("%q becomes %q: %q", content, text, got.Blocked)
		}
	}
}

func TestChangesThatAreRefused(t *testing.T) {
	outside := t.TempDir()
	d := newWritable(t, map[string]string{
		"1_a/x.md": "text", "2_b/x.md": "older", "1_a/flow.md": "---\n{a: b}\n---\n", "1_a/broken.md": "---\na: [\n---\n",
		"1_a/large.md": strings.Repeat("x", maxFile+1), "3_c/y.md": "", "notes/z.md": "", "5_e": "",
	})
	d.must(os.Chtimes(d.path("2_b/x.md"), time.Unix(0, 0), time.Unix(0, 0)))
	_, err := d.scan(nil, false)
	d.must(err)
	old := d.read("x").Version
	d.must(os.Symlink(outside, d.path("4_d")))
	for name, test := range map[string]struct {
		id     string
		change Change
		code   domain.Code
	}{
		"no version":            {"x", Change{}, domain.Conflict},
		"another version":       {"x", Change{Version: d.read("y").Version}, domain.Conflict},
		"the target exists":     {"x", Change{Version: old, Stage: ptr("2_b")}, domain.Conflict},
		"no such story":         {"nosuch", Change{Version: old}, domain.NotFound},
		"a path":                {"../1_a/x", Change{Version: old}, domain.NotFound},
		"no such stage":         {"x", Change{Version: old, Stage: ptr("9_none")}, domain.Invalid},
		"an empty stage":        {"x", Change{Version: old, Stage: ptr("")}, domain.Invalid},
		"no stage":              {"x", Change{Version: old, Stage: ptr("notes")}, domain.Invalid},
		"a file":                {"x", Change{Version: old, Stage: ptr("5_e")}, domain.Invalid},
		"a link":                {"x", Change{Version: old, Stage: ptr("4_d")}, domain.Invalid},
		"a way out":             {"x", Change{Version: old, Stage: ptr("2_b/../../" + filepath.Base(outside))}, domain.Invalid},
		"a stage with a NUL":    {"x", Change{Version: old, Stage: ptr("2_b\x00")}, domain.Invalid},
		"a blank reason":        {"x", Change{Version: old, Blocked: ptr(" \n")}, domain.Invalid},
		"a reason with a NUL":   {"x", Change{Version: old, Blocked: ptr("a\x00")}, domain.Invalid},
		"a reason too long":     {"x", Change{Version: old, Blocked: ptr(strings.Repeat("x", 1001))}, domain.Invalid},
		"a mapping in one line": {"flow", Change{Version: d.read("flow").Version, Blocked: ptr("x")}, domain.Conflict},
		"broken front matter":   {"broken", Change{Version: d.read("broken").Version, Blocked: ptr("x")}, domain.Conflict},
		"a large file":          {"large", Change{Version: d.read("large").Version, Blocked: ptr("x")}, domain.Conflict},
		"a move of it":          {"large", Change{Version: d.read("large").Version, Stage: ptr("3_c")}, domain.Conflict},
	} {
		before := d.files()
		if _, err := d.Board.Change(context.Background(), test.id, test.change); domain.CodeOf(err) != test.code {
			t.Errorf("%s: %v", name, err)
		}
		if after := d.files(); after != before {
			t.Errorf("%s: files %s, before %s", name, after, before)
		}
	}
	if d.content("1_a/x.md") != "text" || d.content("2_b/x.md") != "older" {
		t.Error("a file was changed")
	}
	d.allowWrites = false
	if _, err := d.Board.Change(context.Background(), "x", Change{Version: old}); domain.CodeOf(err) != domain.Forbidden {
		t.Errorf("writes are not allowed: %v", err)
	}
	if _, err := d.Create(t.Context(), "x", "", ""); domain.CodeOf(err) != domain.Forbidden {
		t.Errorf("writes are not allowed: %v", err)
	}
}

func TestAStoryThatMovedByHandIsNotChanged(t *testing.T) {
	d := newWritable(t, map[string]string{"1_a/x.md": "text", "2_b/y.md": ""})
	version := d.read("x").Version
	d.move("1_a/x.md", "2_b/x.md")
	if _, err := d.Board.Change(context.Background(), "x", Change{Version: version, Stage: ptr("1_a")}); domain.CodeOf(err) != domain.Conflict {
		t.Errorf("after a move: %v", err)
	}
	d.remove("2_b/x.md")
	if _, err := d.Board.Change(context.Background(), "x", Change{Version: version}); domain.CodeOf(err) != domain.NotFound {
		t.Errorf("after a removal: %v", err)
	}
}

func TestNewStories(t *testing.T) {
	d := newWritable(t, map[string]string{"1_backlog/9_story_a.md": "", "3_done/0010_x.md": "", "2_current/.50_hidden.md": "", "3_done/50.txt": ""})
	for _, step := range []struct{ name, body, stage, path, content string }{
		{" Log in! ", "", "", "1_backlog/11_story_log_in.md", "---\nname: \"Log in!\"\n---\n"},
		{"Über: 3 «Karten»", "# Title\r\ntext\n\n", "2_current", "2_current/12_story_über_3_karten.md", "---\nname: \"Über: 3 «Karten»\"\n---\n\n# Title\r\ntext\n"},
		{"../../etc/passwd", "---\nblocked: true\n---\n", "", "1_backlog/13_story_etc_passwd.md", "---\nname: \"../../etc/passwd\"\n---\n\n---\nblocked: true\n---\n"},
		{"!!!", "", "", "1_backlog/14_story_.md", "---\nname: \"!!!\"\n---\n"},
		{strings.Repeat("ä", 1000), "", "", "1_backlog/15_story_" + strings.Repeat("ä", maxSlug/2) + ".md", "---\nname: " + strings.Repeat("ä", 1000) + "\n---\n"},
	} {
		got, err := d.Create(t.Context(), step.name, step.body, step.stage)
		if err != nil {
			t.Errorf("%q: %v", step.name, err)
			continue
		}
		if got.Path != step.path || d.content(got.Path) != step.content || got.Name != strings.TrimSpace(step.name) || got.Blocked != "" {
			t.Errorf("%q: %+v, %q", step.name, got.Path, d.content(got.Path))
		}
	}
	if news := d.notifications(); strings.Contains(news, "blocked") || strings.Count(news, " >") != 5 {
		t.Errorf("recorded %q", news)
	}
	d.write("3_done/"+strings.Repeat("9", 30)+"_x.md", "")
	if got, err := d.Create(t.Context(), "x", "", ""); err != nil || got.ID != "1"+strings.Repeat("0", 30)+"_story_x" {
		t.Errorf("%+v, %v", got, err)
	}
	for _, step := range []struct {
		name, body, stage string
		code              domain.Code
	}{
		{"", "", "", domain.Invalid},
		{" \u00a0", "", "", domain.Invalid},
		{"a\x00b", "", "", domain.Invalid},
		{"a\nb", "", "", domain.Invalid},
		{strings.Repeat("x", 1001), "", "", domain.Invalid},
		{"x", "", "9_none", domain.Invalid},
		{"x", "", "../1_backlog", domain.Invalid},
		{"x", strings.Repeat("x", maxFile), "", domain.TooLarge},
	} {
		if _, err := d.Create(t.Context(), step.name, step.body, step.stage); domain.CodeOf(err) != step.code {
			t.Errorf("%.20q: %v", step.name, err)
		}
	}
}

func TestOneOfManyChangesOfAVersionSucceeds(t *testing.T) {
	d := newWritable(t, map[string]string{"1_a/x.md": "---\nname: x\n---\ntext\n", "2_b/y.md": ""})
	for round := range 20 {
		version := d.read("x").Version
		var all sync.WaitGroup
		var mu sync.Mutex
		won := 0
		for writer := range 10 {
			all.Go(func() {
				_, err := d.Board.Change(context.Background(), "x", Change{Version: version, Blocked: ptr(fmt.Sprintf("reason %d %d", round, writer))})
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won++
				} else if domain.CodeOf(err) != domain.Conflict {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if won != 1 {
			t.Fatalf("%d of 10 succeeded", won)
		}
	}
}

func TestManyNewStoriesAtOnceHaveIDsOfTheirOwn(t *testing.T) {
	d := newWritable(t, map[string]string{"1_a/x.md": ""})
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if _, err := d.Create(t.Context(), "same", "", ""); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := strings.Count(d.files(), "_story_same.md"); got != 20 {
		t.Errorf("%d stories: %s", got, d.files())
	}
}

func TestWhyAFileCannotBeReadIsSaid(t *testing.T) {
	d := newWritable(t, map[string]string{"1_a/x.md": "text"})
	withoutPrivileges(t, d.dir)
	d.must(os.Chmod(d.path("1_a/x.md"), 0))
	_, err := d.Board.Read("x")
	if domain.CodeOf(err) != domain.Unavailable || domain.MessageOf(err) != "the story's file cannot be read: permission denied" {
		t.Errorf("%v", err)
	}
}

func TestWhatAFullOrClosedDiskLeaves(t *testing.T) {
	d := newWritable(t, map[string]string{"1_a/x.md": "text", "2_b/y.md": ""})
	version := d.read("x").Version
	withoutPrivileges(t, d.dir)
	d.must(os.Chmod(d.path("1_a"), 0o555))
	_, err := d.Board.Change(context.Background(), "x", Change{Version: version, Blocked: ptr("key")})
	if domain.CodeOf(err) != domain.Internal || domain.MessageOf(err) != "the story could not be written: permission denied" {
		t.Errorf("%v", err)
	}
	if _, err := d.Board.Change(context.Background(), "x", Change{Version: version, Blocked: ptr("key"), Stage: ptr("2_b")}); domain.CodeOf(err) != domain.Internal {
		t.Errorf("%v", err)
	}
	d.must(os.Chmod(d.path("1_a"), 0o755))
	if d.files() != "1_a/x.md 2_b/y.md" || d.content("1_a/x.md") != "text" {
		t.Errorf("files %s", d.files())
	}
}

const writerDir = "SWITCHYARD_TEST_WRITER_DIR"

// TestWriter changes and moves a story in an endless loop: it is the process that TestAKilledWriter kills.
func TestWriter(t *testing.T) {
	dir := os.Getenv(writerDir)
	if dir == "" {
		return
	}
	board, err := Open(Options{Dir: dir, Log: slog.New(slog.DiscardHandler), AllowWrites: true, Record: func(...feed.Notification) {}})
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ {
		now, err := board.Read("x")
		if err != nil {
			t.Fatal(err)
		}
		c := Change{Version: now.Version, Blocked: ptr(strings.Repeat(fmt.Sprintf("%d ", i%10), 400)), Stage: ptr([]string{"1_a", "2_b"}[i/2%2])}
		if _, err := board.Change(context.Background(), "x", c); err != nil {
			t.Fatal(err)
		}
		fmt.Println("changed")
	}
}

// A writer is killed 15 times in the middle of its writes, 150 in all: each time there is exactly one complete file.
func TestAKilledWriterLeavesTheOldFileOrTheNew(t *testing.T) {
	d := newFixture(t, map[string]string{"1_a/x.md": "---\nname: x\n---\nbody\n", "2_b/y.md": ""})
	for round := range 15 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestWriter$")
		cmd.Env = append(os.Environ(), writerDir+"="+d.dir)
		out, err := cmd.StdoutPipe()
		d.must(err)
		d.must(cmd.Start())
		lines := bufio.NewScanner(out)
		for range 10 + round%3 {
			lines.Scan()
		}
		d.must(cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
		if _, err := d.scan(nil, false); err != nil {
			t.Fatal(err)
		}
		got := d.read("x")
		if len(got.Blocked) != 799 || strings.Trim(got.Blocked, got.Blocked[:2]) != "" || got.Body != "body" || got.FrontMatterErr != nil {
			t.Fatalf("the file is torn: %q", d.content(got.Path))
		}
		if n := strings.Count(d.files(), "/x.md"); n != 1 {
			t.Fatalf("it is there %d times: %s", n, d.files())
		}
	}
	if _, err := Open(Options{Dir: d.dir, Log: slog.New(slog.DiscardHandler), AllowWrites: true}); err != nil || strings.Contains(d.files(), tempSuffix) {
		t.Errorf("%v, files %s", err, d.files())
	}
}

func TestARenameThatOverwritesNothing(t *testing.T) {
	for name, rename := range map[string]func(from *os.File, name string, to *os.File, newName string) error{
		"in one step": renameNew, "in two": linkAndUnlink,
	} {
		d := newFixture(t, map[string]string{"1_a/x.md": "a", "2_b/x.md": "b"})
		from, err := openStage(d.path("1_a"))
		d.must(err)
		defer from.Close()
		to, err := openStage(d.path("2_b"))
		d.must(err)
		defer to.Close()
		if err := rename(from, "x.md", to, "x.md"); !errors.Is(err, fs.ErrExist) || d.content("2_b/x.md") != "b" {
			t.Errorf("%s: %v", name, err)
		}
		d.must(rename(from, "x.md", to, "y.md"))
		if d.files() != "2_b/x.md 2_b/y.md" || d.content("2_b/y.md") != "a" {
			t.Errorf("%s: files %s", name, d.files())
		}
	}
}

func TestTemporaryFilesOfAKilledProcessAreRemoved(t *testing.T) {
	const temp = "1_a/.switchyard-x.tmp"
	d := newFixture(t, map[string]string{temp: "", "1_a/x.md": "", "elsewhere/.switchyard-y.tmp": ""})
	outside := t.TempDir()
	d.must(os.WriteFile(filepath.Join(outside, ".switchyard-z.tmp"), nil, 0o666))
	d.must(os.Symlink(outside, d.path("2_b")))
	d.must(sweepTemp(d.dir))
	if _, err := os.Lstat(d.path(temp)); !errors.Is(err, fs.ErrNotExist) {
		t.Error("it is there: ", err)
	}
	for _, path := range []string{d.path("1_a/x.md"), filepath.Join(outside, ".switchyard-z.tmp")} {
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
}
