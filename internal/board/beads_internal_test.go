//go:build unix

package board

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/internal/waittest"
)

// fakeBD is a program that lists a file, and changes the statuses in it. It gets none of our secrets.
const fakeBD = `#!/bin/sh
echo "$BD_JSON_ENVELOPE$SWITCHYARD_PROJECT_TOKEN $*" >>calls
case "$1" in
list) cat said; exit $(cat code 2>/dev/null || echo 0) ;;
blocked) cat blocked ;;
update) sed "/\"id\":\"$2\"/s/\"status\":\"[a-z_]*\"/\"status\":\"$4\"/" said >new && mv new said ;;
esac
`

const beadsIssues = `{"schema_version":1,"data":[
{"id":"bd-1","title":"Log in","description":"Text.","notes":"More.","status":"open","issue_type":"task","updated_at":"2026-01-02T03:04:05Z"},
{"id":"bd-1.1","title":"Log out","status":"in_progress","dependencies":[{"depends_on_id":"bd-1","type":"blocks"},{"depends_on_id":"bd-4","type":"blocks"}]},
{"id":"bd-3","title":"Wait","status":"blocked","dependencies":[{"depends_on_id":"bd-1","type":"related"}]},
{"id":"bd-4","title":"Over","status":"closed","dependencies":[{"depends_on_id":"bd-1","type":"blocks"}]},
{"id":"bd-5","status":"deferred"},{"id":"bd-6","status":"pinned"},{"id":"bd-7","status":"odd"},
{"id":"--force","status":"open"},{"id":"bd-8","issue_type":"agent","status":"open"},17
]}`

// TestMain puts the bd that repeats into the path.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		bin, err := os.MkdirTemp("", "")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(bin)
		if err := os.WriteFile(filepath.Join(bin, "bd"), []byte(fakeBD), 0o755); err != nil {
			panic(err)
		}
		os.Setenv("PATH", bin+":"+os.Getenv("PATH"))
		os.Setenv("SWITCHYARD_PROJECT_TOKEN", "secret")
		return m.Run()
	}())
}

func openBeadsBoard(t *testing.T, said string) *layoutBoard {
	t.Helper()
	return openLayout(t, "beads", map[string]string{".beads/beads.db": "", "said": said})
}

func TestBeadsIssuesStandWhereBDSays(t *testing.T) {
	b := openBeadsBoard(t, beadsIssues)
	want := "1_deferred: bd-5 (Bd 5)\n2_open: bd-1 (Log in)\n2_open: bd-3 (Wait) blocked: The status of the issue is blocked.\n" +
		"2_open: bd-6 (Bd 6)\n3_in_progress: bd-1.1 (Log out) blocked: blocked by bd-1\n4_closed: bd-4 (Over)\n5_odd: bd-7 (Bd 7)"
	if b.shows() != want {
		t.Fatalf("got\n%s\nwant\n%s", b.shows(), want)
	}
	d, err := b.Read("bd-1")
	if err != nil || d.Path != ".beads" || d.Body != "Text.\n\nMore." || d.Since.UTC().Format(time.DateTime) != "2026-01-02 03:04:05" {
		t.Errorf("%+v, %v", d, err)
	}
	closed := "4_closed"
	if err := b.change("bd-1", Change{Stage: &closed}); err != nil {
		t.Fatal(err)
	}
	if b.moved() != "bd-1 2_open 4_closed" || !strings.Contains(b.shows(), "3_in_progress: bd-1.1 (Log out)\n") {
		t.Errorf("moves %s\n%s", b.moved(), b.shows())
	}
	if calls, want := b.content("calls"), "1 list --all --json --limit=0\n1 update bd-1 --status closed\n1 list --all --json --limit=0\n"; calls != want {
		t.Errorf("calls\n%s", calls)
	}
	if err := b.change("bd-1", Change{Stage: &closed, Version: "x"}); err == nil {
		t.Error("a change of another version was made")
	}
}

