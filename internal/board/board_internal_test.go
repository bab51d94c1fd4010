//go:build unix

package board

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"switchyard/internal/feed"
)

// fixture is a board of a real directory that is scanned only by tests.
type fixture struct {
	*Board
	t        *testing.T
	dir      string
	logs     *bytes.Buffer
	recorded []feed.Notification
}

func newFixture(t *testing.T, files map[string]string) *fixture {
	t.Helper()
	d := &fixture{t: t, dir: t.TempDir(), logs: &bytes.Buffer{}}
	for path, content := range files {
		d.write(path, content)
	}
	d.open()
	return d
}

func (d *fixture) open() {
	d.t.Helper()
	board, err := Open(Options{
		Dir:    d.dir,
		Log:    slog.New(slog.NewTextHandler(d.logs, nil)),
		Record: func(n ...feed.Notification) { d.recorded = append(d.recorded, n...) },
	})
	if err != nil {
		d.t.Fatal(err)
	}
	d.Board = board
}

func (d *fixture) path(path string) string { return filepath.Join(d.dir, path) }

func (d *fixture) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *fixture) write(path, content string) {
	d.t.Helper()
	d.must(os.MkdirAll(filepath.Dir(d.path(path)), 0o777))
	d.must(os.WriteFile(d.path(path), []byte(content), 0o666))
}

func (d *fixture) move(from, to string) {
	d.t.Helper()
	d.must(os.Rename(d.path(from), d.path(to)))
}

func (d *fixture) remove(path string) {
	d.t.Helper()
	d.must(os.RemoveAll(d.path(path)))
}

// expect scans, and compares what is recorded with want.
func (d *fixture) expect(want string) {
	d.t.Helper()
	d.recorded = nil
	if _, err := d.scan(nil, false); err != nil {
		d.t.Fatal(err)
	}
	if got := recorded(changes{notifications: d.recorded}); got != want {
		d.t.Errorf("recorded %q, want %q", got, want)
	}
}

// stories returns the names on the board, by stage.
func (d *fixture) stories() string {
	var stages []string
	for _, stage := range d.View().Stages {
		var names []string
		for _, item := range stage.Stories {
			names = append(names, item.Name)
		}
		stages = append(stages, stage.Name+"["+strings.Join(names, " ")+"]")
	}
	return strings.Join(stages, " ")
}

func (d *fixture) expectStories(want string) {
	d.t.Helper()
	if got := d.stories(); got != want {
		d.t.Errorf("the board shows %s, want %s", got, want)
	}
}

func TestStagesAreMadeWhereThereAreNone(t *testing.T) {
	d := newFixture(t, map[string]string{"notes/x.md": ""})
	d.expectStories("1_backlog[] 2_current[] 3_qa[] 4_merge[] 5_done[] 6_archived[]")
	d = newFixture(t, map[string]string{"7_only/x.md": "text"})
	d.expectStories("7_only[x]")
}

func TestAWorkDirectoryThatIsMissingOrAFileStopsTheStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, file + "-missing"} {
		if _, err := Open(Options{Dir: dir, Log: slog.New(slog.DiscardHandler)}); err == nil {
			t.Errorf("%s was taken", dir)
		}
	}
}

func TestOnlyRegularFilesInStagesAreItems(t *testing.T) {
	d := newFixture(t, map[string]string{
		"2_current/7_login.md": "---\nname: Login\n---\n", "2_current/.7_hidden.md": "x", "2_current/.md": "x",
		"2_current/7_login.md~": "x", "2_current/notes.txt": "x", "2_current/sub.md/x.md": "x",
		"10_late/a.md": "# A", "backlog/x.md": "x", ".2_hidden/x.md": "x", "3_file.md": "x",
	})
	outside := t.TempDir()
	d.must(os.WriteFile(filepath.Join(outside, "secret.md"), []byte("---\nname: secret\n---\n"), 0o666))
	d.must(os.Symlink(outside, d.path("4_linked")))
	d.must(os.Symlink(filepath.Join(outside, "secret.md"), d.path("2_current/link.md")))
	d.must(os.Symlink("/nowhere", d.path("2_current/.#lock.md")))
	d.must(unix.Mkfifo(d.path("2_current/pipe.md"), 0o666))
	d.expect("")
	d.expectStories("2_current[Login] 10_late[A]")
}

