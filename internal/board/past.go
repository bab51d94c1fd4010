package board

import (
	"maps"
	"path"
	"strings"
)

// Past reads the files of a board as of any commit.
type Past struct {
	// Paths are where the files are, below the board's directory.
	Paths []string
	// Config differs if Stories would read the same files differently.
	Config string
	// Unit returns the group of files that the one at a path belongs to: the stories in it depend on no other files. It
	// is "" for a file that is not the board's. For a story in several units the one from Now counts, else the first.
	Unit func(path string) string
	// Now returns the unit in which a story counts now, "" for none: it may have been in others as well.
	Now func(story string) string
	// Stories returns the stages of the stories in a unit, by their ids. It must not be called concurrently.
	Stories func(unit string, files Files) map[string]string
	// named says that several stories may share an id, in files with different names.
	named bool
}

// Named returns a past that also knows stories by their file names.
func (p Past) Named() Past {
	stories := p.Stories
	if p.named {
		p.Stories = func(unit string, files Files) map[string]string {
			found := stories(unit, files)
			for id, stage := range maps.Clone(found) {
				found[storyName{id, path.Base(unit)}.key()] = stage
			}
			return found
		}
	}
	return p
}

// Files are the regular files below a board's directory as of a commit.
type Files interface {
	Has(path string) bool
	// Read returns nil for a file that does not exist or cannot be read.
	Read(path string) []byte
	// Below returns the paths of the files below a directory.
	Below(dir string) []string
}

var pastOfStages = Past{
	Paths: []string{"."}, Now: func(string) string { return "" },
	Unit: func(file string) string {
		dir, name := path.Split(file)
		if !stageName.MatchString(strings.TrimSuffix(dir, "/")) || !strings.HasSuffix(name, ".md") || name[0] == '.' {
			return ""
		}
		return file
	},
	Stories: func(unit string, files Files) map[string]string {
		if !files.Has(unit) {
			return nil
		}
		stage, name, _ := strings.Cut(unit, "/")
		return map[string]string{strings.TrimSuffix(name, ".md"): stage}
	},
}

// decodedFiles decodes files the way today's are.
type decodedFiles struct{ Files }

func (f decodedFiles) Read(path string) []byte { return decodeText(f.Files.Read(path)) }
