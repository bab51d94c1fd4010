package store

import (
	"context"
	"encoding/json"
	"time"

	"switchyard/internal/domain"
)

// Deliveries returns the last attempts of a target, newest first.
func (db targets) Deliveries(ctx context.Context, target string, limit int) ([]domain.Delivery, error) {
	return selectAll(ctx, db.conn, func(row Row) (d domain.Delivery, err error) {
		var took int64
		err = row.Scan((*Milli)(&d.At), &d.MessageID, &d.What, &d.Attempt, &d.Status, &d.Error, &took)
		d.Took = time.Duration(took) * time.Millisecond
		return d, err
	}, `SELECT at_ms, message_id, what, attempt, status, error, took_ms FROM deliveries WHERE target = $1
		ORDER BY id DESC LIMIT $2`, target, limit)
}

// DeliveryHours returns how many attempts of each target succeeded and failed in the hours since a time, oldest first.
func (db targets) DeliveryHours(ctx context.Context, since time.Time) ([]domain.DeliveryHour, error) {
	return selectAll(ctx, db.conn, func(row Row) (h domain.DeliveryHour, err error) {
		err = row.Scan(&h.Target, (*Milli)(&h.Hour), &h.Sent, &h.Failed)
		return h, err
	}, "SELECT target, hour_ms, sent, failed FROM delivery_hours WHERE hour_ms >= $1 ORDER BY hour_ms, target",
		ToMilli(since))
}

const digestColumns = "id, target, name, at_ms, after_event, upto_event, content"

func scanDigest(row Row) (g domain.DigestRecord, err error) {
	var content string
	err = row.Scan(&g.ID, &g.Target, &g.Name, (*Milli)(&g.At), &g.After, &g.Upto, &content)
	if err != nil {
		return g, err
	}
	return g, json.Unmarshal([]byte(content), &g.DigestContent)
}

func (db targets) Digest(ctx context.Context, id string) (domain.DigestRecord, error) {
	return selectOne(ctx, db.conn, scanDigest, "SELECT "+digestColumns+" FROM digests WHERE id = $1", id)
}

// Digests returns the last digests of a target before a time, newest first.
func (db targets) Digests(
	ctx context.Context, target string, before time.Time, limit int,
) ([]domain.DigestRecord, error) {
	return selectAll(ctx, db.conn, scanDigest, "SELECT "+digestColumns+` FROM digests WHERE target = $1 AND at_ms < $2
		ORDER BY at_ms DESC LIMIT $3`, target, ToMilli(before), limit)
}

// RemoveDigests removes the counts of hours and the digests before two times, under the leader's fencing token.
func (db targets) RemoveDigests(ctx context.Context, token int64, hours, digests time.Time) error {
	return db.LeaderTx(ctx, token, nil, Do("DELETE FROM delivery_hours WHERE hour_ms < $1", ToMilli(hours)),
		Do("DELETE FROM digests WHERE at_ms < $1", ToMilli(digests)))
}
