//go:build unix

package board

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"switchyard/internal/domain"
)

func (d *fixture) read(id string) *Details {
	d.t.Helper()
	details, err := d.Read(id)
	d.must(err)
	return details
}

func TestAStoryIsReadInFull(t *testing.T) {
	d := newFixture(t, map[string]string{"2_current/7_login.md": "---\nname: Log in\nblocked: true\nblocked_reason: key\nretry_count: 3\n" +
		"depends_on: [5_x, 6_y]\nagent: ~\nqa: {server: true, limit: .inf}\nmerge_failure: conflict\n---\n\n  \n# Log in\n\n- [x] one\n- [ ] two\n\n\n"})
	got := d.read("7_login")
	front := `{"name":"Log in","blocked":true,"blocked_reason":"key","retry_count":3,"depends_on":["5_x","6_y"],"agent":null,` +
		`"qa":{"server":true,"limit":".inf"},"merge_failure":"conflict"}`
	if string(got.FrontMatter) != front || got.FrontMatterErr != nil {
		t.Errorf("front matter %s, %v", got.FrontMatter, got.FrontMatterErr)
	}
	if got.Name != "Log in" || got.Blocked != "key" || got.MergeFailure != "conflict" || got.Stage != "2_current" || got.Path != "2_current/7_login.md" {
		t.Errorf("%+v", got)
	}
	if got.Body != "# Log in\n\n- [x] one\n- [ ] two" || got.BodyCut || got.Criteria != (domain.Criteria{Done: 1, Total: 2}) {
		t.Errorf("body %q, cut %t, criteria %v", got.Body, got.BodyCut, got.Criteria)
	}
}

func TestAVersionChangesWithContentAndStage(t *testing.T) {
	d := newFixture(t, map[string]string{"1_a/x.md": "text", "2_b/y.md": "text", "2_b/large.md": strings.Repeat("x", maxFile+1)})
	first := d.read("x").Version
	if first == "" || first == d.read("y").Version {
		t.Errorf("versions %s and %s", first, d.read("y").Version)
	}
	d.move("1_a/x.md", "2_b/x.md")
	second := d.read("x").Version // the move had not been noticed before
	d.write("2_b/x.md", "texT")
	third := d.read("x").Version
	d.write("2_b/x.md", "text")
	if second == first || third == second || d.read("x").Version != second {
		t.Errorf("versions %s, %s, %s, then %s", first, second, third, d.read("x").Version)
	}
	large := d.read("large").Version
	f, err := os.OpenFile(d.path("2_b/large.md"), os.O_WRONLY|os.O_APPEND, 0)
	d.must(err)
	_, err = f.WriteString("more")
	d.must(err)
	d.must(f.Close())
	if d.read("large").Version == large {
		t.Error("the version does not change with what lies beyond the first megabyte")
	}
}

func TestStoriesThatCannotBeRead(t *testing.T) {
	d := newFixture(t, map[string]string{"1_a/x.md": "text", "1_a/y.md": "text"})
	d.must(os.WriteFile(d.path("secret.md"), []byte("secret"), 0o666))
	for _, id := range []string{"", "nosuch", "../secret", "x.md", ".", "..", "1_a/x", "x\x00", strings.Repeat("x", 5000)} {
		if _, err := d.Read(id); domain.CodeOf(err) != domain.NotFound {
			t.Errorf("%.20q: %v", id, err)
		}
	}
	d.remove("1_a/x.md")
	d.must(os.Symlink(d.path("secret.md"), d.path("1_a/x.md")))
	if _, err := d.Read("x"); err == nil {
		t.Error("a symbolic link is followed")
	}
	d.move("", "../away")
	if _, err := d.scan(nil, false); err == nil {
		t.Error("the directory is there")
	}
	if _, err := d.Read("y"); domain.CodeOf(err) != domain.Unavailable || strings.Contains(domain.MessageOf(err), d.dir) {
		t.Errorf("without a directory: %v", err)
	}
}

func TestABodyIsCutBetweenCharacters(t *testing.T) {
	d := newFixture(t, map[string]string{
		"1_a/cut.md":   "x" + strings.Repeat("ä", maxBody),
		"1_a/whole.md": "\n" + strings.Repeat("x", maxBody) + "\n",
		"1_a/large.md": "---\nname: x\n---\n" + strings.Repeat("\n", maxFile),
		"1_a/bad.md":   "---\nname: x\nname: y\n---\n# Title\n",
	})
	if got := d.read("cut"); !got.BodyCut || len(got.Body) != maxBody-1 || !utf8.ValidString(got.Body) {
		t.Errorf("%d bytes, cut %t", len(got.Body), got.BodyCut)
	}
	if got := d.read("whole"); got.BodyCut || len(got.Body) != maxBody {
		t.Errorf("%d bytes, cut %t", len(got.Body), got.BodyCut)
	}
	got := d.read("large")
	if !got.BodyCut || got.Body != "" || fmt.Sprint(got.FrontMatterErr) != "the file is larger than 1 MiB" || string(got.FrontMatter) != "{}" || got.Name != "large" {
		t.Errorf("%+v", got)
	}
	got = d.read("bad")
	if fmt.Sprint(got.FrontMatterErr) != "the key name is given twice" || string(got.FrontMatter) != "{}" || got.Name != "Title" || got.Body != "# Title" {
		t.Errorf("%+v", got)
	}
}

func TestCriteriaAreTheItemsOfTaskLists(t *testing.T) {
	for body, want := range map[string]string{
		"":                                           "none",
		"text\n- item\n[ ] no item":                  "none",
		"- [ ] a\n- [x] b\n- [X] c\n":                "2 of 3",
		"* [ ] a\n+ [x] b\n1. [x] c\n2) [ ] d":       "2 of 4",
		"- [ ] a\n  - [x] b\n      - [x] c":          "2 of 3",
		"- [ ]\n- [x]no\n- [y] no\n- []no\n-[ ] no":  "none",
		"> - [x] quoted":                             "1 of 1",
		"```\n- [ ] code\n```\n- [x] a":              "1 of 1",
		"~~~ md\n- [ ] code\n```\n~~~\n- [x] a":      "1 of 1",
		"- a\n\n  ```\n  - [ ] code\n  ```\n- [x] b": "1 of 1",
		"    - [ ] code\n":                           "none",
		"- [ ] a\n\ntext\n\n    - [ ] code":          "0 of 1",
		"```\n- [ ] never closed":                    "none",
		"- [x] a\r\n- [ ] b\r\n":                     "1 of 2",
		"- - [x] a":                                  "1 of 1",
		"- [x] `- [ ] b`":                            "1 of 1",
		"# Criteria\n- [ ] a\n## Next\n\n- [x] b":    "1 of 2",
	} {
		got := "none"
		if c := countTasks(splitDocument([]byte(body)).tasks()); c.Total > 0 {
			got = fmt.Sprintf("%d of %d", c.Done, c.Total)
		}
		if got != want {
			t.Errorf("%q: %s, want %s", body, got, want)
		}
	}
}
