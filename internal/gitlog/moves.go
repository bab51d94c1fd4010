package gitlog

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"switchyard/internal/board"
	"switchyard/internal/domain"
	"switchyard/internal/wire"
)

const (
	// maxBoardCommits is how many commits that touch the board are read, from the newest, and maxChanges how many files
	// they may change in all.
	maxBoardCommits, maxChanges = 5000, 200_000
	// maxOld is how many older commits in a row end the search for newer ones.
	maxOld = 5000
	// movesCPU is how much CPU time each command that reads them may take, movesLimit how long reading them may take on
	// a busy machine, and movesFactor how many times longer to pause afterwards.
	movesCPU, movesLimit = 20 * time.Second, time.Minute
	movesFactor          = 20
)

// Moves are what commits did to a board's stories, oldest first. They are immutable.
type Moves struct {
	ID                     string // changes with the moves
	Complete               bool   // git has been read
	domain.HistoryProgress        // while it is read for the first time
	List                   []wire.Move

	still map[string]string // the stages of stories that no listed move has brought to where HEAD has them
	from  time.Time         // how long they have been there at least

	stillID string
}

// Since returns a time since which a story has been in a stage, or zero unless HEAD has it there and all of its moves
// are older.
func (m *Moves) Since(story, stage string) time.Time {
	if m.still[story] != stage {
		return time.Time{}
	}
	return m.from
}

// Still identifies what Since returns.
func (m *Moves) Still() string { return m.stillID }

// Moves returns what the commits of the last 180 days did to the stories.
func (l *Log) Moves() *Moves { return l.moves.Load() }

// updateMoves reads the moves again if HEAD or what the board makes of commits has changed.
func (l *Log) updateMoves(ctx context.Context) error {
	past := l.Board.Past()
	of := l.head + " " + past.Config
	if !l.opened {
		l.movesOf, of = "", ""
		l.publishMoves(Moves{})
	}
	if of == l.movesOf || time.Now().Before(l.movesDue) {
		return nil
	}
	began := time.Now()
	var next Moves
	if l.head != "" {
		limited, cancel := context.WithTimeout(ctx, l.movesLimit)
		defer cancel()
		r := repository{l.repository.WithCPU(movesCPU), l.repository.tree}
		var err error
		next.List, next.still, next.from, err = r.moves(
			limited, l.head, began.AddDate(0, 0, -l.days), past, l.showProgress)
		l.movesDue = time.Now().Add(movesFactor * time.Since(began))
		if err != nil {
			return err
		}
	}
	l.movesOf = of
	l.publishMoves(next)
	return nil
}

func (l *Log) showProgress(read, of int) {
	if known := l.moves.Load(); !known.Complete {
		l.moves.Store(&Moves{ID: known.ID, HistoryProgress: domain.HistoryProgress{Read: read, Of: of}})
	}
}

func (l *Log) publishMoves(next Moves) {
	sum := sha256.New()
	each := json.NewEncoder(sum)
	for _, m := range next.List { // encoding all at once would take many times their memory
		_ = each.Encode(m) // strings and numbers always encode
	}
	next.ID, next.Complete = hex.EncodeToString(sum.Sum(nil)[:12]), true
	if len(next.still) > 0 {
		_ = each.Encode(next.still)
		_ = each.Encode(next.from)
		next.stillID = hex.EncodeToString(sum.Sum(nil)[:4])
	}
	l.moves.Store(&next)
}

// inOrder returns the moves since a time, oldest first, of commits, which are sorted newest first.
func inOrder(commits []boardCommit, did [][]move, since time.Time) (moves []wire.Move) {
	type place struct {
		stage string
		atMS  int64
	}
	places := map[string]place{}
	for i, commit := range slices.Backward(commits) {
		for _, m := range did[i] {
			last := places[m.story]
			m.from = cmp.Or(m.from, last.stage) // it was deleted, or copied
			if m.from == m.to {
				continue
			}
			now := place{m.to, max(commit.at.UnixMilli(), last.atMS)}
			if places[m.story] = now; now.atMS < since.UnixMilli() {
				continue // it has been committed again since
			}
			moves = append(moves, wire.Move{
				StoryID: m.story, FromStage: wire.OrNull(m.from), ToStage: m.to, AtMS: now.atMS,
				Author: commit.author, Commit: commit.hash,
			})
		}
	}
	slices.SortStableFunc(moves, func(a, b wire.Move) int { return cmp.Compare(a.AtMS, b.AtMS) })
	return moves[max(0, len(moves)-domain.MaxMoves):]
}

