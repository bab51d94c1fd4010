package sqlite

import (
	"context"

	"switchyard/internal/domain"
	"switchyard/internal/store"
)

// AppendEvents stores reads in order, the records of each with its new reading position, all in one transaction. It
// drops records that their project has or had already. No read is refused, since there is only one gateway.
func (db *DB) AppendEvents(ctx context.Context, reads []domain.FeedRead) (appended domain.Appended, err error) {
	err = db.writeEvents(ctx, 0, func(w writing) error {
		// The transaction holds the write lock from its beginning, so ids increase in the order of commits.
		if err := w.tx.QueryRowContext(w.ctx, lastEventID).Scan(&appended.Last); err != nil {
			return err
		}
		for _, read := range reads {
			c := read.Cursor
			for _, record := range read.Records {
				fresh, err := w.exec(addDigest, store.EventDigest(c.Project, record))
				if err != nil {
					return err
				}
				if !fresh {
					continue
				}
				e := domain.Event{
					ID:      appended.Last + int64(len(appended.Added)) + 1,
					Project: c.Project, ReceivedAt: read.ReceivedAt, Record: record,
				}
				if _, err := w.exec(addEvent, e.ID, e.Project, e.ReceivedAt.UnixMilli(), string(e.JSON)); err != nil {
					return err
				}
				appended.Added = append(appended.Added, e)
			}
			if _, err := w.exec(moveCursor, c.Project, c.URL, c.Since, c.Instance, c.Sequence); err != nil {
				return err
			}
		}
		appended.Visits, err = changeVisits(w.ctx, w.tx, store.EventKeys(appended.Added),
			func(b *domain.VisitBook) { b.Add(appended.Added...) })
		if err != nil {
			return err
		}
		return w.index(appended.Added)
	})
	if err != nil {
		return domain.Appended{}, err
	}
	return appended, nil
}

const lastEventID = "SELECT COALESCE(MAX(id), 0) FROM events"

// LastEventID returns the greatest id in the merged stream, 0 if it is empty.
func (db *DB) LastEventID(ctx context.Context) (id int64, err error) {
	err = db.read.QueryRowContext(ctx, lastEventID).Scan(&id)
	return id, db.Translate(err)
}

// Size returns the size of the database on disk, and how much of it is free for reuse, in bytes.
func (db *DB) Size(ctx context.Context) (size, free int64, err error) {
	var pages, freePages, pageSize int64
	err = db.read.QueryRowContext(ctx, `SELECT page_count, freelist_count, page_size
		FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()`).Scan(&pages, &freePages, &pageSize)
	return pages * pageSize, freePages * pageSize, db.Translate(err)
}
