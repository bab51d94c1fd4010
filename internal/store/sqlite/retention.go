package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/store"
)

// EventProjects returns the names of all projects that the stream has or had events of, in no particular order.
func (db *DB) EventProjects(ctx context.Context) (names []string, err error) {
	rows, err := db.read.QueryContext(ctx, "SELECT name FROM event_projects")
	if err != nil {
		return nil, db.Translate(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, db.Translate(err)
		}
		names = append(names, name)
	}
	return names, db.Translate(rows.Err())
}

const (
	// firstKept selects the oldest of the newest $2 events of a project.
	firstKept = `SELECT id FROM events WHERE project_id = (SELECT id FROM event_projects WHERE name = $1)
		ORDER BY id DESC LIMIT 1 OFFSET $2 - 1`
	// oldest selects a project's events with ids below $2. Those received after $3 came while the clock was wrong.
	oldest = `SELECT id, received_at_ms FROM events WHERE project_id = (SELECT id FROM event_projects WHERE name = $1)
		AND id < $2 AND received_at_ms <= $3 ORDER BY id LIMIT $4`
)

// ExpiredEvents returns ids of events that e selects, the oldest first, at most limit. Events behind one that is to be kept
// wait for that, where the clock was set back between.
func (db *DB) ExpiredEvents(ctx context.Context, e domain.Expired, limit int) (ids []int64, err error) {
	err = snapshot(ctx, db.read, func(ctx context.Context, tx *sql.Tx) error {
		kept, err := selectIDs(ctx, tx, firstKept, e.Project, e.Keep)
		if err != nil || len(kept) == 0 {
			return err
		}
		rows, err := tx.QueryContext(ctx, oldest, e.Project, min(kept[0], e.Needed), e.Now.UnixMilli(), limit)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id int64
			var received time.Time
			if err := rows.Scan(&id, (*store.Milli)(&received)); err != nil {
				return err
			}
			if !received.Before(e.Before) {
				return nil
			}
			ids = append(ids, id)
		}
		return rows.Err()
	})
	return ids, db.Translate(err)
}

// RemoveEvents removes events, and the texts that no other event has. What is stored already stays known by its digest, and
// stories by their newest names.
func (db *DB) RemoveEvents(ctx context.Context, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	return db.Translate(db.writeEvents(ctx, func(w writing) error {
		texts, err := selectIDs(w.ctx, w.tx, fmt.Sprintf("SELECT DISTINCT text_id FROM events WHERE id IN (%s) AND text_id <> 0", list(ids)))
		if err != nil {
			return err
		}
		if _, err := w.tx.ExecContext(w.ctx, fmt.Sprintf("DELETE FROM events WHERE id IN (%s)", list(ids))); err != nil {
			return err
		}
		return w.removeTexts(texts)
	}))
}

// removeTexts removes those of these texts that nothing refers to.
func (w writing) removeTexts(ids []int64) error {
	type text struct {
		id, project int64
		eventText
	}
	var unused []text
	for _, id := range ids {
		t := text{id: id}
		err := w.use(w.unusedText).QueryRowContext(w.ctx, id).Scan(&t.project, &t.StoryID, &t.StoryName, &t.More)
		switch {
		case err == nil:
			unused = append(unused, t)
		case !isMissing(err):
			return err
		}
	}
	for _, t := range unused {
		if _, err := w.exec(w.removeText, t.id); err != nil {
			return err
		}
	}
	for _, t := range unused {
		if _, err := w.exec(w.removeWords, t.id, indexed(t.project, t.eventText)); err != nil {
			return err
		}
	}
	return nil
}

// OldestEvent returns when the oldest event was received, zero while there is none.
func (db *DB) OldestEvent(ctx context.Context) (received time.Time, err error) {
	statement := "SELECT received_at_ms FROM events WHERE id = (SELECT MIN(id) FROM events)"
	if db.upgrading.Load() {
		statement = `SELECT received_at_ms FROM (SELECT id, received_at_ms FROM old_events WHERE id = (SELECT MIN(id) FROM old_events)
			UNION ALL SELECT id, received_at_ms FROM events WHERE id = (SELECT MIN(id) FROM events)) AS oldest ORDER BY id LIMIT 1`
	}
	err = db.read.QueryRowContext(ctx, statement).Scan((*store.Milli)(&received))
	if isMissing(err) {
		return time.Time{}, nil
	}
	return received, db.Translate(err)
}

// Size returns how many bytes the database takes on the disk, and how many of them are free to be used again.
func (db *DB) Size(ctx context.Context) (size, free int64, err error) {
	var pages, freePages, pageSize int64
	err = db.read.QueryRowContext(ctx, `SELECT page_count, freelist_count, page_size
		FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()`).Scan(&pages, &freePages, &pageSize)
	return pages * pageSize, freePages * pageSize, db.Translate(err)
}
