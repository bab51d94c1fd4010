package board

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// stageName is what makes a directory a stage: digits, "_", a word of any script (hyphens are part of words).
var stageName = regexp.MustCompile(`^[0-9]+_[\pL\pN_-]+$`)

// defaultStages are made in a work directory that has no stage.
var defaultStages = []string{"1_backlog", "2_current", "3_qa", "4_merge", "5_done", "6_archived"}

// makeStages makes the default stages below dir unless it has a stage already.
func makeStages(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() && stageName.MatchString(entry.Name()) {
			return nil
		}
	}
	for _, name := range defaultStages {
		if err := os.Mkdir(filepath.Join(dir, name), 0o777); err != nil {
			return err
		}
	}
	return nil
}

// compareNumbered orders names by the number that they begin with, however long, then byte by byte.
// A name without a number comes after all that have one.
func compareNumbered(a, b string) int {
	x, y := number(a), number(b)
	if (x == "") != (y == "") {
		return cmp.Compare(len(y), len(x))
	}
	x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y), cmp.Compare(a, b))
}

// number is the digits that name begins with.
func number(name string) string {
	end := 0
	for end < len(name) && '0' <= name[end] && name[end] <= '9' {
		end++
	}
	return name[:end]
}
