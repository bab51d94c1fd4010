package main

import (
	"path/filepath"
	"strings"

	"switchyard/internal/board"
	"switchyard/internal/domain"
)

// workBoard is a work directory that is served as a project.
type workBoard struct{ name, dir string }

// boardsOf finds the work directories and their projects' names. It returns a usage error when two have the same name
// or a name is not valid for a project.
func boardsOf(dirs []string) ([]workBoard, error) {
	var boards []workBoard
	taken := map[string]string{}
	for _, dir := range dirs {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		if dir, err = board.Locate(dir); err != nil {
			return nil, err
		}
		name := strings.TrimSpace(boardName(dir))
		if err := domain.CheckProjectName(name); err != nil {
			return nil, usagef("%s: as a project's %s", dir, domain.MessageOf(err))
		}
		if other, ok := taken[name]; ok {
			return nil, usagef("%s and %s would both be the project %q", other, dir, name)
		}
		taken[name] = dir
		boards = append(boards, workBoard{name, dir})
	}
	return boards, nil
}

// boardName returns the name of the directory, or for …/work and …/.huskies/work that of the repository above it.
func boardName(dir string) string {
	above := filepath.Dir(dir)
	if filepath.Base(dir) != "work" {
		return filepath.Base(dir)
	}
	if filepath.Base(above) == ".huskies" {
		above = filepath.Dir(above)
	}
	if above == filepath.Dir(above) { // the root has no name
		return filepath.Base(dir)
	}
	return filepath.Base(above)
}
