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

type retentionStore interface {
	// EventProjects returns the names of all projects that the stream has or had events of.
	EventProjects(ctx context.Context) ([]string, error)
	ExpiredEvents(ctx context.Context, e domain.Expired, limit int) (ids []int64, err error)
	RemoveEvents(ctx context.Context, ids []int64) error
	// Upgrade moves at most limit rows of an earlier version's database, and returns 0 when that is over.
	Upgrade(ctx context.Context, limit int) (moved int, err error)
	UpgradeLeft(ctx context.Context) (rows int64, err error)
	// OldestEvent returns when the oldest event was received, zero while there is none.
	OldestEvent(ctx context.Context) (received time.Time, err error)
	// Size returns how many bytes the database takes on the disk, and how many of them are free to be used again.
	Size(ctx context.Context) (size, free int64, err error)
}

const (
	// keptOfEach is how many events of each project are kept, however old they are.
	keptOfEach = 500
	// minRetentionPause and maxRetentionPause bound the time between two searches for old events, which is a hundredth of the time
	// that events are kept.
	minRetentionPause = time.Second
	maxRetentionPause = 10 * time.Minute
	// progressInterval is how often the log says how far an upgrade is.
	progressInterval = 10 * time.Second
)

// Retention removes old events, and moves what an earlier version stored to where it belongs now, in steps so small that nobody
// waits for them.
type Retention struct {
	store  retentionStore
	stays  stayStore
	events *Events
	bot    BotRunner
	log    *slog.Logger
	keep   time.Duration // 0: forever
	duties Duties
}

// Run works until ctx ends. It returns an error when the store failed; nothing is lost when it is run again.
func (s *Retention) Run(ctx context.Context) error {
	if err := s.upgrade(ctx); err != nil {
		return unlessEnded(ctx, err)
	}
	if s.keep == 0 {
		<-ctx.Done()
		return nil
	}
	for supervise.Sleep(ctx, min(max(s.keep/100, minRetentionPause), maxRetentionPause)) {
		duty, ours := dutyOf(s.duties, domain.DutyRetention)
		if !ours {
			if err := s.events.forgetRemoved(ctx, clock.Now().Add(-s.keep)); err != nil {
				return unlessEnded(ctx, err)
			}
			continue
		}
		removed, err := s.RemoveExpired(domain.WithDuty(ctx, duty))
		err = unlessLost(err)
		if removed > 0 {
			s.log.InfoContext(ctx, "old events were removed", "events", removed)
		}
		if err != nil {
			return unlessEnded(ctx, err)
		}
	}
	return nil
}

// unlessEnded returns err, nil if ctx has ended.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// RemoveExpired removes the events that are old now and returns their number. Events that the bot has not posted, or that stays
// do not account for, are kept until they are.
func (s *Retention) RemoveExpired(ctx context.Context) (removed int, err error) {
	needed, err := s.needed(ctx)
	if err != nil {
		return 0, err
	}
	projects, err := s.store.EventProjects(ctx)
	if err != nil {
		return 0, err
	}
	steps := newSteps(4)
	for _, project := range projects {
		for {
			now := clock.Now()
			e := domain.Expired{Project: project, Before: now.Add(-s.keep), Now: now, Keep: keptOfEach, Needed: needed}
			ids, err := s.store.ExpiredEvents(ctx, e, steps.size)
			if err != nil {
				return removed, err
			}
			if len(ids) == 0 {
				break
			}
			err = steps.do(ctx, func() error { return s.store.RemoveEvents(ctx, ids) })
			if err != nil {
				return removed, err
			}
			s.events.forget(ids)
			removed += len(ids)
		}
	}
	return removed, ctx.Err()
}

// Stored is how much the store holds.
type Stored struct {
	Size, Free int64     // in bytes: of the database on the disk, and what of it can be reused
	Oldest     time.Time // when the oldest event was received, zero while there is none
}

// Stored returns how much the store holds.
func (s *Retention) Stored(ctx context.Context) (stored Stored, err error) {
	if stored.Size, stored.Free, err = s.store.Size(ctx); err != nil {
		return stored, err
	}
	stored.Oldest, err = s.store.OldestEvent(ctx)
	return stored, err
}

// needed returns the first id that cannot be removed yet.
func (s *Retention) needed(ctx context.Context) (int64, error) {
	counted, err := s.stays.StaysUpTo(ctx)
	if err != nil {
		return 0, err
	}
	posted, err := s.bot.Posted(ctx)
	return min(counted, posted, math.MaxInt64-1) + 1, err
}

// upgrade moves what an earlier version stored, and logs its progress.
func (s *Retention) upgrade(ctx context.Context) error {
	began, steps := time.Now(), newSteps(1)
	var said time.Time
	for total := int64(0); ; {
		if time.Since(said) >= progressInterval {
			said = time.Now()
			left, err := s.store.UpgradeLeft(ctx)
			if err != nil {
				return err
			}
			if left > 0 {
				total = max(total, left)
				s.log.InfoContext(ctx, "the database of an earlier version is being converted; everything works in the meantime",
					"percent", 100*(total-left)/total, "rows_left", left)
			}
		}
		var moved int
		err := steps.do(ctx, func() (err error) {
			moved, err = s.store.Upgrade(ctx, steps.size)
			return err
		})
		if err != nil {
			return err
		}
		if moved == 0 {
			if total > 0 {
				s.log.InfoContext(ctx, "the database is converted; switchyard backup, or VACUUM while the gateway is stopped, shrinks it",
					"took", time.Since(began).Round(time.Second))
			}
			return nil
		}
	}
}
