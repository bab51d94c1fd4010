package board

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/feed"
	"switchyard/internal/waittest"
)

// layoutBoard is a board of any layout in a directory of its own.
type layoutBoard struct {
	*Board
	t   *testing.T
	dir string

	mu    sync.Mutex
	moves []string
}

func writeTree(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// openLayout finds and opens the only board of files, and follows it until the test ends.
func openLayout(t *testing.T, layout string, files map[string]string) *layoutBoard {
	t.Helper()
	b := &layoutBoard{t: t, dir: t.TempDir()}
	writeTree(t, b.dir, files)
	found, err := Find(b.dir, layout)
	if err != nil || len(found) != 1 || found[0].Dir != b.dir {
		t.Fatalf("found %v, %v", found, err)
	}
	b.Board, err = Open(Options{
		Dir: b.dir, Layout: layout, State: t.TempDir(), Log: slog.New(slog.DiscardHandler), AllowWrites: true,
		Record: func(list ...feed.Notification) {
			b.mu.Lock()
			defer b.mu.Unlock()
			for _, n := range list {
				if n.Type == domain.StageTransition && n.FromStage == "" { // a new story is no event
					continue
				}
				b.moves = append(b.moves, strings.TrimSpace(fmt.Sprint(n.StoryID, " ", n.FromStage, " ", n.ToStage, " ", n.Reason)))
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = b.Run(t.Context())
	}()
	t.Cleanup(func() { <-ended })
	return b
}

// openQuietly opens a board that is scanned only by the test.
func openQuietly(t *testing.T, layout string, files map[string]string) *layoutBoard {
	t.Helper()
	b := &layoutBoard{t: t, dir: t.TempDir()}
	writeTree(t, b.dir, files)
	var err error
	b.Board, err = Open(Options{
		Dir: b.dir, Layout: strings.TrimPrefix(layout, "stages"), Log: slog.New(slog.DiscardHandler), Record: func(...feed.Notification) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// shows returns the stories as "stage: id (name) done/total".
func (b *layoutBoard) shows() string {
	var lines []string
	for _, stage := range b.View().Stages {
		for _, s := range stage.Stories {
			line := fmt.Sprintf("%s: %s (%s)", stage.Name, s.ID, s.Name)
			if s.Criteria.Total > 0 {
				line += fmt.Sprintf(" %d/%d", s.Criteria.Done, s.Criteria.Total)
			}
			if s.Blocked != "" {
				line += " blocked: " + s.Blocked
			}
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

func (b *layoutBoard) moved() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.moves, "\n")
}

func (b *layoutBoard) write(name, content string) {
	writeTree(b.t, b.dir, map[string]string{name: content})
}

func (b *layoutBoard) content(name string) string {
	b.t.Helper()
	text, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

func (b *layoutBoard) change(id string, c Change) error {
	b.t.Helper()
	d, err := b.Read(id)
	if err != nil {
		b.t.Fatal(err)
	}
	if c.Version == "" {
		c.Version = d.Version
	}
	after, err := b.Change(context.Background(), id, c)
	if err == nil {
		if again, err := b.Read(id); err != nil || again.Version != after.Version {
			b.t.Errorf("after the change: %v, %v", again, err)
		}
	}
	return err
}

var folderBoards = map[string]struct {
	files map[string]string
	want  string
}{
	"openspec": {
		map[string]string{
			"openspec/changes/add-dark/proposal.md":             "# Change: Add **dark** mode\n",
			"openspec/changes/b/tasks.md":                       "```\n- [ ] in a fence\n```\n  1) [x] nested\r\n+ [~] begun\r\n- [](x)\n- [ ](y)\n- [A](z)\n",
			"openspec/changes/c/tasks.md":                       "- [x] a\n* [X]b\n",
			"openspec/changes/d/tasks.md":                       "- [ ] a\n",
			"openspec/changes/empty/specs/a.md":                 "",
			"openspec/changes/archive/2025-01-02-c/tasks.md":    "- [ ] a\n",
			"openspec/changes/archive/2025-01-02-e/tasks.md":    "- [ ] a\n",
			"openspec/changes/archive/2025-02-01-c/proposal.md": "# Change: Latest\n",
			"openspec/changes/archive/c/proposal.md":            "# Change: Undated\n",
			"openspec/changes/ORDER.md":                         "",
		},
		"1_draft: add-dark (Add **dark** mode)\n1_draft: empty (Empty)\n2_planned: d (D) 0/1\n3_doing: b (B) 1/4\n4_done: c (C) 2/2\n" +
			"5_archived: c~3 (C) 0/1\n5_archived: e (E) 0/1\n5_archived: c~2 (Latest)\n5_archived: c~4 (Undated)",
	},
	"spec-kit": {
		map[string]string{
			"specs/001-a/spec.md": "## No\n# Feature Specification: Log in\n", "specs/002-b/spec.md": "", "specs/002-b/plan.md": "",
			"specs/003-c/spec.md": "", "specs/003-c/tasks.md": "- [X] T001 a\n```\n- [ ] none\n```\n- [ ] T002 b\n",
			"specs/004-d/plan.md": "", "specs/x/spec.md": "", "specs/010-z/spec.md": "", "specs/010-z/tasks.md": "- [x] a\n",
		},
		"1_draft: 001-a (Log in)\n2_planned: 002-b (002 b)\n3_doing: 003-c (003 c) 1/2\n4_done: 010-z (010 z) 1/1",
	},
	"kiro": {
		map[string]string{
			".kiro/specs/a/requirements.md": "# Requirements Document\n", ".kiro/specs/b/design.md": "",
			".kiro/specs/c/tasks.md": "- [-] 1. a\n- [ ]* 2. b\n", ".kiro/specs/d/tasks.md": "- [x] 1. a\n- [ ]* 2. b\n- [x]* 3. c\n",
			".kiro/specs/_old/e/tasks.md": "- [x] a\n", ".kiro/specs/README.md": "",
		},
		"1_draft: a (A)\n2_planned: b (B)\n3_doing: c (C) 0/1\n4_done: d (D) 1/1",
	},
}

func TestFoldersAreStoriesWhoseBoxesSayHowFarTheyAre(t *testing.T) {
	for layout, test := range folderBoards {
		t.Run(layout, func(t *testing.T) {
			if got := openLayout(t, layout, test.files).shows(); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

func TestAFolderMovesWithItsBoxes(t *testing.T) {
	b := openLayout(t, "openspec", map[string]string{
		"openspec/changes/a/tasks.md": "- [ ] one\n- [ ] two\n", "openspec/changes/b/design.md": "# No list\n",
	})
	d, err := b.Read("a")
	if err != nil || d.Path != "openspec/changes/a/tasks.md" || len(d.Tasks) != 2 || d.Tasks[1].Line != 2 || d.Label != "Planned" {
		t.Fatalf("%+v, %v", d, err)
	}
	if err := b.change("a", Change{Task: &TaskChange{Line: 2, Done: true}}); err != nil {
		t.Fatal(err)
	}
	if got := b.content("openspec/changes/a/tasks.md"); got != "- [ ] one\n- [x] two\n" {
		t.Errorf("%q", got)
	}
	b.write("openspec/changes/a/tasks.md", "") // half written
	waittest.Until(t, "the torn file to be seen", func() bool { return b.layout.(*units).seesTorn(b.Board) })
	b.write("openspec/changes/a/tasks.md", "- [x] one\n- [x] two\n")
	waittest.Until(t, "done", func() bool { return strings.HasSuffix(b.moved(), "4_done") })
	from, to := filepath.Join(b.dir, "openspec/changes/a"), filepath.Join(b.dir, "openspec/changes/archive/2026-01-02-a")
	if err := os.Mkdir(filepath.Dir(to), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "archived", func() bool { return strings.HasSuffix(b.moved(), "5_archived") })
	if want := "a 2_planned 3_doing\na 3_doing 4_done\na 4_done 5_archived"; b.moved() != want {
		t.Errorf("moves\n%s", b.moved())
	}
	stage := "3_doing"
	for _, test := range []struct {
		change Change
		want   string
	}{
		{Change{Stage: &stage}, "openspec archive"},
		{Change{Version: "old"}, "changed"},
		{Change{Task: &TaskChange{Line: 9, Done: true}}, "line 9"},
	} {
		if err := b.change("a", test.change); (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v", test.change, err)
		}
	}
	if err := b.change("b", Change{Task: &TaskChange{Line: 1, Done: true}}); err == nil || !strings.Contains(err.Error(), "no box on line 1") {
		t.Errorf("a box where there is no list: %v", err)
	}
	if _, err := b.Create(t.Context(), "x", "", ""); err == nil {
		t.Error("a story was created")
	}
}

// TestABlockBesideTheFilesComesAndGoes although no file of an old story changes with it.
func TestABlockBesideTheFilesComesAndGoes(t *testing.T) {
	t.Parallel() // it waits
	const tasks = "openspec/changes/a/tasks.md"
	b := openLayout(t, "openspec", map[string]string{tasks: "- [ ] one\n"})
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(b.dir, tasks), old, old); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "the old file to be known", func() bool {
		return b.View().Stages[1].Stories[0].ID == "a" && b.layout.(*units).isStable(b.Board)
	})
	for _, reason := range []string{"key", "other key", ""} {
		if err := b.change("a", Change{Blocked: &reason}); err != nil {
			t.Fatal(err)
		}
		waittest.Until(t, "the block "+reason, func() bool { return b.View().Stages[1].Stories[0].Blocked == reason })
	}
}

func (s *units) isStable(b *Board) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, u := range s.units {
		if !u.stable {
			return false
		}
	}
	return true
}

func (s *units) seesTorn(b *Board) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, u := range s.units {
		if !u.torn.IsZero() {
			return true
		}
	}
	return false
}

func TestAHostileTreeOfFoldersIsHarmless(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	writeTree(t, outside, map[string]string{"tasks.md": "- [x] secret\n", "proposal.md": "# Secret\n"})
	b := openLayout(t, "openspec", map[string]string{
		"openspec/changes/many/tasks.md": strings.Repeat("- [ ] x\n", 50_000),
		"openspec/changes/big/tasks.md":  strings.Repeat("- [x] x\n", 200_000),
	})
	for name, target := range map[string]string{"link": outside, "many/proposal.md": filepath.Join(outside, "proposal.md")} {
		if err := os.Symlink(target, filepath.Join(b.dir, "openspec/changes", name)); err != nil {
			t.Fatal(err)
		}
	}
	b.write("openspec/changes/new/tasks.md", "- [ ] x\n")
	waittest.Until(t, "the new story with its box", func() bool { return strings.Contains(b.shows(), "new (New) 0/1") })
	if got, want := b.shows(), "2_planned: many (Many) 0/50000\n2_planned: new (New) 0/1"; got != want {
		t.Errorf("got\n%s", got)
	}
	if faults := b.View().Faults; len(faults) != 1 || !strings.Contains(faults[0].Text, "big/tasks.md cannot be read: it is larger than 1 MiB") {
		t.Errorf("%+v", faults)
	}
}

// TestWhatIsBesideTheBoardMakesNobodyReadIt: the top of a repository is watched, too, since the board may come and go there.
func TestWhatIsBesideTheBoardMakesNobodyReadIt(t *testing.T) {
	b := openLayout(t, "spec-kit", map[string]string{"specs/001-a/spec.md": "# A\n"})
	b.Board.mu.Lock()
	defer b.Board.mu.Unlock()
	for name, known := range map[string]bool{
		"x.tmp": true, "specs": false, "specs/002-b": false, "specs/001-a/spec.md": true, "specs/001-a/plan.md": false,
	} {
		if changed := (fileSet{}); b.layout.touch(changed, filepath.Join(b.dir, name)) != known || len(changed) > 0 != (name == "specs/001-a/spec.md") {
			t.Errorf("%s: %v", name, changed)
		}
	}
}

// TestWhatAKilledServerHasLeftGoes at the next start of one that writes.
func TestWhatAKilledServerHasLeftGoes(t *testing.T) {
	const left = "specs/001-a/" + tempPrefix + "x" + tempSuffix
	files := map[string]string{"specs/001-a/spec.md": "# A\n", left: "half"}
	for dir, want := range map[string]bool{openQuietly(t, "spec-kit", files).dir: true, openLayout(t, "spec-kit", files).dir: false} {
		if _, err := os.Lstat(filepath.Join(dir, left)); (err == nil) != want {
			t.Errorf("there: %v, want %t", err, want)
		}
	}
}

// TestABoxOfAChangeWithSeveralListsIsTickedInItsFile, which its schema's pattern finds.
func TestABoxOfAChangeWithSeveralListsIsTickedInItsFile(t *testing.T) {
	schema := "artifacts:\n- {id: tasks, generates: 'parts/**/{one,two}.md'}\n"
	b := openLayout(t, "openspec", map[string]string{
		"openspec/config.yaml": "schema: own\n", "openspec/schemas/own/schema.yaml": schema,
		"openspec/changes/a/tasks.md": "- [ ] old\n", "openspec/changes/a/parts/one.md": "- [x] first\n",
		"openspec/changes/a/parts/deep/two.md": "- [ ] second\n", "openspec/changes/a/parts/three.md": "- [ ] third\n",
		"openspec/changes/b/.openspec.yaml": "schema: spec-driven\n", "openspec/changes/b/tasks.md": "- [x] alone\n",
	})
	if want := "3_doing: a (A) 1/2\n4_done: b (B) 1/1"; b.shows() != want {
		t.Fatalf("got\n%s\nwant\n%s", b.shows(), want)
	}
	const file = "openspec/changes/a/parts/deep/two.md"
	if err := b.change("a", Change{Task: &TaskChange{Line: 1, Done: true}}); err == nil || !strings.Contains(err.Error(), "no box on line 1") {
		t.Errorf("without a file: %v", err)
	}
	if err := b.change("a", Change{Task: &TaskChange{Path: file, Line: 1, Done: true}}); err != nil || b.content(file) != "- [x] second\n" {
		t.Errorf("%v, %s", err, b.content(file))
	}
	if b.moved() != "a 3_doing 4_done" {
		t.Errorf("moves: %s", b.moved())
	}
	if err := b.change("b", Change{Task: &TaskChange{Path: "openspec/changes/b/tasks.md", Line: 1}}); err != nil {
		t.Errorf("the only file: %v", err)
	}
}

// pastFiles are the files of a commit.
type pastFiles map[string]string

func (f pastFiles) Has(name string) bool { _, has := f[name]; return has }

func (f pastFiles) Below(dir string) (files []string) {
	for name := range f {
		if strings.HasPrefix(name, dir+"/") {
			files = append(files, name)
		}
	}
	return files
}

func (f pastFiles) Read(name string) []byte {
	if text, has := f[name]; has {
		return []byte(text)
	}
	return nil
}
