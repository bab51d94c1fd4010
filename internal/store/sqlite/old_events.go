package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/store"
)

// Data from earlier versions stays in old_events, old_stories and old_stays until Upgrade has moved it. Old events have smaller ids
// than all others.

// findOld checks whether there is anything to move.
func (db *DB) findOld(ctx context.Context) error {
	var found bool
	err := db.read.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM old_events) OR EXISTS (SELECT 1 FROM old_stories) OR EXISTS (SELECT 1 FROM old_stays)").Scan(&found)
	db.upgrading.Store(found)
	return err
}

const oldEvents = "SELECT id, project, type, timestamp_ms, received_at_ms, record FROM old_events WHERE "

// earlier reads data that Upgrade has not moved yet.
type earlier struct{}

// Events calls take with the first limit old events that match q.
func (earlier) Events(ctx context.Context, tx *sql.Tx, q domain.EventQuery, limit int, take func(domain.Event) bool) error {
	after, before, order := store.Bounds(q)
	conditions, args := []string{"id > $1", "id < $2"}, []any{after, before}
	where := func(condition string, arg any) {
		args = append(args, arg)
		conditions = append(conditions, fmt.Sprintf(condition, len(args)))
	}
	if q.Project != "" {
		where("project = $%d", q.Project)
	}
	if q.Type != "" {
		where("type = $%d", q.Type)
	}
	if q.Text != "" {
		where(`words LIKE $%d ESCAPE '\'`, store.Pattern(strings.ToLower(q.Text)))
	}
	args = append(args, limit)
	return eachOldEvent(ctx, tx, take, fmt.Sprintf("%s %s ORDER BY %s LIMIT $%d", oldEvents, strings.Join(conditions, " AND "), order, len(args)), args...)
}

// StoryEvents calls take with the newest limit old events of a story.
func (earlier) StoryEvents(ctx context.Context, tx *sql.Tx, project, id string, limit int, take func(domain.Event) bool) error {
	return eachOldEvent(ctx, tx, take, oldStoryEvents, project, id, limit)
}

const oldStoryEvents = oldEvents + "project = $1 AND json_extract(record, '$.story_id') = $2 ORDER BY id DESC LIMIT $3"

// eachOldEvent calls take with each event that a statement selects, until take returns false.
func eachOldEvent(ctx context.Context, tx *sql.Tx, take func(domain.Event) bool, statement string, args ...any) error {
	return store.EachRow(ctx, tx, func(rows *sql.Rows) (e domain.Event, err error) {
		var stamp, received int64
		err = rows.Scan(&e.ID, &e.Project, &e.Type, &stamp, &received, (*[]byte)(&e.JSON))
		e.At, e.ReceivedAt = time.UnixMilli(stamp), time.UnixMilli(received)
		return e, err
	}, take, statement, args...)
}

// knownBefore reports whether a record is among the old events.
func (db *DB) knownBefore(w writing, project string, r domain.Record) (known bool, err error) {
	if !db.upgrading.Load() {
		return false, nil
	}
	digest := sha256.Sum256(r.JSON)
	err = w.tx.QueryRowContext(w.ctx, "SELECT EXISTS (SELECT 1 FROM old_events WHERE project = $1 AND digest = $2)",
		project, digest[:16]).Scan(&known)
	return known, err
}

// StoryName is store.Tables.StoryName, with the old stories.
func (db *DB) StoryName(ctx context.Context, project, id string) (name string, err error) {
	name, err = db.Tables.StoryName(ctx, project, id)
	if domain.CodeOf(err) == domain.NotFound && db.upgrading.Load() {
		err = db.Translate(db.read.QueryRowContext(ctx, "SELECT story_name FROM old_stories WHERE project = $1 AND story_id = $2", project, id).Scan(&name))
	}
	return name, err
}

// FindStories adds old stories to found, like store.Tables.FindStories.
func (earlier) FindStories(ctx context.Context, tx *sql.Tx, words []string, limit int, found []domain.StoryRef) ([]domain.StoryRef, error) {
	var conditions []string
	var args []any
	for i, word := range words {
		conditions = append(conditions, fmt.Sprintf("instr(folded, $%d) > 0", i+1))
		args = append(args, word)
	}
	rows, err := tx.QueryContext(ctx, "SELECT project, story_id, story_name FROM old_stories WHERE "+strings.Join(conditions, " AND ")+
		" ORDER BY rowid DESC", args...)
	if err != nil {
		return found, err
	}
	defer rows.Close()
	known := map[[2]string]bool{}
	for _, s := range found {
		known[[2]string{s.Project, s.ID}] = true
	}
	for rows.Next() && len(found) < limit {
		var s domain.StoryRef
		if err := rows.Scan(&s.Project, &s.ID, &s.Name); err != nil {
			return found, err
		}
		if !known[[2]string{s.Project, s.ID}] {
			found = append(found, s)
		}
	}
	return found, rows.Err()
}

// OldestEvent returns when the oldest event was received, zero if there is none.
func (db *DB) OldestEvent(ctx context.Context) (received time.Time, err error) {
	if db.upgrading.Load() {
		err = db.read.QueryRowContext(ctx, "SELECT received_at_ms FROM old_events WHERE id = (SELECT MIN(id) FROM old_events)").Scan((*store.Milli)(&received))
		if !store.IsMissing(err) {
			return received, db.Translate(err)
		}
	}
	return db.Tables.OldestEvent(ctx)
}
