package sqlite

import (
	"context"
	"fmt"

	"switchyard/internal/store"
)

// RemoveEvents removes events, and texts that no other event has. It keeps the events' digests, so that they are not stored again,
// and the stories' newest names.
func (db *DB) RemoveEvents(ctx context.Context, _ int64, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	removed := 0
	err := db.writeEvents(ctx, func(w writing) error {
		texts, err := store.SelectIDs(w.ctx, w.tx, fmt.Sprintf("SELECT DISTINCT text_id FROM events WHERE id IN (%s) AND text_id <> 0", store.List(ids)))
		if err != nil {
			return err
		}
		if _, err := w.tx.ExecContext(w.ctx, fmt.Sprintf("DELETE FROM events WHERE id IN (%s)", store.List(ids))); err != nil {
			return err
		}
		removed, err = w.removeTexts(texts)
		return err
	})
	if err == nil && removed > 0 { // in a separate transaction, so that other writes fit in between
		err = db.writeEvents(ctx, func(w writing) error { return w.merge(removed) })
	}
	return db.Translate(err)
}

// removeTexts removes those of the texts that nothing refers to, and returns their number. The caller must then merge the index of
// words.
func (w writing) removeTexts(ids []int64) (removed int, err error) {
	type text struct {
		id, project int64
		store.EventText
	}
	var unused []text
	for _, id := range ids {
		t := text{id: id}
		err := w.use(w.unusedText).QueryRowContext(w.ctx, id).Scan(&t.project, &t.StoryID, &t.StoryName, &t.More)
		switch {
		case err == nil:
			unused = append(unused, t)
		case !store.IsMissing(err):
			return 0, err
		}
	}
	for _, t := range unused {
		if _, err := w.exec(w.removeText, t.id); err != nil {
			return 0, err
		}
	}
	for _, t := range unused {
		if _, err := w.exec(w.removeWords, t.id, indexed(t.project, t.EventText)); err != nil {
			return 0, err
		}
	}
	return len(unused), nil
}

// Size returns the size of the database on disk, and how much of it is free for reuse, in bytes.
func (db *DB) Size(ctx context.Context) (size, free int64, err error) {
	var pages, freePages, pageSize int64
	err = db.read.QueryRowContext(ctx, `SELECT page_count, freelist_count, page_size
		FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()`).Scan(&pages, &freePages, &pageSize)
	return pages * pageSize, freePages * pageSize, db.Translate(err)
}
