package architecture

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"switchyard/internal/board"
)

// TestContributingNamesWhatThereIs: every file and package named in CONTRIBUTING.md exists, and every package is named there.
func TestContributingNamesWhatThereIs(t *testing.T) {
	const root = "../../"
	text, named := read(t, root+"CONTRIBUTING.md"), 0
	for _, match := range regexp.MustCompile("`((?:cmd|handlers|internal|static|views)(?:/[a-z_./-]+)?)`").FindAllStringSubmatch(text, -1) {
		named++
		if _, err := os.Stat(root + match[1]); err != nil {
			t.Errorf("CONTRIBUTING.md names %s: %v", match[1], err)
		}
	}
	if named < 40 {
		t.Errorf("only %d files and packages are named", named)
	}
	for name := range packages(t) {
		if !strings.Contains(text, "`"+name+"`") && !strings.Contains(text, "`"+strings.TrimPrefix(name, "internal/")+"`") {
			t.Errorf("CONTRIBUTING.md does not name the package %s", name)
		}
	}
}

// TestWhatDevelopersReadNamesCodeThatIsThere: a name that is said to be in a file is there, and what is named with a capital in it, or
// of a type or package, is in the code.
func TestWhatDevelopersReadNamesCodeThatIsThere(t *testing.T) {
	const root = "../../"
	pages, err := filepath.Glob(root + "docs/design/*.md")
	if err != nil || len(pages) < 4 {
		t.Fatalf("pages %v, %v", pages, err)
	}
	list := exec.Command("git", "ls-files", "*.go", "*.templ")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	words := map[string]bool{} // and what declares a type or a package
	isNone := func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	for name := range strings.FieldsSeq(string(out)) {
		if strings.HasSuffix(name, "_templ.go") {
			continue
		}
		before := ""
		for word := range strings.FieldsFuncSeq(read(t, root+name), isNone) {
			if words[word] = true; before == "type" || before == "package" {
				words["type "+word] = true
			}
			before = word
		}
	}
	inFile := regexp.MustCompile("`(\\w+)` in `((?:cmd|handlers|internal|static|views)/[a-z_/]+\\.[a-z]+)`")
	named := regexp.MustCompile("`(?:(\\w+)\\.)?([A-Za-z]\\w*)`")
	for _, page := range append(pages, root+"CONTRIBUTING.md") {
		text := strings.Join(strings.Fields(read(t, page)), " ")
		for _, match := range inFile.FindAllStringSubmatch(text, -1) {
			if !regexp.MustCompile(`\b` + match[1] + `\b`).MatchString(read(t, root+match[2])) {
				t.Errorf("%s: %s has no %s", page, match[2], match[1])
			}
		}
		for _, match := range named.FindAllStringSubmatch(text, -1) {
			of, name := match[1], match[2]
			if all := of + name; all != strings.ToLower(all) && (!words[name] || of != "" && !words["type "+of]) {
				t.Errorf("%s: nothing is called %s", page, match[0])
			}
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestEachLayoutOfBoardsIsDocumented(t *testing.T) {
	text := read(t, "../../docs/boards.md")
	for _, layout := range board.Layouts() {
		if !strings.Contains(text, "\n| `"+layout+"` |") {
			t.Errorf("docs/boards.md has no row for %s", layout)
		}
	}
}
