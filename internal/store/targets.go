package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"switchyard/internal/domain"
)

const targetColumns = "id, owner, name, url, secret, former, former_until_ms, rules, enabled, created_at_ms," +
	" revision, position, told, progress"

func scanTarget(row Row) (t domain.Target, err error) {
	var rules, told, progress, url, secret, former string
	var enabled, position int64
	err = row.Scan(&t.ID, &t.Owner, &t.Name, &url, &secret, &former, (*Milli)(&t.FormerUntil), &rules, &enabled,
		(*Milli)(&t.CreatedAt), &t.Revision, &position, &told, &progress)
	if err != nil {
		return t, err
	}
	if err := errors.Join(json.Unmarshal([]byte(rules), &t.Rules), json.Unmarshal([]byte(progress), &t.Progress),
		json.Unmarshal([]byte(told), &t.Progress.Told)); err != nil {
		return t, err
	}
	t.URL, t.Secret, t.Former = domain.Secret(url), domain.Secret(secret), domain.Secret(former)
	t.Enabled, t.Progress.Position = enabled != 0, position
	return t, nil
}

func (db targets) Targets(ctx context.Context) ([]domain.Target, error) {
	return selectAll(ctx, db.conn, scanTarget, "SELECT "+targetColumns+" FROM targets ORDER BY name, id")
}

