package board

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"

	"switchyard/internal/domain"
	"switchyard/internal/feed"
	"switchyard/internal/git"
)

// Place is a linked work tree, or a branch without a work tree, in which the board's stories may stand.
type Place struct {
	Worktree string // its path, "" for a branch
	Branch   string // "" for none
	Head     string
	Dir      string // where its board is: for a branch, in a copy of its tip
	State    string // of the work tree's HEAD when it was read
	// Base returns the stage of a story in the commit where the place began, "" for none, and Had reports whether the
	// board's own branch has had the story in a stage since. Base is nil if they have no commit in common.
	Base  func(id string) string
	Had   func(id, stage string) bool
	Began string // that commit
	// Only has the stories that may stand in it, nil for all.
	Only map[string]bool
	// Advanced says that its new commits follow on from its old ones: what differs is news.
	Advanced bool
}

// member is a place with its board.
type member struct {
	Place
	board  *Board
	of     *Board                // that it is joined with
	moved  map[string]storyPlace // by the ids of its own board; joined has the ids of the joined one
	joined map[string]storyPlace
	news   map[string]bool // stories with news that was not joined yet
	end    chan struct{}
	began  atomic.Pointer[Place] // what its files are compared with as they are read
}

// isAtBase reports whether a story is in the stage in which the place began with it: it has not moved there, and
// nothing else about it matters.
func (m *member) isAtBase(stage, id string) bool {
	began := m.began.Load()
	return began.Base == nil || began.Base(id) == stage
}

// where is a snapshot of a place, with a nil member for the board's own work tree, and the id that a story has there.
type where struct {
	*member
	board            *Board
	worktree, branch string
	id               string
}

// at returns a place. The caller holds the mutex of joined.
func (b *Board) at(m *member, id string) where {
	if m == nil {
		return where{id: b.joined.idIn(b, id)}
	}
	return where{m, m.board, m.Worktree, m.Branch, b.joined.idIn(m.board, id)}
}

// idIn returns a story's id on another board of the repository, or on this one.
func (b *Board) idIn(other *Board, id string) string {
	b.joined.mu.Lock()
	defer b.joined.mu.Unlock()
	return b.joined.idIn(other, id)
}

// isStale reports whether HEAD has come to another commit, other than by new commits, since the place was read.
func (m *member) isStale() bool {
	if m.Worktree == "" {
		return false
	}
	tree, found := git.Find(m.Dir)
	return found && tree.HeadState() != m.State && !tree.HasOnlyCommitted(m.Head)
}

// Join replaces the places that the board is joined with. It returns the boards of new work trees, which are to be run.
// What stands in these is no news; that a place is gone is news if it moves a story.
func (b *Board) Join(places []Place) (opened []*Board) {
	j := &b.joined
	j.mu.Lock()
	known := slices.Clone(j.members)
	j.mu.Unlock()
	if tree, inTree := git.Find(b.dir); inTree && j.state != tree.HeadState() {
		b.catchUp() // what was read may be newer than what is on the board
		j.state = tree.HeadState()
	}
	var next []*member
	var without []string
	for _, p := range places {
		i := slices.IndexFunc(known, func(m *member) bool { return m.Dir == p.Dir })
		if i >= 0 {
			if known[i].began.Swap(&p); p.State != known[i].State || p.Began != known[i].Began {
				known[i].board.catchUp()
			}
			next = append(next, known[i])
			continue
		}
		m := &member{
			Place: p, of: b, moved: map[string]storyPlace{}, news: map[string]bool{}, end: make(chan struct{}),
		}
		m.began.Store(&p)
		o := b.options
		o.Dir, o.Record, o.Refresh = p.Dir, func(...feed.Notification) {}, nil
		o.Log = o.Log.With("worktree", p.Worktree)
		if p.Worktree == "" {
			o.AllowWrites, o.Log = false, slog.New(slog.DiscardHandler)
		}
		var err error
		if m.board, err = open(o, m); err != nil {
			without = append(without, p.Worktree)
			continue
		}
		if next = append(next, m); p.Worktree != "" {
			opened = append(opened, m.board)
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	news := map[string]bool{}
	for _, m := range known {
		if !slices.Contains(next, m) {
			close(m.end)
			for id := range m.joined {
				news[id] = true
			}
		}
	}
	j.members, j.without = next, without
	for _, m := range next {
		m.Place = places[slices.IndexFunc(places, func(p Place) bool { return p.Dir == m.Dir })]
		if m.evaluate() {
			maps.Copy(news, m.takeNews())
		}
		if m.Advanced {
			for id := range m.moved {
				news[j.idOf(m.board, id)] = true
			}
		}
	}
	b.join(false, nil, news)
	return opened
}

// ended is closed when the board's place is gone.
func (b *Board) ended() <-chan struct{} {
	if b.place == nil {
		return nil
	}
	return b.place.end
}

// StageIn returns the stage of a story in the work tree at a path, or with "" in the board's own; "" for none.
func (b *Board) StageIn(worktree, id string) string {
	if worktree == "" {
		_, stage, _ := b.own.Load().Find(b.idIn(b, id))
		return stage
	}
	b.joined.mu.Lock()
	defer b.joined.mu.Unlock()
	for _, m := range b.joined.members {
		if m.Worktree == worktree {
			_, stage, _ := m.board.own.Load().Find(b.joined.idIn(m.board, id))
			return stage
		}
	}
	return ""
}

// HasMoved returns the stories that have moved to each place, by the work tree's path or the branch.
func (b *Board) HasMoved() map[string]map[string]bool {
	b.joined.mu.Lock()
	defer b.joined.mu.Unlock()
	moved := map[string]map[string]bool{}
	for _, m := range b.joined.members {
		ids := map[string]bool{}
		for id := range m.joined {
			ids[id] = true
		}
		moved[cmp.Or(m.Worktree, m.Branch)] = ids
	}
	return moved
}

// standsIn returns the place in which a story stands.
func (b *Board) standsIn(id string) where {
	b.joined.mu.Lock()
	defer b.joined.mu.Unlock()
	return b.at(b.joined.standing[id].place, id)
}

// withPlace adds to details where they were read, and since when the story has been there.
func (b *Board) withPlace(id string, d *Details, at where) *Details {
	if d == nil {
		return nil
	}
	d.ID, d.Worktree, d.Branch, d.MergeFailure = id, at.worktree, at.branch, cmp.Or(d.MergeFailure, b.failure(id))
	if at.board != nil && at.worktree == "" && d.ReadOnly == "" {
		d.ReadOnly = domain.MessageOf(errNoTree(at.branch))
	}
	if story, stage, found := b.View().Find(d.ID); found && stage == d.Stage && story.Worktree == d.Worktree {
		d.Since = story.Since
		if d.Blocked != "" && !story.BlockedSince.IsZero() {
			d.BlockedSince = story.BlockedSince
		}
	}
	return d
}
