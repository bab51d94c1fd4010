package sqlite

import (
	"context"

	"switchyard/internal/domain"
)

// AppendEvents stores reads in order, the records of each with its new reading position, all in one transaction. It drops records
// that their project has or had already. No read is refused, since there is only one gateway.
func (db *DB) AppendEvents(ctx context.Context, reads []domain.FeedRead) (appended domain.Appended, err error) {
	err = db.writeEvents(ctx, func(w writing) error {
		// The transaction holds the write lock from its beginning, so ids increase in the order of commits.
		if err := w.tx.QueryRowContext(w.ctx, lastEventID).Scan(&appended.Last); err != nil {
			return err
		}
		for _, read := range reads {
			c := read.Cursor
			project, err := w.projectID(c.Project)
			if err != nil {
				return err
			}
			for _, record := range read.Records {
				known, err := w.known(project, record)
				if err != nil {
					return err
				}
				if known {
					continue
				}
				e := domain.Event{ID: appended.Last + int64(len(appended.Added)) + 1, Project: c.Project, ReceivedAt: read.ReceivedAt, Record: record}
				if err := w.event(e); err != nil {
					return err
				}
				appended.Added = append(appended.Added, e)
			}
			if _, err := w.exec(w.moveCursor, c.Project, c.URL, c.Since, c.Instance, c.Sequence); err != nil {
				return err
			}
		}
		return nil
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
