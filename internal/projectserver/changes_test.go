package projectserver_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchyard/internal/board"
	"switchyard/internal/gittest"
	"switchyard/internal/waittest"
	"switchyard/internal/wire"
)

// changes asks for what was made for a story, and returns the status of another answer.
func (s shop) changes(id string, query ...string) (c wire.Changes, status int) {
	s.t.Helper()
	values := url.Values{}
	for i := 0; i < len(query); i += 2 {
		values.Set(query[i], query[i+1])
	}
	status, answer, _ := s.ask("GET", "/api/stories/"+id+"/changes?"+values.Encode(), "")
	if err := json.Unmarshal([]byte(answer), &c); status == 200 && err != nil {
		s.t.Fatal(err)
	}
	return c, status
}

func (s shop) put(tree, name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.beside, tree, name), []byte(text), 0o666); err != nil {
		s.t.Fatal(err)
	}
}

// described says of each file what its status, its former name and its numbers are, as git's --numstat does.
func described(files []wire.ChangedFile) (lines []string) {
	for _, f := range files {
		numbers := "-\t-"
		if !f.Binary {
			numbers = fmt.Sprintf("%d\t%d", *f.Added, *f.Removed)
		}
		line := f.Status + " " + numbers + "\t" + f.Path
		if f.From != nil {
			line += " from " + *f.From
		}
		lines = append(lines, line)
	}
	return lines
}

// What is shown of a place is what git says of it, whatever its files are called and its configuration says; no program
// of the repository is run for it.
func TestChangesAreWhatGitSays(t *testing.T) {
	s := newShop(t, board.Options{})
	const odd = "we\"ird\n\x1b[31m\u202e<b>"
	s.write("long", "1\n2\n3\n4\n5\n6\n7\n8\n")
	s.write("run", "x\n")
	s.write("both", "a\n")
	s.write("gone", "a\n")
	s.git("add", ".")
	s.git("commit", "-qm", "more")
	const tree = "fix/1_story"
	s.in(tree, "mv", "1_backlog/1_story.md", "2_current/")
	s.in(tree, "mv", "long", "longer")
	for name, text := range map[string]string{
		"longer": "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "both": "b\n", "binary": "a\x00b", odd: "x\n", "latin": "caf\xe9\ndiff --git a/x b/x\n",
		"code": "a\n\nb\nc\n",
	} {
		s.put(tree, name, text)
	}
	if err := os.Chmod(filepath.Join(s.beside, tree, "run"), 0o777); err != nil {
		t.Fatal(err)
	}
	s.in(tree, "rm", "-q", "gone", "1_backlog/3_story.md")
	if err := os.Symlink("/etc/passwd", filepath.Join(s.beside, tree, "1_backlog/3_story.md")); err != nil {
		t.Fatal(err)
	}
	s.in(tree, "add", ".")
	s.in(tree, "commit", "-qm", "first")
	first := s.in(tree, "rev-parse", "HEAD")
	s.in(tree, "commit", "-q", "--allow-empty", "-m", "second <b>\x1b[0m")
	head := s.in(tree, "rev-parse", "HEAD")
	s.git("branch", "task-2_story", head)
	s.write("both", "c\n")
	s.git("commit", "-qam", "in the way")
	s.put(tree, "code", "a\n\nb\nd\n")
	s.put(tree, "new", "x\n")
	s.put(tree, odd+"2", "x\n")
	base, mergeBase := s.git("rev-parse", "HEAD"), s.git("merge-base", "HEAD", head)
	diff := s.in(tree, "diff", mergeBase, head)
	uncommitted := s.in(tree, "diff", "HEAD")
	s.git("config", "color.diff", "always")
	s.git("config", "diff.noprefix", "true")
	s.git("config", "diff.context", "0")
	s.git("config", "diff.suppressBlankEmpty", "true")
	gittest.Traps(t, s.dir)
	waittest.Until(t, "the place", func() bool {
		list := s.work("1_story")
		return len(list) == 1 && list[0].Head == head
	})
	c, status := s.changes("1_story")
	if status != 200 || wire.Text(c.Branch) != tree || wire.Text(c.Worktree) != filepath.Join(s.beside, tree) || c.Base != base || c.Head != head ||
		c.MergeBase != mergeBase || c.Ahead != 2 || c.Behind != 1 || strings.Join(c.Conflicts, " ") != "both" || c.Cut || c.More != 0 {
		t.Errorf("%d %+v", status, c)
	}
	if want := strings.ToValidUTF8(diff, "\ufffd"); strings.TrimSpace(c.Diff) != want {
		t.Errorf("the diff is\n%s\ngit says\n%s", c.Diff, want)
	}
	want := []string{
		"renamed 0\t0\t2_current/1_story.md from 1_backlog/1_story.md", "modified 1\t5\t1_backlog/3_story.md", "added -\t-\tbinary",
		"modified 1\t1\tboth", "modified 1\t0\tcode", "deleted 0\t1\tgone", "added 2\t0\tlatin", "renamed 1\t0\tlonger from long", "mode 0\t0\trun", "added 1\t0\t" + odd,
	}
	if got := described(c.Files); !sameLines(got, want) {
		t.Errorf("files %q, want %q", got, want)
	}
	bytes := 0
	ids := map[string]bool{}
	for _, f := range c.Files {
		bytes += f.Bytes
		ids[f.ID] = true
	}
	if bytes != len(diff)+1 || len(ids) != len(c.Files) {
		t.Errorf("%d bytes of %d, ids %v", bytes, len(diff), ids)
	}
	if len(c.Commits) != 2 || c.Commits[1].Hash != first || c.Commits[0].Author != "Ada" || c.Commits[0].Subject != "second <b>\x1b[0m" {
		t.Errorf("%+v", c.Commits)
	}
	if u := c.Uncommitted; strings.TrimSpace(u.Diff) != uncommitted || !sameLines(described(u.Files), []string{"modified 1\t1\tcode"}) || u.Cut {
		t.Errorf("%+v, git says %s", u, uncommitted)
	}
	if !sameLines(c.Untracked, []string{"new", odd + "2"}) {
		t.Errorf("untracked %q", c.Untracked)
	}
	one, _ := s.changes("1_story", "path", "longer", "branch", tree)
	if len(one.Files) != 1 || *one.Files[0].From != "long" || !strings.Contains(c.Diff, one.Diff) || !strings.Contains(one.Diff, "+9\n") || one.Files[0].ID == "" {
		t.Errorf("%+v", one)
	}
	if since, _ := s.changes("1_story", "since", first); len(since.Commits) != 1 || len(since.Files) != 0 || since.Diff != "" || since.Ahead != 2 {
		t.Errorf("%+v", since)
	}
	for _, query := range [][]string{
		{"since", base},
		{"since", "--output=/tmp/x"},
		{"since", "main"},
		{"branch", "main"},
		{"branch", "--upload-pack=x"},
		{"head", head},
		{"head", "--output=/tmp/x"},
		{"head", "main"},
		{"worktree", s.dir},
		{"worktree", "/"},
	} {
		if _, status := s.changes("1_story", query...); status != 404 {
			t.Errorf("%q: %d", query, status)
		}
	}
	if of, status := s.changes("1_story", "head", mergeBase); status != 200 || of.Head != mergeBase || of.MergeBase != mergeBase || of.Base != base || len(of.Files) > 0 {
		t.Errorf("of what the base has: %d %+v", status, of)
	}
	if _, status := s.changes("0_story"); status != 404 {
		t.Errorf("a story without a place: %d", status)
	}
	alone, status := s.changes("2_story")
	if status != 200 || alone.Worktree != nil || wire.Text(alone.Branch) != "task-2_story" || alone.Diff != c.Diff || len(alone.Uncommitted.Files)+len(alone.Untracked) > 0 {
		t.Errorf("a branch that no tree has: %d %+v", status, alone)
	}
	if err := os.RemoveAll(filepath.Join(s.dir, ".git")); err != nil {
		t.Fatal(err)
	}
	if _, status := s.changes("0_story"); status != 404 {
		t.Errorf("without git: %d", status)
	}
}

