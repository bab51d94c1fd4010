package service

import (
	"context"
	"log/slog"
	"math"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

const (
	// minKept is how many events of each project are kept regardless of their age.
	minKept = 500
	// The time between two searches for old events is a hundredth of the time for which events are kept, between
	// minRetentionPause and maxRetentionPause.
	minRetentionPause = time.Second
	maxRetentionPause = 10 * time.Minute
)

// Retention removes old events, in steps so small that other writes do not wait.
type Retention struct {
	store     *database
	events    *Events
	questions *Questions
	costs     *Costs
	bot       BotRunner
	log       *slog.Logger
	keep      time.Duration // 0: forever
	leader    domain.Leadership
}

// Run works until ctx ends. It returns an error if the store fails; nothing is lost if it is run again.
func (s *Retention) Run(ctx context.Context) error {
	if s.keep == 0 {
		<-ctx.Done()
		return nil
	}
	for supervise.Sleep(ctx, min(max(s.keep/100, minRetentionPause), maxRetentionPause)) {
		token, leads := s.leader.Token()
		if !leads {
			s.events.forgetOld(clock.Now().Add(-s.keep))
			continue
		}
		removed, err := s.removeExpired(ctx, token)
		if removed > 0 {
			s.log.InfoContext(ctx, "removed old events", "events", removed)
		}
		if err := unlessLost(err); err != nil {
			return supervise.UnlessEnded(ctx, err)
		}
	}
	return nil
}

// removeExpired removes expired events and returns their number. It keeps events that the bot has not posted.
func (s *Retention) removeExpired(ctx context.Context, token int64) (removed int, err error) {
	posted, err := s.bot.Posted(ctx)
	if err != nil {
		return 0, err
	}
	needed := min(posted, math.MaxInt64-1) + 1
	projects, err := s.store.EventProjects(ctx)
	if err != nil {
		return 0, err
	}
	for _, project := range projects {
		for {
			now := clock.Now()
			e := domain.ExpiryQuery{Project: project, Before: now.Add(-s.keep), Now: now, Keep: minKept, Needed: needed}
			ids, err := s.store.ExpiredEvents(ctx, e, stepSize)
			if err == nil && len(ids) == 0 {
				break
			}
			if err == nil {
				err = s.remove(ctx, token, 4, ids)
			}
			if err != nil {
				return removed, err
			}
			removed += len(ids)
		}
	}
	if err := s.store.RemoveStoryChanges(ctx, token, clock.Now().Add(-s.keep)); err != nil {
		return removed, err
	}
	for more := true; more; {
		err := step(ctx, 4, func() error {
			n, err := s.store.RemoveCalls(ctx, token, clock.Now().Add(-s.keep), stepSize)
			more = n == stepSize
			return err
		})
		if err != nil {
			return removed, err
		}
	}
	return removed, ctx.Err()
}

// remove removes events, as one step of many.
func (s *Retention) remove(ctx context.Context, token int64, rest int, ids []int64) error {
	err := step(ctx, rest, func() error { return s.store.RemoveEvents(ctx, token, ids) })
	if err == nil {
		s.events.tail.forget(ids)
	}
	return err
}

// Forget removes everything known about a project's past: events, visits, questions and who did what. The project must
// have been removed.
func (s *Retention) Forget(ctx context.Context, project string) error {
	token, leads := s.leader.Token()
	if !leads {
		return domain.ErrNotLeader
	}
	for {
		page, err := s.events.Page(ctx, domain.EventQuery{Project: project, Limit: stepSize})
		if err != nil {
			return err
		}
		if len(page.Events) == 0 {
			break
		}
		var ids []int64
		for _, e := range page.Events {
			ids = append(ids, e.ID)
		}
		if err := s.remove(ctx, token, 0, ids); err != nil {
			return err
		}
	}
	if err := s.store.RemovePast(ctx, token, project); err != nil {
		return err
	}
	s.events.visits.Forget()
	if err := s.questions.table.load(ctx); err != nil {
		return err
	}
	return s.costs.load(ctx)
}

// Storage is how much the store holds.
type Storage struct {
	Size, Free int64     // of the database on disk, and how much of it can be reused, in bytes
	Oldest     time.Time // when the oldest event was received, zero if there is none
}

func (s *Retention) Stored(ctx context.Context) (stored Storage, err error) {
	if stored.Size, stored.Free, err = s.store.Size(ctx); err != nil {
		return stored, err
	}
	stored.Oldest, err = s.store.OldestEvent(ctx)
	return stored, err
}
