package sqlite

import (
	"context"

	"switchyard/internal/domain"
	"switchyard/internal/store"
)

// UpgradeLeft returns how many rows of an earlier version's database have yet to be moved.
func (db *DB) UpgradeLeft(ctx context.Context) (rows int64, err error) {
	if !db.upgrading.Load() {
		return 0, nil
	}
	err = db.searches.QueryRowContext(ctx, `SELECT (SELECT COUNT(*) FROM old_events) + (SELECT COUNT(*) FROM old_stories)
		+ (SELECT COUNT(*) FROM old_stays)`).Scan(&rows)
	return rows, db.Translate(err)
}

// Upgrade moves at most limit rows of an earlier version's database and returns their number, 0 if there are none left. Meanwhile
// everything can be read and written. It can be interrupted at any time.
func (db *DB) Upgrade(ctx context.Context, limit int) (moved int, err error) {
	if !db.upgrading.Load() {
		return 0, nil
	}
	err = db.writeEvents(ctx, func(w writing) error {
		for _, move := range []func(int) (int, error){w.moveEvents, w.moveStories, w.moveStays} {
			if moved, err = move(limit); moved > 0 || err != nil {
				return err
			}
		}
		return nil
	})
	if moved == 0 && err == nil {
		db.upgrading.Store(false)
	}
	return moved, err
}

// moveEvents moves the newest of the old events.
func (w writing) moveEvents(limit int) (moved int, err error) {
	var events []domain.Event
	err = eachOldEvent(w.ctx, w.tx, func(e domain.Event) bool {
		events = append(events, e)
		return true
	}, oldEvents+"id > $1 ORDER BY id DESC LIMIT $2", 0, limit)
	for _, e := range events {
		if err != nil {
			return 0, err
		}
		var project int64
		if project, err = w.projectID(e.Project); err == nil {
			if _, err = w.known(project, e.Record); err == nil {
				err = w.event(e, true)
			}
		}
	}
	if err == nil && len(events) > 0 {
		_, err = w.tx.ExecContext(w.ctx, "DELETE FROM old_events WHERE id >= $1", events[len(events)-1].ID)
	}
	return len(events), err
}

// moveStories moves the newest of the old stories. Names that are already stored are newer and kept.
func (w writing) moveStories(limit int) (moved int, err error) {
	rows, err := w.tx.QueryContext(w.ctx, "SELECT rowid, project, story_id, story_name FROM old_stories ORDER BY rowid DESC LIMIT $1", limit)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	var stories []domain.StoryRef
	var last int64
	for rows.Next() {
		var s domain.StoryRef
		if err := rows.Scan(&last, &s.Project, &s.ID, &s.Name); err != nil {
			return 0, err
		}
		stories = append(stories, s)
	}
	if err := rows.Err(); err != nil || len(stories) == 0 {
		return 0, err
	}
	for _, s := range stories {
		if err := w.named(s, true); err != nil {
			return 0, err
		}
	}
	_, err = w.tx.ExecContext(w.ctx, "DELETE FROM old_stories WHERE rowid >= $1", last)
	return len(stories), err
}

// moveStays moves the first of the old stays.
func (w writing) moveStays(limit int) (moved int, err error) {
	last, err := store.SelectIDs(w.ctx, w.tx, "SELECT rowid FROM old_stays ORDER BY rowid LIMIT $1", limit)
	if err != nil || len(last) == 0 {
		return 0, err
	}
	stays, err := store.SelectStays(w.ctx, w.tx, store.OldStays+"rowid <= $1", last[len(last)-1])
	if err != nil {
		return 0, err
	}
	for _, s := range stays {
		if err := w.stay(s); err != nil {
			return 0, err
		}
	}
	_, err = w.tx.ExecContext(w.ctx, "DELETE FROM old_stays WHERE rowid <= $1", last[len(last)-1])
	return len(stays), err
}
