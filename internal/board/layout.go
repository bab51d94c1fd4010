package board

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"switchyard/internal/domain"
)

// layout is how a tool keeps a board in files. It remembers what it has read, so that only changed files are read
// again.
type layout interface {
	// scan reads the files that changed, all if that is nil, and returns all stages in order. An error means that none of
	// them could be read.
	scan(changed fileSet) ([]*stage, error)
	// due returns when to scan again although no file changes, zero for never.
	due() time.Time
	// touch adds the file at path to those that changed. It returns false if more than that file may have changed.
	touch(changed fileSet, path string) bool
	// read reads a story that the last scan found in a stage. Its error is fs.ErrNotExist when it is not there.
	read(story Story, stage string) (*Details, error)
	// lock waits until no other tool writes the story. It is called without the board's mutex.
	lock(id string) (unlock func(), err error)
	// change makes the change, or says why not, and returns the files that it affects. Its error is fs.ErrNotExist
	// when the story is not there.
	change(story Story, stage string, c Change) (changed fileSet, err error)
	// create adds a story to a stage, "" for the first one, and returns its id.
	create(name, body, stage string) (id string, changed fileSet, err error)
	past() Past
}

// kind is a layout: patterns that find it, nil for one that is only used when it is asked for, and its rules.
type kind struct {
	name  string
	files []string
	open  func(*tree) (*rules, error)
}

// kinds are the layouts in other files than those of stage directories, in the order in which they are looked for.
var kinds = []kind{
	{domain.LayoutOpenSpec, []string{"openspec/changes"}, openSpec.open},
	{domain.LayoutSpecKit, []string{"specs/[0-9][0-9][0-9]*-*/spec.md"}, specKit.open},
	{domain.LayoutKiro, []string{".kiro/specs"}, kiro.open},
	{
		domain.LayoutBacklog, []string{"backlog/config.yml", "backlog.config.yml", ".backlog/config.yml"}, openBacklog,
	},
	{domain.LayoutTaskMaster, []string{taskMasterFile}, openTaskMaster},
	{domain.LayoutBMAD, bmadFiles, openBMAD},
	{domain.LayoutBeads, nil, openBeads},
}

// open returns the layout of the board.
func (b *Board) open(o Options) (layout, error) {
	if b.Layout() == domain.LayoutStages {
		if err := makeStages(o.Dir); err != nil {
			return nil, err
		}
		if o.AllowWrites {
			b.report("remove temporary files", sweepTemp(o.Dir))
		}
		return &scanner{dir: b.dir, watch: b.watch}, nil
	}
	for _, kind := range kinds {
		if kind.name == o.Layout {
			notes, err := openNotes(o.State, o.Dir, o.Layout)
			return &units{
				dir: b.dir, watch: b.watch, open: kind.open, log: o.Log, notes: notes, units: map[string]*unit{},
			}, err
		}
	}
	return nil, domain.Errorf(domain.Invalid, "there is no layout %q", limit(o.Layout))
}

// Found is a board in a directory.
type Found struct{ Layout, Dir string }

// Layouts returns the names of all layouts, in the order in which they are looked for.
func Layouts() []string {
	names := []string{domain.LayoutStages}
	for _, kind := range kinds {
		names = append(names, kind.name)
	}
	return names
}

// Find returns the boards in a directory, or those that the directory is a part of; with a layout only that one. It is
// an error if that is not there.
func Find(dir, layout string) ([]Found, error) {
	if layout == "" {
		return find(dir), nil
	}
	if !slices.Contains(Layouts(), layout) {
		return nil, domain.Errorf(domain.Invalid, "there is no layout %q, but %s",
			limit(layout), strings.Join(Layouts(), ", "))
	}
	found := slices.DeleteFunc(find(dir), func(f Found) bool { return f.Layout != layout })
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == layout })
	switch {
	case len(found) > 0 || i < 0: // stages may be made
		return found, nil
	case kinds[i].files == nil:
		return []Found{{layout, dir}}, nil
	}
	return nil, domain.Errorf(domain.Invalid, "%s has no board of %s: no %s",
		dir, layout, strings.Join(kinds[i].files, " or "))
}

func find(dir string) (found []Found) {
	if work, err := Locate(dir); err == nil && hasStages(work) {
		found = append(found, Found{domain.LayoutStages, work})
	}
	exists := func(dir, pattern string) bool {
		root, err := os.OpenRoot(dir)
		if err != nil {
			return false
		}
		defer root.Close()
		matches, _ := fs.Glob(root.FS(), pattern)
		return len(matches) > 0
	}
	for _, kind := range kinds {
		for _, pattern := range kind.files {
			top, _, _ := strings.Cut(pattern, "/")
			if exists(dir, pattern) {
				found = append(found, Found{kind.name, dir})
				break
			} else if above := filepath.Dir(dir); filepath.Base(dir) == top && exists(above, pattern) {
				found = append(found, Found{kind.name, above})
				break
			}
		}
	}
	return found
}

func hasStages(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && slices.ContainsFunc(entries, isStage)
}
