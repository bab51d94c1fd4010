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
	// Upgrade converts at most limit rows of an earlier version's database. It returns 0 when there are none left.
	Upgrade(ctx context.Context, limit int) (moved int, err error)
	UpgradeLeft(ctx context.Context) (rows int64, err error)
	// OldestEvent returns when the oldest event was received, zero if there is none.
	OldestEvent(ctx context.Context) (received time.Time, err error)
	// Size returns the size of the database on disk, and how much of it is free for reuse, in bytes.
	Size(ctx context.Context) (size, free int64, err error)
}

const (
	// keptOfEach is how many events of each project are kept regardless of their age.
	keptOfEach = 500
	// The time between two searches for old events is a hundredth of the time for which events are kept, between minRetentionPause
	// and maxRetentionPause.
	minRetentionPause = time.Second
	maxRetentionPause = 10 * time.Minute
	// progressInterval is how often the progress of an upgrade is logged.
	progressInterval = 10 * time.Second
)

// Retention removes old events and converts the database of an earlier version, in steps so small that other writes do not wait.
type Retention struct {
	store  retentionStore
	stays  stayStore
	events *Events
	bot    BotRunner
	log    *slog.Logger
	keep   time.Duration // 0: forever
	duties Duties
}

// Run works until ctx ends. It returns an error when the store failed; nothing is lost if it is run again.
func (s *Retention) Run(ctx context.Context) error {
	if err := s.upgrade(ctx); err != nil {
		return supervise.UnlessEnded(ctx, err)
	}
	if s.keep == 0 {
		<-ctx.Done()
		return nil
	}
	for supervise.Sleep(ctx, min(max(s.keep/100, minRetentionPause), maxRetentionPause)) {
		duty, ours := dutyOf(s.duties, domain.DutyRetention)
		if !ours {
			if err := s.events.forgetRemoved(ctx, clock.Now().Add(-s.keep)); err != nil {
				return supervise.UnlessEnded(ctx, err)
			}
			continue
		}
		removed, err := s.RemoveExpired(domain.WithDuty(ctx, duty))
		err = unlessLost(err)
		if removed > 0 {
			s.log.InfoContext(ctx, "removed old events", "events", removed)
		}
		if err != nil {
			return supervise.UnlessEnded(ctx, err)
		}
	}
	return nil
}

// RemoveExpired removes expired events and returns their number. It keeps events that the bot has not posted or stays do not cover
// yet.
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
	Size, Free int64     // of the database on disk, and how much of it can be reused, in bytes
	Oldest     time.Time // when the oldest event was received, zero if there is none
}

// Stored returns how much the store holds.
func (s *Retention) Stored(ctx context.Context) (stored Stored, err error) {
	if stored.Size, stored.Free, err = s.store.Size(ctx); err != nil {
		return stored, err
	}
	stored.Oldest, err = s.store.OldestEvent(ctx)
	return stored, err
}

// needed returns the first event id that must not be removed yet.
func (s *Retention) needed(ctx context.Context) (int64, error) {
	counted, err := s.stays.StaysUpTo(ctx)
	if err != nil {
		return 0, err
	}
	posted, err := s.bot.Posted(ctx)
	return min(counted, posted, math.MaxInt64-1) + 1, err
}

// upgrade converts the database of an earlier version and logs its progress.
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
				s.log.InfoContext(ctx, "converting the database of an earlier version; the gateway works in the meantime",
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
				s.log.InfoContext(ctx, "the database has been converted; switchyard backup, or VACUUM while the gateway is stopped, makes it smaller",
					"took", time.Since(began).Round(time.Second))
			}
			return nil
		}
	}
}
