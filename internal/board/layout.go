package board

import (
	"cmp"
	"context"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"switchyard/internal/domain"
)

// layout is how a tool keeps a board in files. It remembers what it has read, so that only changed files are read
// again.
type layout interface {
	// scan reads the files that changed, all if that is nil, and returns all stages in order. An error means that none
	// of them could be read.
	scan(changed fileSet) ([]*stage, error)
	// due returns when to scan again even if no file changes, zero for never.
	due() time.Time
	// touch adds the file at path to those that changed. It returns false if more than that file may have changed.
	touch(changed fileSet, path string) bool
	// read reads a story that the last scan found in a stage. Its error is fs.ErrNotExist if it is not there.
	read(story Story, stage string) (*Details, error)
	// reader returns a function that reads many stories and reads what their files share only once.
	reader() (read func(story Story, stage string) (*Details, error), done func(), err error)
	// lock waits until no other tool is writing the story, or ctx ends. It is called without the board's mutex.
	lock(ctx context.Context, id string) (unlock func(), err error)
	// writes returns the paths of the files that a change may write, none if a tool does the writing or the board is
	// not written to.
	writes(story Story, c Change) ([]string, error)
	// own returns the paths where a story's file is or may be, none if it has no file to itself.
	own(id string) ([]string, error)
	// change makes the change, or says why not, and returns the files that it affects. Its error is fs.ErrNotExist if
	// the story is not there.
	change(story Story, stage string, c Change) (changed fileSet, err error)
	// create adds a story to a stage, "" for the first one, and returns its id.
	create(name, body, stage string) (id string, changed fileSet, err error)
	past() Past
	// faults returns what is wrong with files since the last scan, in no particular order.
	faults() []fault
}

// kind is a layout: its rules, and the patterns that find it, nil if it is used only on request.
type kind struct {
	name  string
	files []string
	open  func(*tree) (*rules, error)
	// is, if not nil, reports whether a directory has this layout although no pattern finds it.
	is func(*tree) bool
}

func (k kind) opens(files *tree) (*rules, error) {
	r, err := k.open(files)
	if r != nil {
		r.files = k.files
	}
	return r, err
}

// kinds are the layouts other than stage directories, in the order in which they are looked for.
var kinds = []kind{
	{domain.LayoutOpenSpec, []string{"openspec/changes", "openspec/specs", "openspec/config.yaml"}, openOpenSpec, nil},
	{
		domain.LayoutSpecKit,
		[]string{"specs/[0-9][0-9][0-9]*-*/spec.md", ".specify/specs/[0-9][0-9][0-9]*-*/spec.md"},
		openSpecKit, hasSpecs,
	},
	{domain.LayoutKiro, []string{".kiro/specs"}, kiro.open, nil},
	{domain.LayoutBacklog, backlogConfigs, openBacklog, nil},
	{domain.LayoutTaskMaster, []string{taskMasterFile}, openTaskMaster, nil},
	{domain.LayoutBMAD, bmadFiles, openBMAD, hasSprints},
	{domain.LayoutBeads, nil, openBeads, nil},
}

type Found struct{ Layout, Dir string }

// Layouts returns the names of all layouts, in the order in which they are looked for.
func Layouts() []string {
	names := []string{domain.LayoutStages}
	for _, kind := range kinds {
		names = append(names, kind.name)
	}
	return names
}

// SearchedLayouts says which layouts a directory is searched for. The others are used only on request.
func SearchedLayouts() string {
	names := slices.DeleteFunc(Layouts(), func(name string) bool { return name == domain.LayoutBeads })
	return strings.Join(names, ", ") + " (" + domain.LayoutBeads + " only with switchyard project --layout)"
}

// Find returns the boards in a directory, or those that it is a part of; with a layout only that one, and an error if
// it is not there.
func Find(dir, layout string) ([]Found, error) {
	if layout == "" {
		return find(dir), nil
	}
	found := slices.DeleteFunc(find(dir), func(f Found) bool { return f.Layout != layout })
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == layout })
	switch {
	case len(found) > 0 || i < 0: // stage directories may be created
		return found, nil
	case kinds[i].files == nil: // beads
		if _, err := os.Stat(filepath.Join(dir, beadsDir)); err == nil {
			return []Found{{layout, dir}}, nil
		}
	}
	return nil, domain.Errorf(domain.Invalid, "%s has no board of %s: no %s",
		dir, layout, cmp.Or(strings.Join(kinds[i].files, " or "), beadsDir))
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
		return firstMatch(root, pattern) != ""
	}
	files, err := openTree(dir)
	if err != nil {
		return found
	}
	defer files.close()
	for _, kind := range kinds {
		if kind.is != nil && kind.is(files) {
			found = append(found, Found{kind.name, dir})
			continue
		}
		for _, pattern := range kind.files {
			top, is := dir, exists(dir, pattern)
			for part := pattern; part != "." && !is; part = path.Dir(part) { // it may be one itself
				if above, within := strings.CutSuffix(dir, string(filepath.Separator)+filepath.FromSlash(part)); within {
					top, is = above, exists(above, pattern)
				}
			}
			if is {
				found = append(found, Found{kind.name, top})
				break
			}
		}
	}
	return found
}

// maxLooked is how many names a search for a pattern looks at on each level, maxNames how many in each directory if
// there are several.
const maxNames, maxLooked = 1000, 5000

// firstMatch returns the first of matches, "" for none.
func firstMatch(root *os.Root, pattern string) string {
	return append(matches(root, pattern), "")[0]
}

// matches returns the files that match a pattern, whose stars stand for directories. It has limits, so that a search is
// cheap in a large tree, too.
func matches(root *os.Root, pattern string) (found []string) {
	above, name := path.Split(pattern)
	dirs := []string{"."}
	for part := range strings.SplitSeq(strings.TrimSuffix(above, "/"), "/") {
		if strings.Contains(part, "*") {
			dirs = matchesBelow(root, dirs, part)
			continue
		}
		for i := range dirs {
			dirs[i] = path.Join(dirs[i], part)
		}
	}
	slices.Sort(dirs)
	for _, dir := range dirs {
		if _, err := root.Stat(path.Join(dir, name)); err == nil {
			found = append(found, path.Join(dir, name))
		}
	}
	return found
}

// matchesBelow returns the matching directories within others, taking from all of them in turn, so that one with many
// does not hide those of the next.
func matchesBelow(root *os.Root, dirs []string, pattern string) (found []string) {
	left, each := maxLooked, max(maxNames, maxLooked/max(1, len(dirs)))
	lists, longest := [][]string{}, 0
	for _, dir := range dirs {
		if left == 0 {
			break
		}
		opened, err := root.OpenFile(dir, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may be a pipe
		if err != nil {
			continue
		}
		entries, _ := opened.ReadDir(min(left, each))
		opened.Close()
		left -= len(entries)
		slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
		var list []string
		for _, entry := range entries {
			if matches, _ := path.Match(pattern, entry.Name()); matches && entry.IsDir() {
				list = append(list, path.Join(dir, entry.Name()))
			}
		}
		lists, longest = append(lists, list), max(longest, len(list))
	}
	for i := range longest {
		for _, list := range lists {
			if i < len(list) {
				found = append(found, list[i])
			}
		}
	}
	return found
}

func hasStages(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && slices.ContainsFunc(entries, isStage)
}
