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
	" revision, position, progress"

func scanTarget(row Row) (t domain.Target, err error) {
	var rules, progress, url, secret, former string
	var enabled, position int64
	err = row.Scan(&t.ID, &t.Owner, &t.Name, &url, &secret, &former, (*Milli)(&t.FormerUntil), &rules, &enabled,
		(*Milli)(&t.CreatedAt), &t.Revision, &position, &progress)
	if err != nil {
		return t, err
	}
	err = errors.Join(json.Unmarshal([]byte(rules), &t.Rules), json.Unmarshal([]byte(progress), &t.Progress))
	if err != nil {
		return t, err
	}
	t.URL, t.Secret, t.Former = domain.Secret(url), domain.Secret(secret), domain.Secret(former)
	t.Enabled, t.Progress.Position = enabled != 0, position
	return t, nil
}

func (db targets) Targets(ctx context.Context) ([]domain.Target, error) {
	return selectAll(ctx, db.conn, scanTarget, "SELECT "+targetColumns+" FROM targets ORDER BY name, id")
}

func (db targets) Target(ctx context.Context, id string) (domain.Target, error) {
	return selectOne(ctx, db.conn, scanTarget, "SELECT "+targetColumns+" FROM targets WHERE id = $1", id)
}

// AddTarget stores a target. It returns Conflict when there are too many.
func (db targets) AddTarget(ctx context.Context, e *domain.AuditEntry, t domain.Target) error {
	ctx = context.WithoutCancel(ctx)
	return db.change(ctx, e, topics{domain.TopicTargets}, func(ctx context.Context, tx *sql.Tx) error {
		var n int
		if err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM targets").Scan(&n); err != nil {
			return err
		}
		if n >= domain.MaxTargets {
			return domain.Errorf(domain.Conflict, "there are %d targets already", n)
		}
		return Exec(ctx, tx, "INSERT INTO targets ("+targetColumns+`)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
			t.ID, t.Owner, t.Name, Text(t.URL.Reveal()), t.Secret.Reveal(), t.Former.Reveal(), ToMilli(t.FormerUntil),
			encoded(t.Rules), number(t.Enabled), ToMilli(t.CreatedAt), t.Revision, t.Progress.Position,
			encoded(t.Progress))
	})
}

func encoded(value any) string { return string(domain.EncodeJSON(value)) }

func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// ChangeTarget changes what people can change in a target. It returns NotFound, and the errors of change.
func (db targets) ChangeTarget(
	ctx context.Context, id string, change func(t *domain.Target) (*domain.AuditEntry, error),
) (t domain.Target, err error) {
	ctx = context.WithoutCancel(ctx)
	err = db.Tx(ctx, topics{domain.TopicTargets}, func(ctx context.Context, tx *sql.Tx) error {
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
		return addAudit(e)(ctx, tx)
	})
	return t, err
}

// RemoveTarget removes a target, with everything that waits for it and its log. It returns NotFound.
func (db targets) RemoveTarget(ctx context.Context, e *domain.AuditEntry, id string) error {
	return db.change(context.WithoutCancel(ctx), e, topics{domain.TopicTargets}, removeTarget(id))
}

func removeTarget(id string) Step {
	return All(Must("DELETE FROM targets WHERE id = $1", id), Do("DELETE FROM target_messages WHERE target = $1", id),
		Do("DELETE FROM deliveries WHERE target = $1", id), Do("DELETE FROM delivery_hours WHERE target = $1", id))
}

// ResendLast queues the last messages that a target has accepted, oldest first, before all others, under ids that name
// returns.
func (db targets) ResendLast(ctx context.Context, e *domain.AuditEntry, id string, name func() string) error {
	count := Must("UPDATE targets SET revision = revision + 1 WHERE id = $1", id)
	return db.change(context.WithoutCancel(ctx), e, topics{domain.TopicTargets}, count, func(
		ctx context.Context, tx *sql.Tx,
	) error {
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
			if err := queue(id, q)(ctx, tx); err != nil {
				return err
			}
		}
		return nil
	})
}

func queue(target string, q domain.QueuedMessage) Step {
	return Do("INSERT INTO target_messages (target, after_event, message) VALUES ($1, $2, $3)",
		target, q.After, encoded(q.Message))
}

// QueuedMessages returns the first messages waiting for a target, and how many there are.
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

// CountQueued returns how many messages besides events wait for each target.
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
	var steps []Step
	for _, s := range saves {
		if s.News || s.Disable {
			about = topics{domain.TopicTargets}
		}
		steps = append(steps, Try(new(bool), saveTarget(s)))
	}
	return db.LeaderTx(context.WithoutCancel(ctx), token, about, steps...) // what was sent must not be forgotten
}

func saveTarget(s domain.TargetSave) Step {
	steps := []Step{Must(`UPDATE targets SET position = $2, progress = $3,
		enabled = CASE WHEN $4 = 1 AND revision = $5 THEN 0 ELSE enabled END WHERE id = $1`,
		s.Target, s.Progress.Position, encoded(s.Progress), number(s.Disable), s.Revision)}
	for _, q := range s.Queued {
		steps = append(steps, queue(s.Target, q))
	}
	if s.Done != 0 {
		steps = append(steps, Do("DELETE FROM target_messages WHERE id = $1", s.Done))
	}
	if g := s.Digest; g != nil {
		steps = append(steps, Do(`INSERT INTO digests (id, target, name, at_ms, after_event, upto_event, content)
			VALUES ($1, $2, $3, $4, $5, $6, $7)`, g.ID, g.Target, g.Name, ToMilli(g.At), g.After, g.Upto,
			encoded(g.DigestContent)))
	}
	if s.Delivery != nil {
		steps = append(steps, addDelivery(s.Target, *s.Delivery))
	}
	if !s.Disable {
		return All(steps...)
	}
	return func(ctx context.Context, tx *sql.Tx) error {
		var owner string
		err := tx.QueryRowContext(ctx, "SELECT owner FROM targets WHERE id = $1", s.Target).Scan(&owner)
		switch {
		case err != nil:
			return err
		case owner != "": // a browser that wants no more messages has forgotten its subscription
			return removeTarget(s.Target)(ctx, tx)
		}
		return All(steps...)(ctx, tx)
	}
}

// addDelivery stores an attempt, counts it, and removes earlier ones that are no longer shown or sent again.
func addDelivery(target string, d domain.Delivery) Step {
	text, sent, failed := "", 1, 0
	if d.Message != nil {
		text = encoded(d.Message)
	}
	if d.Error != "" {
		sent, failed = 0, 1
	}
	return All(
		Do(`INSERT INTO deliveries (target, at_ms, message_id, what, attempt, status, error, took_ms, message)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`, target, ToMilli(d.At), d.MessageID,
			Text(domain.Cut(d.What, domain.MaxFilter)), d.Attempt, d.Status, Text(d.Error), d.Took.Milliseconds(), text),
		Do(`DELETE FROM deliveries WHERE target = $1 AND id <= (SELECT id FROM deliveries WHERE target = $1
			ORDER BY id DESC LIMIT 1 OFFSET $2)`, target, domain.MaxDeliveries),
		Do(`UPDATE deliveries SET message = '' WHERE id = (SELECT id FROM deliveries
			WHERE target = $1 AND message <> '' ORDER BY id DESC LIMIT 1 OFFSET $2)`, target, domain.MaxResent),
		Do(`INSERT INTO delivery_hours (target, hour_ms, sent, failed) VALUES ($1, $2, $3, $4)
			ON CONFLICT (target, hour_ms) DO UPDATE SET sent = delivery_hours.sent + excluded.sent,
			failed = delivery_hours.failed + excluded.failed`, target, ToMilli(d.At.Truncate(time.Hour)), sent, failed))
}

// NotedAlerts returns the list of alerts, in order.
func (db targets) NotedAlerts(ctx context.Context) ([]domain.AlertRecord, error) {
	return selectAll(ctx, db.conn, func(row Row) (a domain.AlertRecord, err error) {
		return a, row.Scan(&a.Key, &a.Kind, &a.Project, &a.SinceMS, &a.Seq)
	}, "SELECT key, kind, project, since_ms, seq FROM noted_alerts ORDER BY seq")
}

// SaveAlerts adds alerts to the list, replacing those with the same key, and removes others by key, under the leader's
// fencing token.
func (db targets) SaveAlerts(ctx context.Context, token int64, noted []domain.AlertRecord, over []string) error {
	keys := domain.Map(over, func(key string) []any { return []any{key} })
	rows := domain.Map(noted, func(a domain.AlertRecord) []any {
		return []any{a.Key, string(a.Kind), a.Project, a.SinceMS, a.Seq}
	})
	return db.LeaderTx(ctx, token, nil, Do(db.sql.dropAlerts, jsonText(keys)), Do(db.sql.saveAlerts, jsonText(rows)))
}

// AddDelivery stores an attempt that was made out of order. Other gateways are not told.
func (db targets) AddDelivery(ctx context.Context, target string, d domain.Delivery) error {
	return db.Tx(ctx, nil, addDelivery(target, d))
}