// AddTarget stores a target. It returns Conflict when there are too many.
func (db targets) AddTarget(ctx context.Context, e *domain.AuditEntry, t domain.Target) error {
	return db.change(context.WithoutCancel(ctx), e, topics{domain.TopicTargets}, func(tx *sql.Tx) error {
		var n int
		if err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM targets").Scan(&n); err != nil {
			return err
		}
		if n >= domain.MaxTargets {
			return domain.Errorf(domain.Conflict, "there are %d targets already", n)
		}
		return Exec(ctx, tx, "INSERT INTO targets ("+targetColumns+`)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
			t.ID, t.Owner, t.Name, Text(t.URL.Reveal()), t.Secret.Reveal(), t.Former.Reveal(), ToMilli(t.FormerUntil),
			encoded(t.Rules), number(t.Enabled), ToMilli(t.CreatedAt), t.Revision, t.Progress.Position,
			encoded(t.Progress.Told), encoded(t.Progress))
	})
}

func encoded(value any) string {
	text, _ := json.Marshal(value) // texts and numbers always encode
	return string(text)
}

func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// ChangeTarget changes what people may change of a target. It returns NotFound, and the errors of change.
func (db targets) ChangeTarget(
	ctx context.Context, id string, change func(t *domain.Target) (*domain.AuditEntry, error),
) (t domain.Target, err error) {
	ctx = context.WithoutCancel(ctx)
	err = db.Tx(ctx, topics{domain.TopicTargets}, func(tx *sql.Tx) error {
		t, err = scanTarget(tx.QueryRowContext(ctx, "SELECT "+targetColumns+" FROM targets WHERE id = $1 "+
			db.engine.Dialect.Lock, id))
		if err != nil {
			return err
		}
		e, err := change(&t)
		if err != nil {
			return err
		}
		t.Revision++
		err = Exec(ctx, tx, `UPDATE targets SET name = $2, url = $3, secret = $4, former = $5,
			former_until_ms = $6, rules = $7, enabled = $8, revision = $9 WHERE id = $1`, id, t.Name, Text(t.URL.Reveal()),
			t.Secret.Reveal(), t.Former.Reveal(), ToMilli(t.FormerUntil), encoded(t.Rules), number(t.Enabled), t.Revision)
		if err != nil || e == nil {
			return err
		}
		return addAudit(ctx, tx, e)
	})
	return t, err
}

// RemoveTarget removes a target, with all that waits for it and its log. It returns NotFound.
func (db targets) RemoveTarget(ctx context.Context, e *domain.AuditEntry, id string) error {
	ctx = context.WithoutCancel(ctx)
	return db.change(ctx, e, topics{domain.TopicTargets}, func(tx *sql.Tx) error {
		return removeTarget(ctx, tx, id)
	})
}

func removeTarget(ctx context.Context, tx *sql.Tx, id string) error {
	for _, table := range []string{"target_messages", "deliveries", "delivery_hours"} {
		if err := Exec(ctx, tx, "DELETE FROM "+table+" WHERE target = $1", id); err != nil {
			return err
		}
	}
	return changeRow(ctx, tx, "DELETE FROM targets WHERE id = $1", id)
}

// ResendLast queues the last messages that a target has accepted, oldest first, before all others, under ids that name
// returns.
func (db targets) ResendLast(ctx context.Context, e *domain.AuditEntry, id string, name func() string) error {
	ctx = context.WithoutCancel(ctx)
	return db.change(ctx, e, topics{domain.TopicTargets}, func(tx *sql.Tx) error {
		if err := changeRow(ctx, tx, "UPDATE targets SET revision = revision + 1 WHERE id = $1", id); err != nil {
			return err
		}
		texts, err := AllRows(ctx, tx, ScanOne[string], `SELECT message FROM (SELECT id, message FROM deliveries
			WHERE target = $1 AND message <> '' ORDER BY id DESC LIMIT $2) AS last ORDER BY id`, id, domain.MaxResent)
		if err != nil {
			return err
		}
		for _, text := range texts {
			q := domain.QueuedMessage{}
			if err := json.Unmarshal([]byte(text), &q.Message); err != nil {
				return err
			}
			q.Message.ID = name()
			if err := queue(ctx, tx, id, q); err != nil {
				return err
			}
		}
		return nil
	})
}

func queue(ctx context.Context, tx *sql.Tx, target string, q domain.QueuedMessage) error {
	return Exec(ctx, tx, "INSERT INTO target_messages (target, after_event, message) VALUES ($1, $2, $3)",
		target, q.After, encoded(q.Message))
}

// QueuedMessages returns the first messages that wait for a target, in order, and how many there are.
func (db targets) QueuedMessages(ctx context.Context, target string, limit int) ([]domain.QueuedMessage, error) {
	return selectAll(ctx, db.conn, func(row Row) (q domain.QueuedMessage, err error) {
		var text string
		if err := row.Scan(&q.ID, &q.After, &text); err != nil {
			return q, err
		}
		return q, json.Unmarshal([]byte(text), &q.Message)
	}, `SELECT id, after_event, message FROM target_messages WHERE target = $1
		ORDER BY after_event, id LIMIT $2`, target, limit)
}

// CountQueued returns how many messages wait for each target besides events.
func (db targets) CountQueued(ctx context.Context) (map[string]int, error) {
	counts := map[string]int{}
	err := Each(ctx, db.engine.Read, func(row Row) error {
		var target string
		var n int
		err := row.Scan(&target, &n)
		counts[target] = n
		return err
	}, "SELECT target, COUNT(*) FROM target_messages GROUP BY target")
	return counts, db.Translate(err)
}

// SaveTargets stores the progress of targets, under the leader's fencing token. It leaves out those that have been
// removed.
func (db targets) SaveTargets(ctx context.Context, token int64, saves []domain.TargetSave) error {
	var about topics
	for _, s := range saves {
		if s.News || s.Disable {
			about = topics{domain.TopicTargets}
		}
	}
	ctx = context.WithoutCancel(ctx) // what was sent must not be forgotten
	return db.LeaderTx(ctx, token, about, func(tx *sql.Tx) error {
		for _, s := range saves {
			if err := saveTarget(ctx, tx, s); err != nil && !IsMissing(err) {
				return err
			}
		}
		return nil
	})
}

func saveTarget(ctx context.Context, tx *sql.Tx, s domain.TargetSave) error {
	if s.Disable { // a browser that wants no more messages has forgotten its subscription
		var owner string
		err := tx.QueryRowContext(ctx, "SELECT owner FROM targets WHERE id = $1", s.Target).Scan(&owner)
		if err != nil {
			return err
		}
		if owner != "" {
			return removeTarget(ctx, tx, s.Target)
		}
	}
	told := "told"
	args := []any{s.Target, s.Progress.Position, encoded(s.Progress), number(s.Disable), s.Revision}
	if s.Progress.Told != nil {
		args = append(args, encoded(s.Progress.Told))
		told = "$6"
	}
	err := changeRow(ctx, tx, `UPDATE targets SET position = $2, progress = $3, told = `+told+`,
		enabled = CASE WHEN $4 = 1 AND revision = $5 THEN 0 ELSE enabled END WHERE id = $1`, args...)
	if err != nil {
		return err
	}
	for _, q := range s.Queued {
		if err := queue(ctx, tx, s.Target, q); err != nil {
			return err
		}
	}
	if s.Done != 0 {
		if err := Exec(ctx, tx, "DELETE FROM target_messages WHERE id = $1", s.Done); err != nil {
			return err
		}
	}
	if g := s.Digest; g != nil {
		err := Exec(ctx, tx, `INSERT INTO digests (id, target, name, at_ms, after_event, upto_event, content)
			VALUES ($1, $2, $3, $4, $5, $6, $7)`, g.ID, g.Target, g.Name, ToMilli(g.At), g.After, g.Upto,
			encoded(g.DigestContent))
		if err != nil {
			return err
		}
	}
	if s.Delivery == nil {
		return nil
	}
	return addDelivery(ctx, tx, s.Target, *s.Delivery)
}

// addDelivery stores an attempt, counts it, and removes those before that are no longer shown or sent again.
func addDelivery(ctx context.Context, tx *sql.Tx, target string, d domain.Delivery) error {
	text, sent, failed := "", 1, 0
	if d.Message != nil {
		text = encoded(d.Message)
	}
	if d.Error != "" {
		sent, failed = 0, 1
	}
	for _, s := range []Statement{
		{SQL: `INSERT INTO deliveries (target, at_ms, message_id, what, attempt, status, error, took_ms, message)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`, Args: []any{
			target, ToMilli(d.At), d.MessageID, Text(domain.Cut(d.What, domain.MaxFilter)), d.Attempt, d.Status, Text(d.Error),
			d.Took.Milliseconds(), text,
		}},
		{SQL: `DELETE FROM deliveries WHERE target = $1 AND id <= (SELECT id FROM deliveries WHERE target = $1
			ORDER BY id DESC LIMIT 1 OFFSET $2)`, Args: []any{target, domain.MaxDeliveries}},
		{SQL: `UPDATE deliveries SET message = '' WHERE id = (SELECT id FROM deliveries
			WHERE target = $1 AND message <> '' ORDER BY id DESC LIMIT 1 OFFSET $2)`, Args: []any{target, domain.MaxResent}},
		{
			SQL: `INSERT INTO delivery_hours (target, hour_ms, sent, failed) VALUES ($1, $2, $3, $4)
			ON CONFLICT (target, hour_ms) DO UPDATE SET sent = delivery_hours.sent + excluded.sent,
			failed = delivery_hours.failed + excluded.failed`,
			Args: []any{target, ToMilli(d.At.Truncate(time.Hour)), sent, failed},
		},
	} {
		if err := Exec(ctx, tx, s.SQL, s.Args...); err != nil {
			return err
		}
	}
	return nil
}

// AddDelivery stores an attempt that was made out of order. Other gateways are not told.
func (db targets) AddDelivery(ctx context.Context, target string, d domain.Delivery) error {
	return db.Tx(ctx, nil, func(tx *sql.Tx) error { return addDelivery(ctx, tx, target, d) })
}
