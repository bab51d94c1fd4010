package store

import (
	"context"

	"switchyard/internal/domain"
)

// FeedCursors returns the reading positions for every URL that the project has ever had, in no particular order.
func (db events) FeedCursors(ctx context.Context, project string) ([]domain.FeedCursor, error) {
	rows, err := db.engine.Read.QueryContext(ctx,
		"SELECT project, url, since, instance, sequence FROM feed_cursors WHERE project = $1", project)
	if err != nil {
		return nil, db.Translate(err)
	}
	defer rows.Close()
	var cursors []domain.FeedCursor
	for rows.Next() {
		var c domain.FeedCursor
		if err := rows.Scan(&c.Project, &c.URL, &c.Since, &c.Instance, &c.Sequence); err != nil {
			return nil, db.Translate(err)
		}
		cursors = append(cursors, c)
	}
	return cursors, db.Translate(rows.Err())
}
