package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"switchyard/internal/board"
	"switchyard/internal/domain"
	"switchyard/internal/files"
	"switchyard/internal/git"
)

type workBoard struct {
	board.Found
	name  string
	named bool            // by --name
	ends  context.Context // when it is no longer served; nil for as long as the gateway runs
}

func (b *workBoard) key() string {
	if b.Layout == domain.LayoutStages {
		return b.Dir
	}
	return b.Dir + " (" + b.Layout + ")"
}

// isOfOneRepository reports whether two boards are the same one in two work trees of a repository.
func isOfOneRepository(a, b board.Found) bool {
	first, found := git.Find(a.Dir)
	second, isGit := git.Find(b.Dir)
	if !found || !isGit || a.Layout != b.Layout || first.Dir == second.Dir || first.Common != second.Common {
		return false
	}
	below, err := filepath.Rel(first.Dir, files.Resolved(a.Dir))
	other, failed := filepath.Rel(second.Dir, files.Resolved(b.Dir))
	return err == nil && failed == nil && below == other
}

// errNoBoard is returned for one of several directories that has no board.
var errNoBoard = errors.New("no board")

// boardsOf finds the boards in directories and their projects' names, which need not differ. A single directory may be
// empty; of several, those without a board are named on warnings, and none is created in them. The error is a usage
// error if a name is not valid for a project.
func boardsOf(dirs []string, create, apart bool, warnings io.Writer) ([]workBoard, error) {
	var boards []workBoard
	var without []string
	for _, dir := range dirs {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		found, err := locate(dir, "", create, len(dirs) > 1)
		if errors.Is(err, errNoBoard) {
			without = append(without, dir)
			continue
		}
		if err != nil && len(dirs) > 1 {
			fmt.Fprintf(warnings, "Not served: %s\n", err)
			continue
		}
		if err != nil {
			return nil, err
		}
		for i, f := range found {
			name := strings.TrimSpace(filepath.Base(repositoryOf(f.Dir)))
			if i > 0 {
				name += "-" + f.Layout
			}
			if err := domain.CheckProjectName(name); err != nil {
				return nil, usagef("%s: as a project's %s", f.Dir, domain.MessageOf(err))
			}
			same := func(b workBoard) bool { return !apart && isOfOneRepository(b.Found, f) }
			if first := slices.IndexFunc(boards, same); first >= 0 {
				fmt.Fprintf(warnings, "%s and %s are work trees of one repository: one project, served from the first\n",
					boards[first].Dir, f.Dir)
				continue
			}
			if !slices.ContainsFunc(boards, func(b workBoard) bool { return b.Found == f }) {
				boards = append(boards, workBoard{Found: f, name: name})
			}
		}
	}
	if len(without) > 0 {
		fmt.Fprintf(warnings, "Not served, without a board: %s\n", strings.Join(without, ", "))
	}
	if len(dirs) > 0 && len(boards) == 0 {
		return nil, errors.New("none of the directories has a board")
	}
	return boards, nil
}

// locate returns the boards of dir, at least one; with a layout only that one. It is an error if there is none, or with
// create if none can be made; among several directories it is errNoBoard.
func locate(dir, layout string, create, several bool) (found []board.Found, err error) {
	if tree, isBare := git.FindBare(dir); isBare {
		dir = tree.Dir
	}
	found, err = board.Find(dir, layout)
	if len(found) > 0 || err != nil {
		return found, err
	}
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist) && !create:
		return nil, fmt.Errorf("%s does not exist; with --create it is made", dir)
	case err == nil && several && !create:
		return nil, errNoBoard
	case err == nil && !info.IsDir():
		return nil, fmt.Errorf("%s is a file, not a directory", dir)
	}
	work, err := board.Locate(dir)
	switch {
	case err != nil && several:
		return nil, errNoBoard
	case err != nil:
		return nil, fmt.Errorf("%w, nor a board of %s%s", err, board.SearchedLayouts(), belowHint("up", dir))
	}
	return []board.Found{{Layout: domain.LayoutStages, Dir: work}}, nil
}

