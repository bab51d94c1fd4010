package views

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/wire"
)

// ChangesProps are what was made for a story at one of its places, and the verdict on it.
type ChangesProps struct {
	StoryProps
	Place   domain.Place
	Changes *wire.Changes // nil if unknown
	Why     string        // why they are unknown
	Since   string        // the commit after which they were made, "" for all
	// Newer are the files that have changed since the story was sent back, nil if that does not matter.
	Newer map[string]bool
	File  string // opened without scripts, "" for none
	From  int    // how many files precede the listed ones
	Form  StoryForm
}

// address is that of a story's page with certain changes at one of its places.
func (p ChangesProps) address(since, file string) string {
	return withQuery(StoryURL(p.Story.Project, p.Story.ID), "branch", p.Place.Branch, "worktree", p.Place.Worktree,
		"since", since, "file", file)
}

func (p ChangesProps) placeURL(of domain.Place) string {
	return withQuery(StoryURL(p.Story.Project, p.Story.ID), "branch", of.Branch, "worktree", of.Worktree) + "#changes"
}

func storyOf(s domain.Story) string { return domain.StoryKey{Project: s.Project, ID: s.ID}.String() }

func (p ChangesProps) isShown(of domain.Place) bool {
	return of.Branch == p.Place.Branch && of.Worktree == p.Place.Worktree
}

func placeName(of domain.Place) string {
	if of.Branch == "" {
		return "no branch"
	}
	return of.Branch
}

// aboutPlace says where a place is, and why it is the story's.
func aboutPlace(of domain.Place) string {
	switch {
	case of.Merged:
		return "merged; nothing of it is left"
	case of.Worktree != "":
		return of.Worktree
	case of.Link == "commit":
		return "a branch without a work tree; its commits name the story"
	}
	return "a branch without a work tree"
}

type changedFile struct {
	wire.ChangedFile
	place string       // the id of its element
	text  string       // git's, "" if it is not included
	loose *changedFile // its uncommitted changes
	// isLoose is true if none of it is committed.
	isLoose, conflicts, newer, open bool
}

func (f changedFile) lines() int {
	n := 0
	if f.Added != nil && f.Removed != nil {
		n = *f.Added + *f.Removed
	}
	if f.loose != nil {
		n += f.loose.lines()
	}
	return n
}

func (f changedFile) dir() string {
	dir, _ := path.Split(f.Path)
	return dir
}

func (f changedFile) name() string { return f.Path[len(f.dir()):] }

// word says what has happened to the file apart from its lines, "" for nothing.
func (f changedFile) word() string {
	switch {
	case f.Status == "added":
		return "new"
	case f.Status == "deleted" || f.Status == "renamed":
		return f.Status
	case f.Status == "mode":
		return "mode changed"
	case f.isGenerated():
		return "written by a tool"
	}
	return ""
}

// generatedNames are the files that tools write, which nobody reads first.
var generatedNames = []string{
	"go.sum", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "Cargo.lock", "poetry.lock",
	"uv.lock", "composer.lock", "Gemfile.lock", "flake.lock",
}

func (f changedFile) isGenerated() bool {
	name := path.Base(f.Path)
	isEnd := func(end string) bool { return strings.HasSuffix(name, end) }
	ends := []string{".min.js", ".min.css", ".pb.go", "_templ.go"}
	return slices.Contains(generatedNames, name) || slices.ContainsFunc(ends, isEnd)
}

// maxOpen is how many lines are on the page at first: the others come when their file is opened. maxListed is how many
// files are listed.
const maxOpen, maxListed = 400, 100

