package architecture

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"switchyard/internal/board"
)

// TestContributingNamesWhatThereIs: every file and package named in CONTRIBUTING.md exists, and every package is named there.
func TestContributingNamesWhatThereIs(t *testing.T) {
	const root = "../../"
	text, err := os.ReadFile(root + "CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, match := range regexp.MustCompile("`((?:cmd|handlers|internal|static|views)(?:/[a-z_./-]+)?)`").FindAllStringSubmatch(string(text), -1) {
		named++
		if _, err := os.Stat(root + match[1]); err != nil {
			t.Errorf("CONTRIBUTING.md names %s: %v", match[1], err)
		}
	}
	if named < 40 {
		t.Errorf("only %d files and packages are named", named)
	}
	for name := range packages(t) {
		if !strings.Contains(string(text), "`"+name+"`") && !strings.Contains(string(text), "`"+strings.TrimPrefix(name, "internal/")+"`") {
			t.Errorf("CONTRIBUTING.md does not name the package %s", name)
		}
	}
}

func TestEachLayoutOfBoardsIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/boards.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, layout := range board.Layouts() {
		if !strings.Contains(string(text), "\n| `"+layout+"` |") {
			t.Errorf("docs/boards.md has no row for %s", layout)
		}
	}
}
