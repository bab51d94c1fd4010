package sqlite

import (
	"context"
	"database/sql"

	"switchyard/internal/domain"
	"switchyard/internal/store"
)

var visitSQL = store.NewVisitSQL("json_each($1) AS each")

// ObserveVisits applies observations of projects to the visits of their stories, in one transaction. It returns the
// changed ones, and the projects of which newer events contradict a sighting.
func (db *DB) ObserveVisits(ctx context.Context, _ int64, o ...domain.Observation) (
	changed []domain.Visit, contradicted []string, err error,
) {
	keys, named := store.Seen(o)
	err = db.writeEvents(ctx, 0, func(w writing) (err error) {
		changed, err = changeVisits(w.ctx, w.tx, keys, func(b *domain.VisitBook) { contradicted = b.Observe(o) })
		if err != nil || len(changed) == 0 {
			return err
		}
		return w.name(named)
	})
	return changed, contradicted, err
}

// changeVisits reads the newest visits of stories, and stores and returns what change makes of them.
func changeVisits(
	ctx context.Context, tx *sql.Tx, keys []domain.StoryKey, change func(*domain.VisitBook),
) (changed []domain.Visit, err error) {
	if len(keys) == 0 {
		return nil, nil
	}
	stories, projects := store.VisitKeys(keys)
	newest, err := store.AllRows(ctx, tx, store.ScanVisit, visitSQL.Newest, stories)
	if err != nil {
		return nil, err
	}
	counts, err := store.AllRows(ctx, tx, store.ScanVisitCounts, visitSQL.Counts, projects)
	if err != nil {
		return nil, err
	}
	book := domain.NewVisitBook(newest, counts)
	change(book)
	changed, visits, counted := store.VisitRows(book)
	for statement, rows := range map[string]string{visitSQL.Save: visits, visitSQL.SaveCounts: counted} {
		if rows == "" {
			continue
		}
		if _, err := tx.ExecContext(ctx, statement, rows); err != nil {
			return nil, err
		}
	}
	return changed, nil
}
