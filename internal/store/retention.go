package store

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"switchyard/internal/domain"
)

// EventProjects returns the names of all projects that the stream has or had events of, in no particular order: those
// with a reading position.
func (db events) EventProjects(ctx context.Context) ([]string, error) {
	return selectAll(ctx, db.conn, ScanOne[string], "SELECT DISTINCT project FROM feed_cursors")
}

const (
	// firstKept selects the oldest of the newest $2 events of a project.
	firstKept = "SELECT id FROM events WHERE project = $1 ORDER BY id DESC LIMIT 1 OFFSET $2 - 1"
	// oldest selects a project's events with ids below $2. An event received after $3 was received while the clock was
	// wrong.
	oldest = `SELECT id, received_at_ms FROM events WHERE project = $1 AND id < $2 AND received_at_ms <= $3
		ORDER BY id LIMIT $4`
)

// ExpiredEvents returns the ids of the first limit events that e selects, oldest first. If the clock was set back,
// expired events that follow one to be kept wait until that one has expired as well.
func (db events) ExpiredEvents(ctx context.Context, e domain.ExpiryQuery, limit int) (ids []int64, err error) {
	err = db.Snapshot(ctx, func(ctx context.Context, tx *sql.Tx) error {
		var kept int64
		if err := tx.QueryRowContext(ctx, firstKept, e.Project, e.Keep).Scan(&kept); err != nil {
			return unlessMissing(err)
		}
		return EachRow(ctx, tx, func(row Row) (found domain.Event, err error) {
			err = row.Scan(&found.ID, (*Milli)(&found.ReceivedAt))
			return found, err
		}, func(found domain.Event) (more bool) {
			if more = found.ReceivedAt.Before(e.Before); more {
				ids = append(ids, found.ID)
			}
			return more
		}, oldest, e.Project, min(kept, e.Needed), e.Now.UnixMilli(), limit)
	})
	return ids, db.Translate(err)
}

// OldestEvent returns when the oldest event was received, zero if there is none.
func (db events) OldestEvent(ctx context.Context) (received time.Time, err error) {
	const first = "SELECT received_at_ms FROM events WHERE id = (SELECT MIN(id) FROM events)"
	err = db.engine.Read.QueryRowContext(ctx, first).Scan((*Milli)(&received))
	return received, db.Translate(unlessMissing(err))
}

// RemoveEvents removes events, under the leader's fencing token. It keeps their digests, so that they are not stored
// again, and the stories' newest names.
func (db events) RemoveEvents(ctx context.Context, token int64, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	return db.LeaderTx(ctx, token, nil, func(ctx context.Context, tx *sql.Tx) error {
		texts, err := AllRows(ctx, tx, ScanOne[int64], "DELETE FROM events WHERE id IN ("+List(ids)+") RETURNING text")
		if err != nil || len(texts) == 0 {
			return err
		}
		if err := Exec(ctx, tx, db.sql.lock); err != nil { // others may be adding events with these texts
			return err
		}
		slices.Sort(texts)
		return Exec(ctx, tx, "DELETE FROM texts WHERE id IN ("+List(slices.Compact(texts))+`)
			AND (SELECT MIN(id) FROM events WHERE events.text = texts.id) IS NULL`)
	})
}

// RemovePast removes everything except events that is stored about a project's past, under the leader's fencing token.
// It keeps the names of stories.
func (db events) RemovePast(ctx context.Context, token int64, project string) error {
	var steps []Step
	for _, table := range []string{
		"stage_visits", "visit_counts", "feed_cursors", "histories", "story_changes", "reviews", "questions",
		"acknowledgements", "usage_calls", "usage_spans", "usage_sums", "usage_sessions",
	} {
		steps = append(steps, Do("DELETE FROM "+table+" WHERE project = $1", project))
	}
	return db.LeaderTx(ctx, token, topics{domain.TopicVisits, domain.TopicQuestions, domain.TopicUsage}, steps...)
}