// files returns the files in git's order, followed by entirely uncommitted ones, and the listed ones, of which the
// first has the index from.
func (p ChangesProps) files() (files, listed []changedFile, from int) {
	if p.Changes == nil {
		return nil, nil, 0
	}
	files = readFiles(p.Changes.Files, p.Changes.Diff)
	for _, loose := range readFiles(p.Changes.Uncommitted.Files, p.Changes.Uncommitted.Diff) {
		isSame := func(f changedFile) bool { return f.Path == loose.Path }
		if at := slices.IndexFunc(files, isSame); at >= 0 {
			files[at].loose = &loose
		} else if loose.isLoose = true; p.Since == "" {
			files = append(files, loose)
		}
	}
	from = min(max(0, p.From), len(files))
	if at := slices.IndexFunc(files, func(f changedFile) bool { return f.Path == p.File }); at >= 0 {
		from = at / maxListed * maxListed
	}
	listed = files[from:min(len(files), from+maxListed)]
	room := maxOpen
	for i := range listed {
		f := &listed[i]
		f.place = fmt.Sprintf("file-%d", from+i+1)
		f.conflicts, f.newer = slices.Contains(p.Changes.Conflicts, f.Path), p.Newer[f.Path]
		isQuiet := f.Status == "deleted" || f.isGenerated() || f.lines() > room
		if f.open = f.Path == p.File || p.File == "" && !isQuiet; f.open {
			room -= f.lines()
		}
	}
	return files, listed, from
}

// listURL is the address of the page with the files starting at one.
func (p ChangesProps) listURL(from int) string {
	return withQuery(p.address(p.Since, ""), "from", strconv.Itoa(from)) + "#changes"
}

func readFiles(list []wire.ChangedFile, diff string) []changedFile {
	texts, files := wire.DiffTexts(list, diff), make([]changedFile, len(list))
	for i, f := range list {
		files[i] = changedFile{ChangedFile: f, text: texts[i]}
	}
	return files
}

// sumLines adds up the numbers of files.
func sumLines(files []changedFile) (added, removed int) {
	for _, f := range files {
		if f.Added != nil && f.Removed != nil {
			added, removed = added+*f.Added, removed+*f.Removed
		}
	}
	return added, removed
}

// changeLengths are the lengths of a file's bars, together at most 52; lines share a square-root scale.
func changeLengths(f changedFile, files []changedFile) (added, removed int) {
	root := func(n *int) float64 { return math.Sqrt(float64(wire.Number(n))) }
	most := 1.0
	for _, other := range files {
		most = max(most, root(other.Added)+root(other.Removed))
	}
	length := func(n *int) int {
		if wire.Number(n) == 0 {
			return 0
		}
		return max(2, int(root(n)/most*50))
	}
	return length(f.Added), length(f.Removed)
}

// hiddenReason says why a file shows no lines, "" if it does.
func (f changedFile) hiddenReason() string {
	switch {
	case f.Binary:
		return "A binary file: there are no lines to show."
	case f.Cut:
		return fmt.Sprintf("Its diff has %s bytes: longer than what is shown.", thousands(f.Bytes))
	case f.lines() == 0 && f.Status == "renamed":
		return "It was renamed; no line of it differs."
	case f.lines() == 0 && f.Status == "mode":
		return "Its mode has changed; no line of it differs."
	case f.lines() == 0:
		return "It is empty."
	}
	return ""
}

// diffCommand shows a file's diff in the place's repository.
func (p ChangesProps) diffCommand(f changedFile) string {
	return "git diff " + domain.Truncate(p.Changes.MergeBase, 10) + " " + domain.Truncate(p.Changes.Head, 10) + " -- " +
		shellWord(f.Path)
}

// fork is the picture of how far a place and the base have diverged: up to seven dots each.
type fork struct{ main, own []int }

const maxDots = 7

func forkOf(of domain.Place) (f fork) {
	dots := func(n int) (x []int) {
		for i := range min(n, maxDots) {
			x = append(x, 46+9*i)
		}
		return x
	}
	return fork{dots(of.Behind), dots(of.Ahead)}
}

func (f fork) end() int {
	if len(f.own) == 0 {
		return 54
	}
	return f.own[len(f.own)-1] + 8
}

// baseName is the name of the branch that work is compared with.
func baseName(main string) string { return cmp.Or(main, "the base") }

func (p ChangesProps) base() string { return baseName(p.Main) }

// commitsSince is how many of the commits are newer than a time.
func (p ChangesProps) commitsSince(at time.Time) (n int) {
	for _, c := range p.Changes.Commits {
		if c.AtMS > at.UnixMilli() {
			n++
		}
	}
	return n
}