// TestAnOldBDIsAskedWhatIsBlocked: what it lists does not say so.
func TestAnOldBDIsAskedWhatIsBlocked(t *testing.T) {
	b := openLayout(t, "beads", map[string]string{
		".beads/beads.db": "", "blocked": `[{"id":"bk-2","status":"open","blocked_by_count":1,"blocked_by":["bk-1"]}]`,
		"said": `[{"id":"bk-1","title":"Bake","status":"open","dependency_count":0},` +
			`{"id":"bk-2","title":"Serve","status":"open","dependency_count":1},{"id":"bk-3","title":"Sweep","status":"open","dependency_count":1}]`,
	})
	want := "2_open: bk-1 (Bake)\n2_open: bk-2 (Serve) blocked: blocked by bk-1\n2_open: bk-3 (Sweep)"
	story, _, _ := b.View().Find("bk-2")
	if b.shows() != want || !slices.Equal(story.DependsOn, []string{"bk-1"}) || !slices.Equal(story.WaitsFor, []string{"bk-1"}) {
		t.Errorf("%+v\n%s", story, b.shows())
	}
}

func TestBDIsAskedWhenItsFilesChangeButNotTooOften(t *testing.T) {
	t.Parallel() // it waits
	b := openBeadsBoard(t, beadsIssues)
	start := time.Now()
	b.write("said", strings.Replace(beadsIssues, `"open"`, `"in_progress"`, 1))
	b.write("other", "no file of beads")
	for i := range 20 {
		b.write(".beads/beads.db", strings.Repeat("x", i))
	}
	waittest.Until(t, "the move", func() bool { return b.moved() == "bd-1 2_open 3_in_progress" })
	if took := time.Since(start); took < beadsPoll/2 || strings.Count(b.content("calls"), "list") != 2 {
		t.Errorf("after %s: %s", took, b.content("calls"))
	}
}

// TestABoardOutlivesWhatBDSaysWrong and shows why.
func TestABoardOutlivesWhatBDSaysWrong(t *testing.T) {
	t.Parallel() // it waits
	b := openBeadsBoard(t, beadsIssues)
	before := b.shows()
	for want, files := range map[string]map[string]string{
		"exit status 3": {"said": "x", "code": "3"}, "16 MiB": {"said": strings.Repeat(" ", maxJSON+1), "code": "0"},
	} {
		writeTree(t, b.dir, files)
		b.write(".beads/beads.db", want)
		waittest.Until(t, want, func() bool {
			return b.View().Err != nil && strings.Contains(b.View().Err.Error(), want) && b.shows() == before
		})
	}
	writeTree(t, b.dir, map[string]string{"said": "[]", "code": "0"})
	b.write(".beads/beads.db", "")
	waittest.Until(t, "an empty board", func() bool { return b.View().Err == nil && b.shows() == "" })
}

func TestWithoutBDThereIsNoBoardOfBeads(t *testing.T) {
	dir := t.TempDir()
	writeTree(t, dir, map[string]string{".beads/beads.db": ""})
	if found, err := Find(dir, ""); err != nil || len(found) > 0 {
		t.Errorf("found %v, %v", found, err)
	}
	t.Setenv("PATH", t.TempDir())
	_, err := Open(Options{Dir: dir, Layout: "beads", Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "bd cannot be run") {
		t.Errorf("%v", err)
	}
}

// TestBeadsHaveAPast in the file that bd keeps for git.
func TestBeadsHaveAPast(t *testing.T) {
	b := openBeadsBoard(t, beadsIssues)
	past := b.Past()
	unit := past.Unit(".beads/issues.jsonl")
	got := past.Stories(unit, pastFiles{".beads/issues.jsonl": `{"id":"bd-1","status":"closed"}` + "\n" + `{"id":"bd-3","status":"blocked"}` + "\n"})
	if len(got) != 2 || got["bd-1"] != "4_closed" || got["bd-3"] != "2_open" {
		t.Errorf("%v", got)
	}
}
