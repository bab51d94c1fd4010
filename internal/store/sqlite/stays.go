package sqlite

import (
	"context"

	"switchyard/internal/domain"
	"switchyard/internal/store"
)

// SaveStays stores changes of stays and stories, and the event up to which they go.
func (db *DB) SaveStays(ctx context.Context, c domain.StayChanges) error {
	return db.writeEvents(ctx, c.Token, func(w writing) error {
		if c.ForgetMoves {
			if _, err := w.exec("DELETE FROM moves"); err != nil {
				return err
			}
		}
		if err := w.name(c.Stories); err != nil {
			return err
		}
		for _, s := range c.Drop {
			if _, err := w.exec(store.DropStay, s.Project, s.StoryID, s.Number); err != nil {
				return err
			}
		}
		for _, s := range c.Save {
			if _, err := w.exec(store.SaveStay, append([]any{s.Project, s.StoryID}, store.StayValues(s)...)...); err != nil {
				return err
			}
		}
		_, err := w.exec(store.PutState, store.StaysUpToKey, c.UpTo)
		return err
	})
}
