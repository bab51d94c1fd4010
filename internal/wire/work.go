package wire

import "cmp"

// MaxWork is how many places of a story are reported, maxConflicts how many paths of each, clashFiles how many of those
// an item has.
const MaxWork, maxConflicts, clashFiles = 20, 100, 5

// Base is the commit that a board's places are compared with.
type Base struct {
	Branch *string `json:"branch"`
	Commit string  `json:"commit"`
}

// Work is a place of a story: a work tree with its branch, or a branch without one.
type Work struct {
	Branch      *string  `json:"branch"`
	Worktree    *string  `json:"worktree"`
	Head        string   `json:"head"`
	AtMS        int64    `json:"at_ms"` // of head, like Author
	Author      string   `json:"author"`
	Ahead       int      `json:"ahead"` // commits that the base lacks
	Behind      int      `json:"behind"`
	Files       int      `json:"files"` // that differ from the merge base
	Added       int      `json:"added"`
	Removed     int      `json:"removed"`
	Uncommitted int      `json:"uncommitted"` // changed and untracked files
	Stage       *string  `json:"stage"`       // of the story there
	Conflicts   PathList `json:"conflicts"`   // with the base, null if git cannot say
	ClashMS     int64    `json:"-"`           // since when
	Merged      bool     `json:"merged"`
	Link        string   `json:"link"` // moved, name or commit
	// Carries are commits from which head differs only by moves of a story that the project server has made.
	Carries PathList `json:"carries,omitempty"`
}

// Works are the places of a story, the strongest link first; null without git.
type Works []Work

func (w *Works) UnmarshalJSON(list []byte) (err error) {
	*w, err = first[Work](list, MaxWork)
	return err
}

// PathList has the first of many paths.
type PathList []string

func (l *PathList) UnmarshalJSON(list []byte) (err error) {
	*l, err = first[string](list, maxConflicts)
	return err
}

// ItemWork sums up a story's first place.
type ItemWork struct {
	Branch      *string `json:"branch"`
	Worktree    *string `json:"worktree"`
	Ahead       int     `json:"ahead"`
	Files       int     `json:"files"`
	Added       int     `json:"added"`
	Removed     int     `json:"removed"`
	Uncommitted int     `json:"uncommitted"`
	Conflicts   *int    `json:"conflicts"` // null if git cannot say
	Places      int     `json:"places"`    // how many there are
	Merged      bool    `json:"merged,omitempty"`
	// Clash is the first of all places that conflicts with the base, Unmerged the first that is ahead and not merged.
	Clash    *ItemPlace `json:"clash,omitempty"`
	Unmerged *ItemPlace `json:"unmerged,omitempty"`
}

// Texts returns its texts, some of which may be nil.
func (w *ItemWork) Texts() (texts []*string) {
	if w == nil {
		return nil
	}
	texts = []*string{w.Branch, w.Worktree}
	for _, place := range []*ItemPlace{w.Clash, w.Unmerged} {
		if place == nil {
			continue
		}
		texts = append(texts, &place.Place)
		for i := range place.Files {
			texts = append(texts, &place.Files[i])
		}
	}
	return texts
}

// ItemPlace is what an item says about one of its places, which need not be the first.
type ItemPlace struct {
	Place   string   `json:"place"` // its branch, else its work tree
	Ahead   int      `json:"ahead"`
	Files   PathList `json:"files,omitempty"` // the first that conflict
	Count   int      `json:"count,omitempty"` // of all that conflict
	SinceMS int64    `json:"since_ms,omitempty"`
}

// Changes are what a place of a story has beyond the base.
type Changes struct {
	Branch      *string         `json:"branch"`
	Worktree    *string         `json:"worktree"`
	Base        string          `json:"base"`
	Head        string          `json:"head"`
	MergeBase   string          `json:"merge_base"`
	Ahead       int             `json:"ahead"`
	Behind      int             `json:"behind"`
	Conflicts   PathList        `json:"conflicts"`
	Commits     []ChangesCommit `json:"commits"` // the newest
	Files       []ChangedFile   `json:"files"`   // the first
	More        int             `json:"more"`    // how many others
	Uncommitted Uncommitted     `json:"uncommitted"`
	Untracked   []string        `json:"untracked"` // the first
	Diff        string          `json:"diff"`
	Cut         bool            `json:"cut"`
}

// NewChanges returns changes that are empty.
func NewChanges(base, head, mergeBase string) *Changes {
	return &Changes{
		Base: base, Head: head, MergeBase: mergeBase, Commits: []ChangesCommit{}, Files: []ChangedFile{},
		Uncommitted: Uncommitted{Files: []ChangedFile{}}, Untracked: []string{},
	}
}

type ChangesCommit struct {
	Hash    string `json:"hash"`
	Author  string `json:"author"`
	AtMS    int64  `json:"at_ms"`
	Subject string `json:"subject"`
}

type ChangedFile struct {
	Path    string  `json:"path"`
	From    *string `json:"from"`   // of a renamed file
	Status  string  `json:"status"` // added, modified, deleted, renamed or mode
	Added   *int    `json:"added"`  // null for a binary file, like Removed
	Removed *int    `json:"removed"`
	Binary  bool    `json:"binary"`
	Bytes   int     `json:"bytes"` // of its diff
	ID      string  `json:"id"`    // changes with its diff
	Cut     bool    `json:"cut"`   // its diff is left out
}

// Uncommitted is what a work tree has beyond its head.
type Uncommitted struct {
	Files []ChangedFile `json:"files"`
	Diff  string        `json:"diff"`
	Cut   bool          `json:"cut"`
}

// Merge asks a project server to merge what a branch has for a story.
type Merge struct {
	Branch string  `json:"branch"`
	Head   string  `json:"head"`            // the tip to merge
	Stage  *string `json:"stage,omitempty"` // of the story afterwards: by default the done stage
	Into   *string `json:"into,omitempty"`  // the branch that must be the base's: by default any
}

// Merged is the outcome of a merge.
type Merged struct {
	Commit string `json:"merged"`
}

// SumUp returns what an item says about its story's places, nil for none.
func SumUp(works []Work, places int) *ItemWork {
	if len(works) == 0 {
		return nil
	}
	w := works[0]
	sum := &ItemWork{
		Branch: w.Branch, Worktree: w.Worktree, Ahead: w.Ahead, Files: w.Files, Added: w.Added, Removed: w.Removed,
		Uncommitted: w.Uncommitted, Places: places, Merged: w.Merged,
	}
	if w.Conflicts != nil {
		sum.Conflicts = new(len(w.Conflicts))
	}
	for _, w := range works {
		place := ItemPlace{Place: cmp.Or(Text(w.Branch), Text(w.Worktree)), Ahead: w.Ahead}
		if sum.Unmerged == nil && w.Ahead > 0 && !w.Merged {
			sum.Unmerged = new(place)
		}
		if n := len(w.Conflicts); sum.Clash == nil && n > 0 {
			place.Files, place.Count, place.SinceMS = w.Conflicts[:min(n, clashFiles)], n, w.ClashMS
			sum.Clash = &place
		}
	}
	return sum
}