// earlierStarts is what the database knows of earlier starts of up.
type earlierStarts struct {
	Names map[string]string `json:"names"` // of projects, by the keys of boards
	Last  []string          `json:"last"`  // the directories of the last start
}

const earlierStartsKey = "up"

// boardsOfStart names the boards: one that was served before keeps its name; if a name stands for another directory,
// the parent folder's is put in front, then a number is added. Without boards it returns those of the last start, and
// says so.
func (u *up) boardsOfStart(ctx context.Context, boards []workBoard, out io.Writer) ([]workBoard, error) {
	text, err := u.state.State(ctx, earlierStartsKey)
	if err != nil {
		return nil, err
	}
	var before earlierStarts
	if text != "" {
		if err := json.Unmarshal([]byte(text), &before); err != nil {
			return nil, fmt.Errorf("what the last start served cannot be read: %w", err)
		}
	}
	if len(boards) == 0 {
		if len(before.Last) == 0 {
			return nil, nil
		}
		fmt.Fprintf(out, "Serving what the last start served: %s\n", strings.Join(before.Last, " "))
		if boards, err = boardsOf(before.Last, u.create, u.git.NoWorktrees, out); err != nil {
			return nil, err
		}
	}
	now := earlierStarts{Names: map[string]string{}}
	registry := u.service.Projects.Registry()
	for dir, name := range before.Names {
		if _, registered := registry.Find(name); registered {
			now.Names[dir] = name
		}
	}
	for i := range boards {
		b := &boards[i]
		if known := now.Names[b.key()]; known != "" && !b.named {
			b.name = known
		} else if b.name, err = freeName(b, now.Names); err != nil {
			return nil, err
		}
		now.Names[b.key()] = b.name
		if !slices.Contains(now.Last, b.Dir) {
			now.Last = append(now.Last, b.Dir)
		}
	}
	sayNotServed(out, boards, now.Names)
	stored, err := json.Marshal(now)
	if err != nil {
		return nil, err
	}
	return boards, u.state.SetState(ctx, earlierStartsKey, string(stored))
}

func sayNotServed(out io.Writer, boards []workBoard, names map[string]string) {
	var others []string
	for _, name := range names {
		if !slices.ContainsFunc(boards, func(b workBoard) bool { return b.name == name }) {
			others = append(others, name)
		}
	}
	if len(others) > 0 {
		slices.Sort(others)
		fmt.Fprintf(out, "No longer served, but registered until you remove them on the page Projects: %s\n",
			strings.Join(others, ", "))
	}
}

// freeName returns a name for the board that stands for no other directory.
func freeName(b *workBoard, names map[string]string) (string, error) {
	taken := func(name string) bool {
		for dir, other := range names {
			if other == name && dir != b.key() {
				return true
			}
		}
		return false
	}
	if !taken(b.name) {
		return b.name, nil
	}
	if b.named {
		return "", usagef("--name: %q stands for another directory", b.name)
	}
	long := filepath.Base(filepath.Dir(repositoryOf(b.Dir))) + "/" + b.name
	if domain.CheckProjectName(long) != nil {
		long = b.name
	}
	name := long
	for n := 2; taken(name); n++ {
		name = long + "-" + strconv.Itoa(n)
	}
	return name, domain.CheckProjectName(name)
}

// repositoryOf returns the directory that gives a board its name: for …/work and …/.huskies/work the repository above.
func repositoryOf(dir string) string {
	above := filepath.Dir(dir)
	if filepath.Base(dir) != "work" {
		return dir
	}
	if filepath.Base(above) == ".huskies" {
		above = filepath.Dir(above)
	}
	if above == filepath.Dir(above) { // the root has no name
		return dir
	}
	return above
}
