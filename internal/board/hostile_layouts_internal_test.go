//go:build unix

package board

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"switchyard/internal/waittest"
)

// hostileLayout is a board of a layout with the stories good and bad.
type hostileLayout struct {
	files map[string]string
	bad   string                   // the file with the boxes or the status of bad
	good  string                   // the id of the other
	one   bool                     // both are in one file
	more  func(name string) string // a file that makes another story of a name
}

var hostileLayouts = map[string]hostileLayout{
	"stages": {
		map[string]string{"1_a/good.md": "# Good\n- [x] a\n", "1_a/bad.md": "---\nname: Bad\n---\n- [x] a\n"},
		"1_a/bad.md", "good", false,
		func(name string) string { return "1_a/" + name + ".md" },
	},
	"openspec": {
		map[string]string{"openspec/changes/good/tasks.md": "- [x] a\n", "openspec/changes/bad/tasks.md": "- [x] a\n"},
		"openspec/changes/bad/tasks.md", "good", false, func(name string) string { return "openspec/changes/" + name + "/tasks.md" },
	},
	"spec-kit": {
		map[string]string{
			"specs/001-good/spec.md": "# Good\n", "specs/001-good/tasks.md": "- [x] a\n", "specs/002-bad/spec.md": "# Bad\n",
			"specs/002-bad/tasks.md": "- [x] a\n",
		},
		"specs/002-bad/tasks.md", "001-good", false, func(name string) string { return "specs/003-" + name + "/spec.md" },
	},
	"kiro": {
		map[string]string{".kiro/specs/good/tasks.md": "- [x] a\n", ".kiro/specs/bad/tasks.md": "- [x] a\n"},
		".kiro/specs/bad/tasks.md", "good", false, func(name string) string { return ".kiro/specs/" + name + "/tasks.md" },
	},
	"backlog.md": {
		map[string]string{
			"backlog/config.yml": "statuses: [To Do, Done]\n", "backlog/tasks/good.md": "---\nid: good\nstatus: Done\n---\n",
			"backlog/tasks/bad.md": "---\nid: bad\nstatus: Done\n---\n## Acceptance Criteria\n- [x] a\n",
		},
		"backlog/tasks/bad.md", "good", false, func(name string) string { return "backlog/tasks/" + name + ".md" },
	},
	"task-master": {
		map[string]string{taskMasterFile: `{"master":{"tasks":[{"id":"good","status":"done"},{"id":"bad","status":"done"}]}}`},
		taskMasterFile, "good", true, nil,
	},
	"bmad": {
		map[string]string{
			"docs/sprint-status.yaml": bmadKey + ":\n  good: done\n  bad: done\n", "docs/good.md": "# Good\n", "docs/bad.md": "# Bad\n- [x] a\n",
		},
		"docs/bad.md", "good", false, func(name string) string { return "docs/" + name + ".md" },
	},
	"bmad statuses": {
		map[string]string{"docs/sprint-status.yaml": bmadKey + ":\n  good: done\n  bad: done\n"}, "docs/sprint-status.yaml", "good", true, nil,
	},
	"beads": { // where links and files that come and go are up to bd
		map[string]string{".beads/x": "", "said": `[{"id":"good","status":"closed"},{"id":"bad","status":"closed"}]`}, "said", "good", true, nil,
	},
}

// hostility is what happens to a file of the story bad.
type hostility struct {
	name string
	do   func(path string) error
}

// secret is in a file outside of the board.
const secret = "s3cret"

func writes(content func() string) func(path string) error {
	return func(path string) error { return os.WriteFile(path, []byte(content()), 0o666) }
}