// What is large is left out in whole files, and the answer stays within what a gateway takes.
func TestLargeChangesAreCut(t *testing.T) {
	s := newShop(t, board.Options{})
	const tree = "story/1_story"
	s.in(tree, "status")
	s.put(tree, "a_large", strings.Repeat("0123456789\n", 130_000))
	s.put(tree, "b_line", strings.Repeat("x", 900<<10))
	s.put(tree, "c_small", "x\n")
	s.put(tree, "d_controls", strings.Repeat("\x01\n", 300_000))
	for i := range 2100 {
		s.put(tree, fmt.Sprintf("f%04d", i), "")
	}
	s.in(tree, "add", ".")
	s.in(tree, "commit", "-qm", "much")
	head := s.in(tree, "rev-parse", "HEAD")
	s.put(tree, "a_large", strings.Repeat("\x02\n", 500_000))
	waittest.Until(t, "the tree", func() bool { list := s.work("1_story"); return len(list) == 1 && list[0].Head == head })
	c, _ := s.changes("1_story")
	if len(c.Files) != 2000 || c.More != 104 || !c.Cut || len(c.Diff) > 1<<20 {
		t.Fatalf("%d files, %d more, cut %v, %d bytes", len(c.Files), c.More, c.Cut, len(c.Diff))
	}
	for i, want := range []bool{true, false, false, true, false} {
		if f := c.Files[i]; f.Cut != want || f.Bytes < 50 || strings.Contains(c.Diff, "+++ b/"+f.Path+"\n") == want && f.Path[0] != 'f' {
			t.Errorf("%+v, cut: %v", f, want)
		}
	}
	if u := c.Uncommitted; len(u.Files) != 1 || !u.Files[0].Cut || !u.Cut || u.Diff != "" {
		t.Errorf("%.300v", u)
	}
	one, _ := s.changes("1_story", "path", "a_large")
	if n := len(one.Diff); n > 1<<20 || n < 1<<20-100 || !strings.HasSuffix(one.Diff, "9\n") || !one.Cut || one.Files[0].Cut || one.Files[0].Bytes != c.Files[0].Bytes {
		t.Errorf("%d bytes, %.300v", n, one.Files)
	}
	if _, answer, _ := s.ask("GET", "/api/stories/1_story/changes?path=a_large", ""); len(answer) > 8<<20 {
		t.Errorf("%d bytes", len(answer))
	}
	last, _ := s.changes("1_story", "path", "f2099")
	if len(last.Files) != 1 || last.Diff == "" || last.Cut {
		t.Errorf("%+v", last)
	}
}

func sameLines(got, want []string) bool {
	missing := map[string]int{}
	for _, line := range want {
		missing[line]++
	}
	for _, line := range got {
		missing[line]--
	}
	for _, n := range missing {
		if n != 0 {
			return false
		}
	}
	return true
}
