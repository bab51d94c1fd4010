package poll

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/supervise"
	"switchyard/internal/wire"
)

const (
	// historySlots is how many histories are read at a time, each for at most historyLimit.
	historySlots = 4
	historyLimit = 30 * time.Second
	// historyPart is how many moves one call returns, and historyParts how many calls one history takes at most.
	historyPart, historyParts = wire.HistoryPart, 2 * domain.MaxMoves / wire.HistoryPart
	// maxHistory is how many bytes of texts a history may have: an honest one has some 60 for a move.
	maxHistory = 16 << 20
	// A project is asked for the id of its history every historyPause, or later if there are many projects or it took
	// long, and every maxHistoryPause if it has none.
	historyPause, historyPauseEach, maxHistoryPause = 5 * time.Second, 100 * time.Millisecond, 10 * time.Minute
	// historyFactor is how many times longer than reading a history the pause after it is.
	historyFactor = 30
	// historyTries is how often, at growing intervals, a project whose server is still reading git is asked again.
	historyTries = 12
)

// history reads a project's past from git, alongside its feed.
type history struct {
	slots   slots
	reading sync.WaitGroup
	busy    atomic.Bool // guards the fields below
	due     time.Time
	failing supervise.Backoff
}

// errUnfinished says that a project's server is still reading git, or that the history has changed meanwhile.
var errUnfinished = errors.New("the history is not complete yet")

// readHistory begins to read the project's history if it is due.
func (f *follower) readHistory(ctx context.Context) {
	h := &f.history
	if f.Histories == nil || !h.busy.CompareAndSwap(false, true) {
		return
	}
	if time.Now().Before(h.due) {
		h.busy.Store(false)
		return
	}
	h.reading.Add(1)
	supervise.Go(f.Log, "history of "+f.project.Name, func() {
		defer h.reading.Done()
		defer h.busy.Store(false)
		began, pause := time.Now(), maxHistoryPause // after a panic, too
		defer func() { h.due = time.Now().Add(max(pause, historyFactor*time.Since(began))) }()
		soon := supervise.Backoff{First: firstRetry, Max: maxRetry}
		for range historyTries {
			took, err := f.mergeHistory(ctx)
			began = time.Now().Add(-took)
			unfinished := errors.Is(err, errUnfinished) || domain.CodeOf(err) == domain.Unavailable
			switch {
			case err == nil:
				h.failing.Reset()
				pause = min(max(historyPause, time.Duration(len(f.Projects.Registry().Projects))*historyPauseEach), maxHistoryPause)
			case unfinished && supervise.Sleep(ctx, soon.Next()):
				continue
			case domain.CodeOf(err) != domain.NotFound:
				pause = h.failing.Next()
				f.Log.DebugContext(ctx, "history cannot be read", "project", f.project.Name, "error", err)
			}
			return
		}
		pause = h.failing.Next()
	})
}

// mergeHistory has the project's history merged if it has changed.
func (f *follower) mergeHistory(ctx context.Context) (took time.Duration, err error) {
	select {
	case f.history.slots <- struct{}{}:
		defer func() { <-f.history.slots }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	began := time.Now()
	defer func() { took = time.Since(began) }()
	last, err := f.Histories.Last(ctx, f.project)
	if err != nil {
		return 0, err
	}
	part, err := f.Feeds.History(ctx, f.project, 0, 1)
	switch {
	case err != nil:
		return 0, err
	case !part.Complete:
		return 0, errUnfinished
	case part.ID == last:
		return 0, nil
	}
	var moves []domain.Move
	if len(part.Moves) > 0 {
		if moves, err = f.moves(ctx, part.ID); err != nil {
			return 0, err
		}
	}
	return 0, f.Histories.Merge(ctx, f.token, f.project, part.ID, moves)
}

// moves returns all moves of a history, or the newest if they are too many.
func (f *follower) moves(ctx context.Context, id string) (moves []domain.Move, err error) {
	ctx, cancel := context.WithTimeout(ctx, historyLimit)
	defer cancel()
	after, size := int64(0), 0
	for range historyParts {
		part, err := f.Feeds.History(ctx, f.project, after, historyPart)
		if err != nil {
			return nil, err
		}
		if part.ID != id || !part.Complete {
			return nil, errUnfinished
		}
		moves = append(moves, part.Moves...)
		for _, m := range part.Moves {
			size += len(m.StoryID) + len(m.From) + len(m.To) + len(m.Author)
		}
		if size > maxHistory {
			break
		}
		if part.Next == after {
			return moves[max(0, len(moves)-domain.MaxMoves):], nil
		}
		after = part.Next
	}
	return nil, domain.Errorf(domain.BadGateway, "the history is too long")
}
