package config

import (
	"slices"
	"strings"
)

// DidYouMean returns "; did you mean NAME?" with the names that are similar to word, each behind prefix, or "" if none
// is: those that begin with it or are at most two letters different, and keys of a file without their section.
func DidYouMean(word, prefix string, names []string) string {
	word = strings.ToLower(word)
	var similar []string
	for _, name := range names {
		if strings.HasPrefix(name, word) || strings.HasSuffix(name, "."+word) || distance(name, word) <= 2 {
			similar = append(similar, prefix+name)
		}
	}
	if word == "" || len(similar) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(similar, " or ") + "?"
}

// distance counts how many bytes must be added, removed or replaced to make b of a.
func distance(a, b string) int {
	above := make([]int, len(b)+1) // the distances of what has been read of a to each beginning of b
	for j := range above {
		above[j] = j
	}
	for i := range len(a) {
		row := slices.Clone(above)
		row[0] = i + 1
		for j := range len(b) {
			replaced := above[j]
			if a[i] != b[j] {
				replaced++
			}
			row[j+1] = min(replaced, above[j+1]+1, row[j]+1)
		}
		above = row
	}
	return above[len(b)]
}
