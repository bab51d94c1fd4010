package postgres

import (
	"context"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"

	"switchyard/internal/domain"
	"switchyard/internal/store"
)

// SaveStays stores changes of stays and stories, and the event up to which they go.
func (db *DB) SaveStays(ctx context.Context, c domain.StayChanges) error {
	return db.write(ctx, c.Token, func(tx pgx.Tx) error {
		var batch pgx.Batch
		batch.Queue(lockStream)
		if c.ForgetMoves {
			batch.Queue("DELETE FROM moves")
		}
		queueNames(&batch, c.Stories)
		for _, s := range c.Drop {
			batch.Queue(store.DropStay, Text(s.Project), Key(s.StoryID), s.Number)
		}
		for _, s := range c.Save {
			s.Stage, s.Next = Text(s.Stage), Text(s.Next)
			batch.Queue(store.SaveStay, slices.Concat([]any{Text(s.Project), Key(s.StoryID)}, store.StayValues(s))...)
		}
		batch.Queue(store.PutState, store.StaysUpToKey, strconv.FormatInt(c.UpTo, 10))
		return tx.SendBatch(ctx, &batch).Close()
	})
}