func TestAFileWithoutReadableFrontMatterIsNamedByItsHeadingOrID(t *testing.T) {
	d := newFixture(t, map[string]string{
		"1_a/empty.md":  "",
		"1_a/broken.md": "---\nname: [\n---\n# Heading\n",
		"1_a/large.md":  "---\nname: Large\nblocked: true\n---\n" + strings.Repeat("x", maxFile),
		"1_a/titled.md": "---\nname: Large\n---\n# Title\n" + strings.Repeat("x", maxFile),
		"1_a/limit.md":  "---\nname: Limit\n---\n" + strings.Repeat("x", maxFile-21),
	})
	d.expectStories("1_a[Heading empty large Limit Title]")
	d.write("1_a/large.md", "---\nname: Not large\n---\n")
	d.expect("")
	d.expectStories("1_a[Heading empty Not large Limit Title]")
}

func TestSavesOfEditorsCauseNoEvents(t *testing.T) {
	const before, after = "---\nname: Old\nblocked: key\n---\n", "---\nname: New\nblocked: key\n---\nmore\n"
	const item = "2_current/7_login.md"
	for name, save := range map[string]func(d *fixture){
		"rename over": func(d *fixture) {
			d.write("2_current/.7_login.md.tmp", after)
			d.expect("")
			d.move("2_current/.7_login.md.tmp", item)
		},
		"backup and new file": func(d *fixture) {
			d.write("2_current/4913", "")
			d.remove("2_current/4913")
			d.move(item, item+"~")
			d.expect("")
			d.write(item, after)
			d.expect("")
			d.remove(item + "~")
		},
		"truncate and write": func(d *fixture) {
			d.write(item, "")
			d.expect("")
			d.write(item, after[:20])
			d.expect("")
			d.write(item, after)
		},
		"delete and write": func(d *fixture) {
			d.remove(item)
			d.expect("")
			d.write(item, after)
		},
		"touch": func(d *fixture) {
			d.must(os.Chtimes(d.path(item), time.Now(), time.Now()))
			d.expect("")
			d.write(item, after)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newFixture(t, map[string]string{item: before})
			save(d)
			d.expect("")
			d.expectStories("2_current[New]")
		})
	}
}

func TestWaysToMoveAFile(t *testing.T) {
	const content = "---\nname: Login\n---\n"
	const from, to = "2_current/7_login.md", "3_qa/7_login.md"
	for name, move := range map[string]func(d *fixture){
		"rename": func(d *fixture) {
			d.move(from, to)
			d.expect("Login 2_current>3_qa")
		},
		"copy and delete": func(d *fixture) {
			d.write(to, content)
			d.expect("Login 2_current>3_qa")
			d.remove(from)
			d.expect("")
		},
		"copy with its time, and delete": func(d *fixture) {
			info, err := os.Stat(d.path(from))
			d.must(err)
			d.write(to, content)
			d.must(os.Chtimes(d.path(to), info.ModTime(), info.ModTime()))
			d.expect("Login 2_current>3_qa")
			d.expect("")
			d.remove(from)
			d.expect("")
		},
		"delete and write": func(d *fixture) {
			d.remove(from)
			d.expect("")
			d.write(to, content)
			d.expect("Login 2_current>3_qa")
		},
		"link and unlink": func(d *fixture) {
			d.must(os.Link(d.path(from), d.path(to)))
			d.expect("Login 2_current>3_qa")
			d.remove(from)
			d.expect("")
		},
		"rename of the stage": func(d *fixture) {
			d.remove("3_qa")
			d.move("2_current", "3_qa")
			d.expect("Login 2_current>3_qa")
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newFixture(t, map[string]string{from: content, "3_qa/other.md": content})
			move(d)
			d.expect("")
		})
	}
}