func hostilities(outside string) []hostility {
	link := func(to string) func(path string) error {
		return func(path string) error { return errors.Join(os.Remove(path), os.Symlink(to, path)) }
	}
	repeat, many := strings.Repeat, 1<<20
	return []hostility{
		{"is huge", func(path string) error { return os.Truncate(path, 64<<20) }},
		{"is a link out of the tree", link(outside)},
		{"is a link to nowhere", link("nowhere")},
		{"is a link to itself", func(path string) error { return link(filepath.Base(path))(path) }},
		{"is a pipe", func(path string) error { return errors.Join(os.Remove(path), unix.Mkfifo(path, 0o666)) }},
		{"cannot be read", func(path string) error { return os.Chmod(path, 0) }},
		{"becomes a directory", func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o777)) }},
		{"is in a directory that becomes a link", func(path string) error {
			dir := filepath.Dir(path)
			return errors.Join(os.Rename(dir, dir+".away"), os.Symlink(filepath.Dir(outside), dir))
		}},
		{"has NUL and no UTF-8", writes(func() string { return "---\nid: \x00\xff\nname: \xc3\x28\n---\n# \xff\x00\n- [x] \xfe\n" })},
		{"is JSON with NUL and no UTF-8", writes(func() string {
			return "{\"master\":{\"tasks\":[{\"id\":\"good\",\"status\":\"done\"},{\"id\":\"b\xff\\u0000\",\"status\":\"\xff\"}]}}"
		})},
		{"is nested deeply", writes(func() string {
			return "---\nid: " + repeat("[", 100_000) + "\n---\n" + repeat("> ", 100_000) + "- [x] a\n"
		})},
		{"is JSON that is nested deeply", writes(func() string {
			return `{"master":{"tasks":[{"id":"good","status":"done"},{"id":"x","subtasks":` + repeat("[", 4*many) + repeat("]", 4*many) + `}]}}`
		})},
		{"has very many tasks", writes(func() string { return `{"master":{"tasks":[` + repeat(`{},`, 5*many) + `{}]}}` })},
		{"has very many lists", writes(func() string { return `{"a":{"tasks":[]}` + repeat(`,"b":{"tasks":[]}`, many*7/8) + `}` })},
		{"has very many members", writes(func() string {
			return `{"master":{"tasks":[{"id":"good","status":"done"},{"id":1` + repeat(`,"a":1`, 2*many) + `}]}}`
		})},
		{"has many boxes", writes(func() string {
			return "---\nid: bad\n---\n## Acceptance Criteria\n" + repeat("- [x] a box\n", 50_000)
		})},
		{"has only marks of parts", writes(func() string { return "---\nid: bad\n---\n" + repeat("<!-- SECTION:A:BEGIN -->\n", 40_000) })},
		{"is one line", writes(func() string { return repeat("- [ ", 250_000) })},
		{"has a bomb of aliases", writes(func() string {
			bomb := "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
			for i := range 30 {
				bomb += fmt.Sprintf("a%d: &a%d [%s x]\n", i+1, i+1, repeat(fmt.Sprintf("*a%d, ", i), 9))
			}
			return "---\nid: bad\n" + bomb + "---\n"
		})},
		{"has ids twice", writes(func() string {
			return `{"master":{"tasks":[{"id":"good","status":"done"},{"id":"good","status":"pending"},{"id":"good"}]}}`
		})},
		{"has keys twice", writes(func() string { return "---\nid: good\nid: bad\n---\n" })},
		{"is empty", writes(func() string { return "" })},
		{"is gone", os.Remove},
	}
}

// TestAHostileFileHurtsNothingElse, in any layout: the other story stays, where it does not need that file, nothing outside is read,
// nothing is left open, it takes little time and memory, and all is as it was when the file is.
func TestAHostileFileHurtsNothingElse(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of processor time")
	}
	outside := filepath.Join(t.TempDir(), "tasks.md")
	if err := os.WriteFile(outside, []byte("# "+secret+"\n- [ ] "+secret+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, layout := range Layouts() {
		if _, tried := hostileLayouts[layout]; !tried {
			t.Errorf("no hostile file of %s is tried", layout)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(hostileLayouts)) {
		t.Run(name, func(t *testing.T) {
			var took time.Duration
			var used uint64
			slow, large := "", ""
			for _, h := range hostilities(outside) {
				if !h.fits(name) {
					continue
				}
				t.Run(h.name, func(t *testing.T) {
					cost, bytes := tryHostility(t, name, h)
					if cost > took {
						took, slow = cost, h.name
					}
					if bytes > used {
						used, large = bytes, h.name
					}
				})
			}
			if took > 10*time.Second || used > 256<<20 {
				t.Error("that is too much:")
			}
			t.Logf("at most %s (%s) and %d MiB (%s)", took.Round(time.Millisecond), slow, used>>20, large)
		})
	}
}

// fits reports whether the files of a layout can have that.
func (h hostility) fits(name string) bool {
	isJSON := strings.Contains(h.name, "JSON") || strings.HasPrefix(h.name, "has very many") || h.name == "has ids twice"
	switch name {
	case "beads": // where links and files that come and go are up to bd
		return isJSON || h.name == "is huge"
	case "task-master":
		return isJSON || strings.HasPrefix(h.name, "is") || h.name == "cannot be read"
	}
	return !isJSON
}

// tryHostility returns the processor time and memory that it takes to read what has happened.
func tryHostility(t *testing.T, name string, h hostility) (took time.Duration, used uint64) {
	layout, _, _ := strings.Cut(name, " ")
	planted := hostileLayouts[name]
	b := openQuietly(t, layout, planted.files)
	whole, path := b.shows(), filepath.Join(b.dir, planted.bad)
	if h.name == "cannot be read" {
		withoutPrivileges(t, b.dir)
	}
	if err := h.do(path); err != nil {
		t.Fatal(err)
	}
	var from, to runtime.MemStats
	runtime.ReadMemStats(&from)
	open, start := descriptors(t), waittest.CPUTime()
	b.reads(layout)
	took = waittest.CPUTime() - start
	runtime.ReadMemStats(&to)
	info, err := os.Lstat(path)
	isAll := h.name == "is in a directory that becomes a link" || h.name == "has very many lists" || // nothing is left
		planted.one && (err != nil || !info.Mode().IsRegular()) || name == "beads" && h.name != "is huge"
	for _, stage := range b.View().Stages {
		for _, story := range stage.Stories {
			d, err := b.Read(story.ID)
			if text, _ := json.Marshal(d); strings.Contains(string(text), secret) {
				t.Errorf("%s", text)
			}
			if story.ID == planted.good && err != nil && !planted.one && !isAll {
				t.Error(err)
			}
		}
	}
	if shows := b.shows(); !strings.Contains(shows, planted.good+" (") && !isAll {
		t.Errorf("the other story is gone:\n%s\n%v", shows, b.View().Err)
	}
	// The view shows a story for a moment longer than its files do.
	if files, is := b.layout.(*units); is && !isAll && files.index.Load().unit(planted.good) == "" {
		t.Error("the other story is about to go")
	}
	if now := descriptors(t); now > open {
		t.Errorf("%d files are open, %d were", now, open)
	}
	entries, err := os.ReadDir(b.dir)
	for _, entry := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(b.dir, entry.Name())))
	}
	if err != nil {
		t.Fatal(err)
	}
	writeTree(t, b.dir, planted.files)
	waittest.Until(t, "the board as it was", func() bool {
		b.reads(layout)
		return b.shows() == whole && b.View().Err == nil
	})
	return took, to.TotalAlloc - from.TotalAlloc
}

