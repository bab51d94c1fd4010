package board

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	maxJSON  = 16 << 20
	maxFiles = 200_000
	// maxLevels is how deep folders of stories may be.
	maxLevels = 10
)

// tree reads files below a directory without following symbolic links.
type tree struct {
	root    *os.Root
	name    string // of the open directory, from which several files are read in turn
	dir     *os.File
	read    map[string]identity // of the files that were read
	newest  int64               // their last change, in nanoseconds
	last    string              // the last file that Read was asked for, and its content
	text    []byte
	content []byte // of each file, if not nil
	// kept, if not nil, has the files that were read: changes are made to what was read.
	kept  map[string]*storyFile
	temps []string // our leftover temporary files
}

func openTree(dir string) (*tree, error) {
	root, err := os.OpenRoot(dir)
	return &tree{root: root, read: map[string]identity{}}, err
}

func (t *tree) close() {
	t.dir.Close() // closing nil is harmless
	t.root.Close()
}

// open returns a directory, which must not be a symbolic link. It is valid until the next call.
func (t *tree) open(name string) (*os.File, error) {
	if t.dir != nil && t.name == name {
		return t.dir, nil
	}
	t.dir.Close()
	t.dir = nil
	info, err := t.root.Lstat(name)
	if err == nil && !info.IsDir() {
		err = syscall.ENOENT
	}
	if err != nil {
		return nil, err
	}
	dir, err := t.root.Open(name)
	if err != nil {
		return nil, err
	}
	t.name, t.dir = name, dir
	return dir, nil
}

// identify returns the identity of a regular file, zero if there is none.
func (t *tree) identify(name string) (identity, error) {
	dir, err := t.open(path.Dir(name))
	if errors.Is(err, fs.ErrNotExist) {
		return identity{}, nil
	}
	if err != nil {
		return identity{}, err
	}
	if path.Base(name) == "." {
		return identity{inode: 1}, nil
	}
	return identify(dir, path.Base(name))
}

func (t *tree) Has(name string) bool {
	now, err := t.identify(name)
	return err == nil && now != identity{}
}

// Read also returns nil for a file that is too large.
func (t *tree) Read(name string) []byte {
	if t.content != nil {
		return t.content
	}
	if name == t.last {
		return t.text
	}
	file, err := t.file(name)
	if err != nil || file.identity.size > maxSize(name) {
		return nil
	}
	t.last, t.text = name, file.content
	return t.text
}

// Below stops after a few levels, which is as many as boards have.
func (t *tree) Below(dir string) (files []string) {
	var below []string
	if opened, err := t.open(dir); err == nil {
		entries, _ := opened.ReadDir(maxNames)
		t.name = "" // it was read to its end
		for _, entry := range entries {
			switch child := path.Join(dir, entry.Name()); {
			case entry.Type().IsRegular():
				files = append(files, child)
			case entry.IsDir() && strings.Count(child, "/") < maxLevels:
				below = append(below, child)
			}
		}
	}
	for _, child := range below {
		files = append(files, t.Below(child)...)
	}
	return files
}

func (t *tree) file(name string) (*storyFile, error) {
	if file := t.kept[name]; file != nil {
		return file, nil
	}
	dir, err := t.open(path.Dir(name))
	if err != nil {
		return nil, err
	}
	file, err := readRegular(dir, path.Base(name), maxSize(name))
	if err == nil {
		t.read[name], t.newest = file.identity, max(t.newest, file.identity.changed)
	}
	if err == nil && t.kept != nil {
		t.kept[name] = file
	}
	return file, err
}

// hasChanged reports whether the last file asked for has changed since, and then forgets it: stories of an older file
// must not meet newer rules, nor the other way round.
func (t *tree) hasChanged() bool {
	if t.last != "" {
		now, err := t.identify(t.last)
		if err != nil || now != t.read[t.last] {
			t.last = ""
			return true
		}
	}
	return false
}

func (t *tree) rewrite(name string, change func(content []byte) ([]byte, error)) error {
	file, err := t.file(name)
	if err != nil {
		return err
	}
	content, err := change(file.content)
	if err != nil {
		return err
	}
	dir, err := t.open(path.Dir(name))
	if err != nil {
		return err
	}
	return put(dir, dir, path.Base(name), file, content)
}

func maxSize(name string) int64 {
	if strings.HasSuffix(name, ".json") {
		return maxJSON
	}
	return maxFile
}

func (t *tree) modified(name string) time.Time {
	if t.read[name] == (identity{}) {
		return time.Time{}
	}
	return time.Unix(0, t.read[name].modified)
}

// isSettled reports whether any later change to a file last changed at a time, in nanoseconds, shows in its identity.
func isSettled(changed int64, now time.Time) bool { return now.UnixNano()-changed >= int64(coarseTick) }

func (t *tree) walk(rules *rules, watch func(string)) (files map[string]identity, err error) {
	files = map[string]identity{}
	missing := 0
	for _, name := range rules.paths {
		watch(filepath.Join(t.root.Name(), filepath.FromSlash(path.Dir(name)))) // it or the configuration may change
		now, err := t.identify(name)
		if err == nil && now != (identity{}) {
			files[name] = now
			continue
		}
		if err = t.visit(rules, watch, name, files); errors.Is(err, fs.ErrNotExist) {
			missing++
		} else if err != nil {
			return nil, err
		}
	}
	isThere := func(pattern string) bool { return firstMatch(t.root, pattern) != "" }
	if missing == len(rules.paths) && !slices.ContainsFunc(rules.files, isThere) {
		return nil, &fs.PathError{Op: "open", Path: rules.paths[0], Err: syscall.ENOENT}
	}
	return files, nil
}

// visit adds the files of a directory and those below it.
func (t *tree) visit(rules *rules, watch func(string), name string, files map[string]identity) error {
	watch(filepath.Join(t.root.Name(), filepath.FromSlash(name)))
	dir, err := t.open(name)
	if err != nil {
		return err
	}
	entries, err := dir.ReadDir(-1)
	if err != nil {
		return err
	}
	if rules.unit(name+"/.") != "" {
		files[name+"/."] = identity{inode: 1}
	}
	var below []string
	isGit := func(e fs.DirEntry) bool { return e.Name() == ".git" }
	if !slices.Contains(rules.paths, name) && slices.ContainsFunc(entries, isGit) {
		return fs.ErrNotExist // another work tree
	}
	for _, entry := range entries {
		child := path.Join(name, entry.Name())
		switch {
		case len(files) >= maxFiles:
			return errors.New("the board has more than 200,000 files")
		case isTemp(entry.Name()):
			t.temps = append(t.temps, child)
		case entry.IsDir() && rules.descend != nil && rules.descend(child):
			below = append(below, child)
		case entry.Type().IsRegular() && rules.unit(child) != "":
			if files[child], err = identify(dir, entry.Name()); err != nil {
				return err
			}
		}
	}
	t.name = "" // it was read to its end
	for _, child := range below {
		if err := t.visit(rules, watch, child, files); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// compareNatural orders texts by the numbers in them, and by the bytes between.
func compareNatural(a, b string) int {
	for a != "" && b != "" {
		x, y := number(a), number(b)
		if x != "" && y != "" {
			if order := compareNumbered(x, y); order != 0 {
				return order
			}
			a, b = a[len(x):], b[len(y):]
			continue
		}
		if a[0] != b[0] {
			return int(a[0]) - int(b[0])
		}
		a, b = a[1:], b[1:]
	}
	return len(a) - len(b)
}
