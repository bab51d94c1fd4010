package views

import (
	"os"
	"strings"
	"testing"

	boards "switchyard/internal/board"
)

// TestEachLayoutHasItsWords: what its board says is written, and its name where a first project is added.
func TestEachLayoutHasItsWords(t *testing.T) {
	page, err := os.ReadFile("overview.templ")
	if err != nil {
		t.Fatal(err)
	}
	_, known, _ := strings.Cut(string(page), "Boards it knows:")
	known, _, _ = strings.Cut(known, "\n")
	for _, layout := range boards.Layouts() {
		words := layoutWords[layout]
		if words.name == "" || len(words.written) == 0 || len(words.never) == 0 {
			t.Errorf("layoutWords lacks something of %s: %+v", layout, words)
		}
		if !strings.Contains(strings.ToLower(known), strings.ToLower(words.name)) {
			t.Errorf("%q does not name %s", known, words.name)
		}
	}
}
