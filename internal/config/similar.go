package config

import (
	"strings"

	"github.com/spf13/cobra"
)

// DidYouMean returns "; did you mean NAME?" with the names that are similar to word, each after prefix, or "" if none
// is: those that begin with it or differ in at most two letters, and keys of a file without their section.
func DidYouMean(word, prefix string, names []string) string {
	known := &cobra.Command{SuggestionsMinimumDistance: 2}
	for _, name := range names {
		_, key, _ := strings.Cut(name, ".")
		known.AddCommand(&cobra.Command{Use: name, SuggestFor: []string{key}, Run: func(*cobra.Command, []string) {}})
	}
	similar := known.SuggestionsFor(word)
	if word == "" || len(similar) == 0 {
		return ""
	}
	return "; did you mean " + prefix + strings.Join(similar, " or "+prefix) + "?"
}
