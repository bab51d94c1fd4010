package store

import (
	"cmp"
	"context"
	"slices"
	"time"

	"switchyard/internal/domain"
)

// StaysUpToKey is the key of the id of the last event that the stored stays cover.
const StaysUpToKey = "stays_up_to"

// StaysUpTo returns the id of the last event that the stored stays cover, 0 if there are none.
func (db *Tables) StaysUpTo(ctx context.Context) (id int64, err error) {
	err = db.engine.Read.QueryRowContext(ctx, "SELECT COALESCE(MAX(CAST(value AS BIGINT)), 0) FROM state WHERE key = $1", StaysUpToKey).Scan(&id)
	return id, db.Translate(err)
}

const stayColumns = "number, stage, from_ms, to_ms, next_stage, shown, blocked_ms, blocked_since_ms, merge_failed_since_ms"

const (
	newStays = "SELECT project, story_id, " + stayColumns + " FROM stays WHERE "

	newOfProject = "project = $1"
	newOfStory   = newOfProject + " AND story_id = $2"
)

// DropStay removes a stay; SaveStay stores one, replacing it.
const (
	DropStay = "DELETE FROM stays WHERE project = $1 AND story_id = $2 AND number = $3"
	SaveStay = "INSERT INTO stays (project, story_id, " + stayColumns + ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)" +
		" ON CONFLICT (project, story_id, number) DO UPDATE SET stage = excluded.stage, from_ms = excluded.from_ms, to_ms = excluded.to_ms," +
		" next_stage = excluded.next_stage, shown = excluded.shown, blocked_ms = excluded.blocked_ms," +
		" blocked_since_ms = excluded.blocked_since_ms, merge_failed_since_ms = excluded.merge_failed_since_ms"
)

// StayValues are the arguments of SaveStay from the third on.
func StayValues(s domain.Stay) []any {
	return []any{
		s.Number, s.Stage, ToMilli(s.From), ToMilli(s.To), s.Next, s.Shown, s.Blocked.Milliseconds(), ToMilli(s.BlockedSince),
		ToMilli(s.MergeFailedSince),
	}
}

// RecentStays returns the newest limit stays that ended at or after since, in the order of their ends.
func (db *Tables) RecentStays(ctx context.Context, since time.Time, limit int) ([]domain.Stay, error) {
	const newest = "to_ms >= $1 ORDER BY to_ms DESC LIMIT $2"
	ended, err := db.stays(ctx, newest, max(1, since.UnixMilli()), limit)
	return inOrder(ended, byEnd, limit), err
}

// ProjectStays returns the newest limit stays of a project that ended at or after since, in the order of their ends, followed by
// all current ones.
func (db *Tables) ProjectStays(ctx context.Context, project string, since time.Time, limit int) ([]domain.Stay, error) {
	ended, err := db.stays(ctx, newOfProject+endedStays, project, max(1, since.UnixMilli()), limit)
	if err != nil {
		return nil, err
	}
	lasting, err := db.LastingStays(ctx, project)
	return append(inOrder(ended, byEnd, limit), lasting...), err
}

// LastingStays returns the current stays of a project.
func (db *Tables) LastingStays(ctx context.Context, project string) ([]domain.Stay, error) {
	return db.stays(ctx, newOfProject+lastingStays, project)
}

// AllLastingStays returns at most limit current stays of all projects, in no particular order.
func (db *Tables) AllLastingStays(ctx context.Context, limit int) ([]domain.Stay, error) {
	const lasting = "to_ms = 0 LIMIT $1"
	stays, err := db.stays(ctx, lasting, limit)
	return stays[:min(len(stays), limit)], err
}

// The "+" keeps SQLite from using the index on to_ms, which covers the stays of all projects.
const (
	endedStays   = " AND +to_ms >= $2 ORDER BY +to_ms DESC LIMIT $3"
	lastingStays = " AND +to_ms = 0"
)

// Stays returns the last limit stays of a story in order.
func (db *Tables) Stays(ctx context.Context, project, storyID string, limit int) ([]domain.Stay, error) {
	const newest = " ORDER BY number DESC LIMIT $3"
	stays, err := db.stays(ctx, newOfStory+newest, project, storyID, limit)
	return inOrder(stays, func(a, b domain.Stay) int { return cmp.Compare(a.Number, b.Number) }, limit), err
}

func byEnd(a, b domain.Stay) int { return a.To.Compare(b.To) }

// inOrder sorts stays and returns the last limit ones.
func inOrder(stays []domain.Stay, order func(a, b domain.Stay) int, limit int) []domain.Stay {
	slices.SortStableFunc(stays, order)
	return stays[max(0, len(stays)-limit):]
}

// stays returns the stays that match a condition.
func (db *Tables) stays(ctx context.Context, condition string, args ...any) (stays []domain.Stay, err error) {
	rows, err := db.engine.Read.QueryContext(ctx, newStays+condition, args...)
	if err != nil {
		return nil, db.Translate(err)
	}
	defer rows.Close()
	for rows.Next() {
		var s domain.Stay
		var blocked int64
		err := rows.Scan(&s.Project, &s.StoryID, &s.Number, &s.Stage, (*Milli)(&s.From), (*Milli)(&s.To), &s.Next, &s.Shown,
			&blocked, (*Milli)(&s.BlockedSince), (*Milli)(&s.MergeFailedSince))
		if err != nil {
			return nil, db.Translate(err)
		}
		s.Blocked = time.Duration(blocked) * time.Millisecond
		stays = append(stays, s)
	}
	return stays, db.Translate(rows.Err())
}
