package domain

import (
	"slices"
	"time"
)

// Place is where work on a story is: a work tree with its branch, or a branch without a work tree. Its numbers are
// relative to the base, the commit of the project's own work tree.
type Place struct {
	Branch, Worktree       string // "" for none
	Head                   string
	At                     time.Time // of the head
	Author                 string
	Ahead, Behind          int
	Files, Added, Removed  int
	Uncommitted            int    // files
	Stage                  string // where the story is there, "" if it is not
	Conflicts              []string
	ConflictsKnown, Merged bool
	Link                   string
	Carries                []string // commits whose review applies to the head
}

// LinkSession is the link of a place in which a coding agent's session works.
const LinkSession = "session"

// PlaceLink says which story a work tree or a branch is for: the only one that has moved there, or that it is named
// after.
type PlaceLink struct {
	Branch   string `json:"branch,omitempty"`
	Worktree string `json:"worktree,omitempty"`
	StoryID  string `json:"story_id"`
}

// PlaceWith returns the first place that is at a commit, or has only our moves after it, nil for none.
func PlaceWith(places []Place, head string) *Place {
	for i := range places {
		if places[i].Head == head || slices.Contains(places[i].Carries, head) {
			return &places[i]
		}
	}
	return nil
}

// ItemWork is what a board shows of the first place of a story.
type ItemWork struct {
	Branch, Worktree      string // "" for none
	Ahead                 int
	Files, Added, Removed int
	Uncommitted           int
	Conflicts             int // how many files, -1 if unknown
	Places                int // how many the story has
	// Clash is the first of all places that conflicts with the base, Unmerged the first that the base lacks; nil for none.
	Clash    *Clash
	Unmerged *UnmergedPlace
}

// Clash is a place that conflicts with the base.
type Clash struct {
	Place string   // its branch, or else its work tree
	Files []string // the first of them
	Count int      // of all
	Since time.Time
}

// UnmergedPlace is a place with commits that the base lacks.
type UnmergedPlace struct {
	Place string // its branch, or else its work tree
	Ahead int
}

// ChangesQuery says which changes of a story are requested; "" is the default.
type ChangesQuery struct {
	Branch, Worktree string // the place: by default the first
	Path             string // only this file
	Since            string // only what came after this commit
	// Head is a commit that no place of the story has any more, but the base may.
	Head string
}
