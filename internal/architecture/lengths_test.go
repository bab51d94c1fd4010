package architecture

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestHandWrittenCodeFitsAReader: no file of the product or its tools holds more than a reader takes in, and no line is wider than a
// page. A tab counts as one column.
func TestHandWrittenCodeFitsAReader(t *testing.T) {
	const maxLines, maxColumns = 300, 120
	command := exec.Command("git", "ls-files", "*.go", "*.templ")
	command.Dir = "../.."
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(string(out)) {
		if strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "_templ.go") {
			continue
		}
		text, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
		if len(lines) > maxLines {
			t.Errorf("%s has %d lines: split what holds two things", name, len(lines))
		}
		for i, line := range lines {
			if n := utf8.RuneCountInString(line); n > maxColumns {
				t.Errorf("%s:%d has %d columns", name, i+1, n)
			}
		}
	}
}
