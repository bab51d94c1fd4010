package board

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"switchyard/internal/domain"
)

// stageName matches the name of a stage's directory: digits, "_", a word in any script, which may contain hyphens.
var stageName = regexp.MustCompile(`^[0-9]+_[\pL\pN_-]+$`)

// defaultStages are created in a work directory without stages.
var defaultStages = []string{"1_backlog", "2_current", "3_qa", "4_merge", "5_done", "6_archived"}

// makeStages creates the default stages in dir unless it already has a stage.
func makeStages(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil || slices.ContainsFunc(entries, isStage) {
		return err
	}
	for _, name := range defaultStages {
		if err := os.Mkdir(filepath.Join(dir, name), 0o777); err != nil {
			return err
		}
	}
	return nil
}

// workDirs are the paths of a repository's work directory, the preferred one first.
var workDirs = []string{filepath.Join(".huskies", "work"), "work"}

// Locate returns the work directory for dir: dir itself if it has stages, else a repository's below it. A directory
// without stages is accepted only if it is empty or does not exist, so that stages are never created among other files:
// otherwise Locate returns an error that says what it searched for.
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

func isStage(entry fs.DirEntry) bool { return entry.IsDir() && stageName.MatchString(entry.Name()) }

// compareNumbered orders names by their leading number, of any length, then byte by byte. Names without a number come
// last.
func compareNumbered(a, b string) int { return domain.CompareNumbered(a, b, number(a), number(b)) }

// number returns a name's leading digits. Many names are sorted: a set of characters takes ten times as long
// (BenchmarkLayouts).
func number(name string) string {
	n := 0
	for n < len(name) && '0' <= name[n] && name[n] <= '9' {
		n++
	}
	return name[:n]
}