// TestOddNamesAreNamesOfStories, or of none, in any layout; what a link leads to is none.
func TestOddNamesAreNamesOfStories(t *testing.T) {
	for name, planted := range hostileLayouts {
		if planted.more == nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			b := openQuietly(t, name, planted.files)
			outside := t.TempDir()
			writeTree(t, outside, map[string]string{"tasks.md": secret, "spec.md": secret})
			for _, odd := range []string{
				"a\nb", "..a", "a..", "\u202eevil", "a\xffb", "- [x]", "$(id)", "*", "'\"", strings.Repeat("long", 60), "%2e%2e", "con", "a:b", " ",
			} {
				file := planted.more(odd)
				writeTree(t, b.dir, map[string]string{file: "---\nid: |\n  " + strings.ToValidUTF8(odd, "") + "\n---\n# A\n- [x] a\n"})
				if dir := filepath.Dir(file); strings.Contains(dir, odd) {
					_ = os.Symlink(outside, filepath.Join(b.dir, filepath.Dir(dir), "004-link"))
					_ = os.Symlink(".", filepath.Join(b.dir, filepath.Dir(dir), "005-loop"))
				}
			}
			b.reads(name)
			text, err := json.Marshal(b.View())
			if err != nil || b.View().Err != nil || strings.Contains(string(text), "link") || strings.Contains(string(text), "loop") {
				t.Errorf("%v, %v: %s", err, b.View().Err, text)
			}
			for _, stage := range b.View().Stages {
				for _, story := range stage.Stories {
					d, err := b.Read(story.ID)
					if err != nil || d.ID != story.ID || strings.Contains(d.Body, secret) || !filepath.IsLocal(d.Path) {
						t.Errorf("%q: %+v, %v", story.ID, d, err)
					}
				}
			}
		})
	}
}

// TestAFileThatChangesWhileItIsReadIsReadAgain: in the end the board shows what is in the files.
func TestAFileThatChangesWhileItIsReadIsReadAgain(t *testing.T) {
	for name, planted := range hostileLayouts {
		layout, _, _ := strings.Cut(name, " ")
		if name == "beads" { // bd alone reads its files
			continue
		}
		t.Run(name, func(t *testing.T) {
			b := openQuietly(t, layout, planted.files)
			whole, path := b.shows(), filepath.Join(b.dir, planted.bad)
			var writer sync.WaitGroup
			writer.Go(func() {
				text := planted.files[planted.bad]
				for i := range 300 {
					if err := os.WriteFile(path, []byte(text[:i*7%len(text)]), 0o666); err != nil {
						t.Error(err)
					}
				}
				if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
					t.Error(err)
				}
			})
			for range 100 {
				b.reads(name)
				if !strings.Contains(b.shows(), planted.good+" (") {
					t.Fatalf("the other story is gone:\n%s", b.shows())
				}
			}
			writer.Wait()
			b.reads(name)
			// The story may have been in another stage meanwhile, and be in front of the other one since.
			lines := func(text string) []string { return slices.Sorted(strings.SplitSeq(text, "\n")) }
			if shown := b.shows(); !slices.Equal(lines(shown), lines(whole)) {
				t.Errorf("it shows\n%s\nwas\n%s", shown, whole)
			}
		})
	}
}

// reads reads everything, in beads after a change through bd, since that asks it again at once.
func (b *layoutBoard) reads(layout string) {
	calls := func() int {
		text, _ := os.ReadFile(filepath.Join(b.dir, "calls"))
		return len(text)
	}
	before := calls()
	if layout == "beads" {
		if _, err := b.layout.(*units).index.Load().rules.move("none", nil, nil, stageRule{key: "open"}); err != nil {
			b.t.Error(err)
		}
		before = calls()
	}
	waittest.Until(b.t, "bd", func() bool {
		b.Board.mu.Lock()
		defer b.Board.mu.Unlock()
		b.rescanAll()
		return layout != "beads" || calls() != before
	})
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
