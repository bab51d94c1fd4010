package views

import (
	"fmt"
	"strings"
	"testing"

	"switchyard/internal/domain"
	"switchyard/internal/wire"
)

// TestOfManyChangedFilesSomeAreListed: a page has a hundred of them, with links to the others, and counts all.
func TestOfManyChangedFilesSomeAreListed(t *testing.T) {
	p := ChangesProps{Changes: wire.NewChanges("b", "h", "m")}
	p.Story = domain.Story{Project: "alpha", ID: "7_pay", File: &domain.StoryFile{Work: []domain.Place{{Branch: "story/7"}}}}
	p.Place = p.Story.File.Work[0]
	for i := range 250 {
		one := 1
		p.Changes.Files = append(p.Changes.Files, wire.ChangedFile{Path: fmt.Sprintf("src/%03d.go", i), Status: "added", Added: &one, Removed: &one})
	}
	for _, c := range []struct {
		from        int
		file        string
		first, last string
		links       []string
	}{
		{0, "", "file-1", "file-100", []string{"from=100#changes", "150 more files"}},
		{100, "", "file-101", "file-200", []string{"from=200#changes", "50 more files", "100 files before these"}},
		{0, "src/249.go", "file-201", "file-250", []string{"from=100#changes", "200 files before these"}},
		{1000, "", "", "", []string{"250 files before these"}},
	} {
		p.From, p.File = c.from, c.file
		var page strings.Builder
		if err := Changes(p).Render(t.Context(), &page); err != nil {
			t.Fatal(err)
		}
		for _, want := range append(c.links, "250 files", "+250") {
			if !strings.Contains(page.String(), want) {
				t.Errorf("from %d, %q: no %s", c.from, c.file, want)
			}
		}
		if n := strings.Count(page.String(), `class="changes-file"`); n > maxListed || page.Len() > 300<<10 {
			t.Errorf("from %d, %q: %d files, %d bytes", c.from, c.file, n, page.Len())
		}
		if c.first != "" && (!strings.Contains(page.String(), `id="`+c.first+`"`) || !strings.Contains(page.String(), `id="`+c.last+`"`)) {
			t.Errorf("from %d, %q: not %s to %s", c.from, c.file, c.first, c.last)
		}
	}
}
