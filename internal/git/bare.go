package git

import (
	"os"
	"path/filepath"
	"strings"

	"switchyard/internal/files"
)

// FindBare returns the work tree of the branch that HEAD names in a bare repository: dir, or where its .git leads.
func FindBare(dir string) (Tree, bool) {
	common := files.Resolved(dir)
	if text, err := files.Read(filepath.Join(common, ".git"), files.Small); err == nil {
		path, _ := strings.CutPrefix(string(text), "gitdir:")
		common = files.Resolved(within(common, path))
	}
	bare := Tree{Git: common, Common: common}
	if branch := bare.Branch(); branch != "" && isBare(common) {
		entries, _ := os.ReadDir(filepath.Join(common, "worktrees"))
		for _, entry := range entries {
			linked := filepath.Join(common, "worktrees", entry.Name())
			text, _ := files.Read(filepath.Join(linked, "gitdir"), files.Small)
			if (Tree{Git: linked}).Branch() != branch {
				continue
			}
			if tree, is := bare.IsLinked(filepath.Dir(strings.TrimSpace(string(text)))); is {
				return tree, true
			}
		}
	}
	return Tree{}, false
}