// tree is the files of a board as of a commit.
type tree struct {
	past  board.Past
	files map[string]string // the ids of their blobs, by path
	dirs  map[string]int    // how many files are in each directory
	blob  func(id string) []byte
	known map[string]map[string]string // the stories of units, as in files
}

func newTree(past board.Past, files map[string]string, blob func(id string) []byte) *tree {
	t := &tree{past: past, files: files, dirs: map[string]int{}, blob: blob, known: map[string]map[string]string{}}
	for name, id := range files {
		if id != "" {
			t.dirs[path.Dir(name)]++
		}
	}
	return t
}

// Has also takes a directory, as its entry ".": it exists while a file is in it.
func (t *tree) Has(name string) bool {
	dir, isDir := strings.CutSuffix(name, "/.")
	return t.files[name] != "" || isDir && t.dirs[dir] > 0
}

func (t *tree) Read(path string) []byte {
	if id := t.files[path]; id != "" {
		return t.blob(id)
	}
	return nil
}

func (t *tree) Below(dir string) (files []string) {
	for name, id := range t.files {
		if id != "" && strings.HasPrefix(name, dir+"/") {
			files = append(files, name)
		}
	}
	return files
}

func (t *tree) set(name, id string) {
	if before := t.files[name]; before != id {
		delete(t.known, t.past.Unit(name))
		t.files[name] = id
		if id == "" {
			t.dirs[path.Dir(name)]--
		} else if before == "" {
			t.dirs[path.Dir(name)]++
		}
	}
}

// stories returns the stages of the stories in units; for one that is in several, that of the unit in which it is now,
// else of the first.
func (t *tree) stories(units []string) map[string]string {
	all := map[string]string{}
	for _, unit := range slices.Backward(units) {
		if t.known[unit] == nil {
			t.known[unit] = t.past.Stories(unit, t)
		}
		maps.Copy(all, t.known[unit])
	}
	for story := range all {
		now := t.past.Now(story)
		if stage := t.known[now][story]; stage != "" && slices.Contains(units, now) {
			all[story] = stage
		}
	}
	return all
}

// all returns the stages of all stories.
func (t *tree) all() map[string]string {
	units := map[string]bool{}
	for name := range t.files {
		if unit := t.past.Unit(name); unit != "" {
			units[unit] = true
		}
	}
	return t.stories(slices.Sorted(maps.Keys(units)))
}

// move is what a commit did to a story.
type move struct{ story, from, to string }

// between turns it into the tree before files changed, and returns their units' stories before and after that.
func (t *tree) between(files []changedFile) (before, after map[string]string) {
	var units []string
	for _, f := range files {
		if unit := t.past.Unit(f.path); unit != "" {
			units = append(units, unit)
			t.set(f.path, f.after)
		}
	}
	slices.Sort(units)
	units = slices.Compact(units)
	for story := range t.stories(units) {
		if unit := t.past.Now(story); unit != "" { // if the story was there, it counted there, too
			units = append(units, unit)
		}
	}
	slices.Sort(units)
	units = slices.Compact(units)
	after = t.stories(units)
	for _, f := range files {
		if t.past.Unit(f.path) != "" {
			t.set(f.path, f.before)
		}
	}
	return t.stories(units), after
}

// undo turns it into the tree before a commit, and returns what the commit did.
func (t *tree) undo(files []changedFile) (moves []move) {
	before, after := t.between(files)
	for _, story := range slices.Sorted(maps.Keys(after)) {
		if after[story] != before[story] {
			moves = append(moves, move{story, before[story], after[story]})
		}
	}
	return moves
}
