package store

import (
	"context"
	"database/sql"

	"switchyard/internal/domain"
)

// Acknowledgements returns all that are stored, in no particular order.
func (db *DB) Acknowledgements(ctx context.Context) ([]domain.Acknowledgement, error) {
	rows, err := db.read.QueryContext(ctx, "SELECT key, project, text, by_whom, at_ms, until_ms, since_ms FROM acknowledgements")
	if err != nil {
		return nil, translate(err)
	}
	defer rows.Close()
	var all []domain.Acknowledgement
	for rows.Next() {
		var a domain.Acknowledgement
		if err := rows.Scan(&a.Key, &a.Project, &a.Text, &a.By, (*milli)(&a.At), (*milli)(&a.Until), (*milli)(&a.Since)); err != nil {
			return nil, translate(err)
		}
		all = append(all, a)
	}
	return all, translate(rows.Err())
}

// Acknowledge stores an acknowledgement in place of an earlier one of the same key.
func (db *DB) Acknowledge(ctx context.Context, a domain.Acknowledgement) error {
	_, err := db.exec(context.WithoutCancel(ctx), `INSERT INTO acknowledgements (key, project, text, by_whom, at_ms, until_ms, since_ms)
		VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (key) DO UPDATE SET project = excluded.project, text = excluded.text,
		by_whom = excluded.by_whom, at_ms = excluded.at_ms, until_ms = excluded.until_ms,
		since_ms = excluded.since_ms`,
		a.Key, a.Project, a.Text, a.By, toMilli(a.At), toMilli(a.Until), toMilli(a.Since))
	return err
}

// EndAcknowledgements removes these acknowledgements. Those that are gone are passed over; one that was made again since
// stays.
func (db *DB) EndAcknowledgements(ctx context.Context, ended ...domain.Acknowledgement) error {
	return db.tx(context.WithoutCancel(ctx), func(tx *sql.Tx) error {
		for _, a := range ended {
			_, err := tx.ExecContext(ctx, "DELETE FROM acknowledgements WHERE key = $1 AND at_ms = $2", a.Key, toMilli(a.At))
			if err != nil {
				return err
			}
		}
		return nil
	})
}
