package board

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchyard/internal/domain"
)

// TestAReasonThatCannotBeKeptIsWhatFails: the story's own files may well be writable.
func TestAReasonThatCannotBeKeptIsWhatFails(t *testing.T) {
	b := openLayout(t, "openspec", map[string]string{"openspec/changes/a/tasks.md": "- [ ] one\n"})
	state := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(state, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.layout.(*units).notes.path = filepath.Join(state, "x.json")
	reason := "key"
	err := b.change("a", Change{Blocked: &reason})
	if err == nil || !strings.Contains(domain.MessageOf(err), "the reason could not be kept: mkdir "+state) {
		t.Error(err)
	}
}