// Even a change that keeps size, time of modification and inode is detected.
func TestContentOfTheSameSizeAndTimeIsRead(t *testing.T) {
	d := newFixture(t, map[string]string{"2_current/a.md": "---\nblocked: aaa\n---\n"})
	old := time.Now().Add(-time.Hour)
	for _, reason := range []string{"bbb", "ccc", "ddd"} {
		d.write("2_current/a.md", "---\nblocked: "+reason+"\n---\n")
		d.must(os.Chtimes(d.path("2_current/a.md"), old, old))
		d.expect("a blocked: " + reason)
	}
}

// Within a tick of the file system's clock, a second change may not change the identity, so the content of such a young
// file is not relied upon.
func TestAFileReadRightAfterAChangeIsReadAgain(t *testing.T) {
	d := newFixture(t, map[string]string{"2_current/a.md": "---\nblocked: key\n---\n"})
	read := d.layout.(*scanner).stage("2_current").known["a"]
	for _, stable := range []bool{false, true} {
		read.facts, read.stable = facts{name: "other"}, stable
		if _, err := d.layout.(*scanner).scan(nil); err != nil {
			t.Fatal(err)
		}
		if again := read.facts.blocked == "key"; again == stable {
			t.Errorf("stable %t: read again %t", stable, again)
		}
	}
}

func TestAWorkDirectoryThatGoesAndComes(t *testing.T) {
	d := newFixture(t, map[string]string{"2_current/a.md": "---\nblocked: key\n---\n", "2_current/b.md": "b", "3_qa/c.md": "c"})
	d.move("", "../away")
	if _, err := d.scan(nil, false); err == nil {
		t.Error("scanned a directory that is gone")
	}
	d.expectStories("2_current[a b] 3_qa[c]")
	if err := d.View().Err; !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the view's error is %v", err)
	}
	d.move("../away", "")
	d.expect("")
	if err := d.View().Err; err != nil {
		t.Errorf("the directory is back, the view's error is %v", err)
	}
	d.move("2_current/b.md", "3_qa/b.md")
	d.expect("b 2_current>3_qa")
}

func TestAStageThatGoesAndComes(t *testing.T) {
	d := newFixture(t, map[string]string{"2_current/a.md": "---\nblocked: key\n---\n", "3_qa/b.md": "b"})
	d.move("2_current", "away")
	d.expect("")
	d.expectStories("3_qa[b]")
	d.move("away", "2_current")
	d.expect("")
	d.expectStories("2_current[a] 3_qa[b]")
}

func TestWhatCannotBeReadStaysAsItWas(t *testing.T) {
	d := newFixture(t, map[string]string{"2_current/a.md": "---\nblocked: key\n---\n", "2_current/b.md": "b", "3_qa/c.md": "c"})
	withoutPrivileges(t, d.dir)
	for _, test := range []struct {
		path       string
		mode, back fs.FileMode
	}{
		{"2_current", 0, 0o755},     // cannot be listed
		{"2_current", 0o444, 0o755}, // names can be listed, but not opened
		{"2_current/a.md", 0, 0o644},
	} {
		d.must(os.Chmod(d.path(test.path), test.mode))
		d.expect("")
		d.expectStories("2_current[a b] 3_qa[c]")
		if state := d.layout.(*scanner).stage("2_current").known["a"].facts.state; strings.HasSuffix(test.path, ".md") && state != unreadable {
			t.Errorf("%s is taken to be %d", test.path, state)
		}
		d.must(os.Chmod(d.path(test.path), test.back))
		d.expect("")
		d.expectStories("2_current[a b] 3_qa[c]")
	}
	if got := strings.Count(d.logs.String(), "cannot read stage 2_current"); got != 2 {
		t.Errorf("logged %d times: %s", got, d.logs)
	}
}
