package store

import (
	"context"

	"switchyard/internal/domain"
)

// Acknowledgements returns all stored acknowledgements, in no particular order.
func (db acknowledgements) Acknowledgements(ctx context.Context) ([]domain.Acknowledgement, error) {
	return selectAll(ctx, db.conn, func(row Row) (a domain.Acknowledgement, err error) {
		err = row.Scan(
			&a.Key, &a.Project, &a.Text, &a.By, (*Milli)(&a.At), (*Milli)(&a.Until), (*Milli)(&a.Since))
		return a, err
	}, "SELECT key, project, text, by_whom, at_ms, until_ms, since_ms FROM acknowledgements")
}

// Acknowledge stores acknowledgements, replacing earlier ones with the same keys.
func (db acknowledgements) Acknowledge(
	ctx context.Context, e *domain.AuditEntry, all ...domain.Acknowledgement,
) error {
	var steps []Step
	for _, a := range all {
		steps = append(steps, Do(`INSERT INTO acknowledgements (key, project, text, by_whom, at_ms, until_ms, since_ms)
			VALUES ($1, $2, $3, $4, $5, $6, $7)
			ON CONFLICT (key) DO UPDATE SET project = excluded.project, text = excluded.text,
			by_whom = excluded.by_whom, at_ms = excluded.at_ms, until_ms = excluded.until_ms, since_ms = excluded.since_ms`,
			a.Key, a.Project, a.Text, a.By, ToMilli(a.At), ToMilli(a.Until), ToMilli(a.Since)))
	}
	return db.change(context.WithoutCancel(ctx), e, topics{domain.TopicAcknowledgements}, steps...)
}

// EndAcknowledgements removes acknowledgements. It skips those that have already been removed or replaced by newer
// ones.
func (db acknowledgements) EndAcknowledgements(
	ctx context.Context, e *domain.AuditEntry, ended ...domain.Acknowledgement,
) error {
	var steps []Step
	for _, a := range ended {
		steps = append(steps, Do("DELETE FROM acknowledgements WHERE key = $1 AND at_ms = $2", a.Key, ToMilli(a.At)))
	}
	return db.change(context.WithoutCancel(ctx), e, topics{domain.TopicAcknowledgements}, steps...)
}
