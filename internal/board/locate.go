package board

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// workDirs are the paths of a repository's work directory, the preferred one first.
var workDirs = []string{filepath.Join(".huskies", "work"), "work"}

// Locate returns the work directory for dir: dir itself if it has stages, else a repository's below it. A directory
// without stages is accepted only if it is empty or does not exist, so that stages are never created
// among other files: for any other Locate returns an error that says what it searched for.
func Locate(dir string) (string, error) {
	fits, err := fitsWork(dir)
	if fits || err != nil {
		return dir, err
	}
	for _, name := range workDirs {
		below := filepath.Join(dir, name)
		if info, err := os.Stat(below); err != nil || !info.IsDir() {
			continue
		}
		fits, err := fitsWork(below)
		if !fits && err == nil {
			err = fmt.Errorf("%s has other files, but no stage directories such as %s", below, defaultStages[0])
		}
		return below, err
	}
	return "", fmt.Errorf("%s has other files, but no stage directories such as %s, and no %s or %s that has any", dir,
		defaultStages[0], workDirs[0], workDirs[1])
}

// fitsWork reports whether dir has stages, or is empty.
func fitsWork(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return len(entries) == 0 || slices.ContainsFunc(entries, isStage), err
}

func isStage(entry fs.DirEntry) bool { return entry.IsDir() && stageName().MatchString(entry.Name()) }
