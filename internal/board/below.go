package board

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"switchyard/internal/domain"
)

// maxBelow is how many levels below a directory boards are searched for.
const maxBelow = 3

// Below returns the boards below a directory that has none itself, except in hidden directories and in vendored code.
func Below(dir string) (found []Found) {
	left := maxNames
	var search func(dir string, levels int)
	search = func(dir string, levels int) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return
		}
		for _, entry := range entries {
			name := entry.Name()
			if !entry.IsDir() || strings.HasPrefix(name, ".") || slices.Contains([]string{"node_modules", "vendor"}, name) {
				continue
			}
			if left--; left < 0 {
				return
			}
			child := filepath.Join(dir, name)
			switch boards := slices.DeleteFunc(find(child), isOther); {
			case len(boards) > 0:
				found = append(found, boards...)
			case levels > 1:
				search(child, levels-1)
			}
		}
	}
	search(dir, maxBelow)
	return found
}

// isOther reports whether directories named like stages hold files of which none is a story, as a database's migrations
// do.
func isOther(found Found) bool {
	if found.Layout != domain.LayoutStages {
		return false
	}
	files, err := filepath.Glob(filepath.Join(found.Dir, "[0-9]*_*", "[^.]*"))
	isStory := func(path string) bool { return filepath.Ext(path) == ".md" }
	return err == nil && len(files) > 0 && !slices.ContainsFunc(files, isStory)
}
