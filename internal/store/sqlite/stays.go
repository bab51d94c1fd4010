package sqlite

import (
	"context"

	"switchyard/internal/domain"
	"switchyard/internal/store"
)

// SaveStays stores changes of stays and stories, and the event up to which they go.
func (db *DB) SaveStays(ctx context.Context, c domain.StayChanges) error {
	return db.writeEvents(ctx, func(w writing) error {
		if c.ForgetMoves {
			if _, err := w.tx.ExecContext(w.ctx, "DELETE FROM moves"); err != nil {
				return err
			}
		}
		for _, s := range c.Stories {
			if err := w.named(s); err != nil {
				return err
			}
		}
		for _, s := range append(c.Drop[:len(c.Drop):len(c.Drop)], c.Save...) {
			if err := w.dropStay(s); err != nil {
				return err
			}
		}
		for _, s := range c.Save {
			if err := w.stay(s); err != nil {
				return err
			}
		}
		_, err := w.tx.ExecContext(w.ctx, store.PutState, store.StaysUpToKey, c.UpTo)
		return err
	})
}

// dropStay removes a stay, even if its story had another name when it was stored.
func (w writing) dropStay(s domain.Stay) error {
	project, err := w.projectID(s.Project)
	if err != nil {
		return err
	}
	_, err = w.exec(w.removeStay, project, s.StoryID, s.Number)
	return err
}

// stay stores a new stay.
func (w writing) stay(s domain.Stay) error {
	project, err := w.projectID(s.Project)
	if err != nil {
		return err
	}
	text, err := w.id(w.storyText, project, s.StoryID)
	if store.IsMissing(err) {
		text, err = w.textID(project, store.EventText{StoryID: s.StoryID})
	}
	if err != nil {
		return err
	}
	_, err = w.exec(w.addStay, text, s.Number, s.Stage, store.ToMilli(s.From), store.ToMilli(s.To), s.Next, s.Shown,
		s.Blocked.Milliseconds(), store.ToMilli(s.BlockedSince), store.ToMilli(s.MergeFailedSince))
	return err
}
