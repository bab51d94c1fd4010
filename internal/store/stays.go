package store

import (
	"context"
	"time"

	"switchyard/internal/domain"
)

// staysUpTo is the key of the id of the last event that the stored stays account for.
const staysUpTo = "stays_up_to"

// SaveStays stores what became of stays and stories, and up to which event that goes.
func (db *DB) SaveStays(ctx context.Context, c domain.StayChanges) error {
	return db.writeEvents(ctx, func(w writing) error {
		ctx, tx := w.ctx, w.tx
		for _, s := range c.Drop {
			_, err := tx.ExecContext(ctx, "DELETE FROM stays WHERE project = $1 AND story_id = $2 AND number = $3", s.Project, s.StoryID, s.Number)
			if err != nil {
				return err
			}
		}
		save, err := tx.PrepareContext(ctx, `INSERT INTO stays (project, story_id, number, stage, from_ms, to_ms, next_stage, shown,
			blocked_ms, blocked_since_ms, merge_failed_since_ms) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
			ON CONFLICT (project, story_id, number) DO UPDATE SET stage = excluded.stage, from_ms = excluded.from_ms, to_ms = excluded.to_ms,
			next_stage = excluded.next_stage, shown = excluded.shown, blocked_ms = excluded.blocked_ms,
			blocked_since_ms = excluded.blocked_since_ms, merge_failed_since_ms = excluded.merge_failed_since_ms`)
		if err != nil {
			return err
		}
		defer save.Close()
		for _, s := range c.Save {
			_, err := save.ExecContext(ctx, s.Project, s.StoryID, s.Number, s.Stage, toMilli(s.From), toMilli(s.To), s.Next, s.Shown,
				s.Blocked.Milliseconds(), toMilli(s.BlockedSince), toMilli(s.MergeFailedSince))
			if err != nil {
				return err
			}
		}
		for _, s := range c.Stories {
			if err := w.named(s, false); err != nil {
				return err
			}
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO state (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
			staysUpTo, c.UpTo)
		return err
	})
}

// StaysUpTo returns the id of the last event that the stored stays account for, 0 before the first.
func (db *DB) StaysUpTo(ctx context.Context) (id int64, err error) {
	err = db.read.QueryRowContext(ctx, "SELECT COALESCE(MAX(CAST(value AS BIGINT)), 0) FROM state WHERE key = $1", staysUpTo).Scan(&id)
	return id, translate(err)
}

const stayColumns = "project, story_id, number, stage, from_ms, to_ms, next_stage, shown, blocked_ms, blocked_since_ms, merge_failed_since_ms"

// RecentStays returns the newest limit stays that ended since then, in the order of their ends, and after them all that last.
func (db *DB) RecentStays(ctx context.Context, since time.Time, limit int) ([]domain.Stay, error) {
	ended, err := db.stays(ctx, "SELECT "+stayColumns+" FROM (SELECT "+stayColumns+
		" FROM stays WHERE to_ms >= $1 ORDER BY to_ms DESC LIMIT $2) AS newest ORDER BY to_ms", max(1, since.UnixMilli()), limit)
	if err != nil {
		return nil, err
	}
	lasting, err := db.stays(ctx, "SELECT "+stayColumns+" FROM stays WHERE to_ms = 0")
	return append(ended, lasting...), err
}

// ProjectStays returns what RecentStays does, of one project.
func (db *DB) ProjectStays(ctx context.Context, project string, since time.Time, limit int) ([]domain.Stay, error) {
	ended, err := db.stays(ctx, "SELECT "+stayColumns+" FROM (SELECT "+stayColumns+
		" FROM stays WHERE project = $1 AND to_ms >= $2 ORDER BY to_ms DESC LIMIT $3) AS newest ORDER BY to_ms", project, max(1, since.UnixMilli()), limit)
	if err != nil {
		return nil, err
	}
	lasting, err := db.stays(ctx, "SELECT "+stayColumns+" FROM stays WHERE project = $1 AND to_ms = 0", project)
	return append(ended, lasting...), err
}

// Stays returns the last limit stays of a story, the first of them first.
func (db *DB) Stays(ctx context.Context, project, storyID string, limit int) ([]domain.Stay, error) {
	return db.stays(ctx, "SELECT "+stayColumns+" FROM (SELECT "+stayColumns+
		" FROM stays WHERE project = $1 AND story_id = $2 ORDER BY number DESC LIMIT $3) AS newest ORDER BY number", project, storyID, limit)
}

func (db *DB) stays(ctx context.Context, query string, args ...any) ([]domain.Stay, error) {
	rows, err := db.read.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, translate(err)
	}
	defer rows.Close()
	var stays []domain.Stay
	for rows.Next() {
		var s domain.Stay
		var blocked int64
		err := rows.Scan(&s.Project, &s.StoryID, &s.Number, &s.Stage, (*milli)(&s.From), (*milli)(&s.To), &s.Next, &s.Shown,
			&blocked, (*milli)(&s.BlockedSince), (*milli)(&s.MergeFailedSince))
		if err != nil {
			return nil, translate(err)
		}
		s.Blocked = time.Duration(blocked) * time.Millisecond
		stays = append(stays, s)
	}
	return stays, translate(rows.Err())
}
