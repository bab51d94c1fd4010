package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"switchyard/internal/clock"
	"switchyard/internal/cluster"
	"switchyard/internal/domain"
)

// Lease is the cluster.Store, by the database's clock.
type Lease struct {
	pool     *pgxpool.Pool
	clock    *clock.Clock // read with each renewal
	listener *listener
	unblock  func(context.Context, error)
}

// Released returns a channel that is closed when a gateway joins, leaves, or releases the lease.
func (l *Lease) Released() <-chan struct{} { return l.listener.Changed(string(domain.TopicLease)) }

// Renew does not wait for writes under the lease, which lock only its key.
func (l *Lease) Renew(
	ctx context.Context, g cluster.Gateway, ttl time.Duration,
) (lease cluster.Lease, others []cluster.Gateway, err error) {
	var batch pgx.Batch
	batch.Queue(`INSERT INTO gateways (id, name, started_at, until, unfit, reaches)
		VALUES ($1, $2, clock_timestamp(), clock_timestamp() + $3, $4, $5)
		ON CONFLICT (id) DO UPDATE SET until = excluded.until, unfit = excluded.unfit, reaches = excluded.reaches`,
		g.ID, g.Name, ttl, g.Unfit, g.Reaches)
	batch.Queue("UPDATE lease SET until = clock_timestamp() + $2 WHERE gateway = $1", g.ID, ttl)
	var now time.Time
	read := batch.Queue("SELECT token, gateway, until, until - clock_timestamp(), clock_timestamp() FROM lease")
	read.QueryRow(func(row pgx.Row) error {
		return row.Scan(&lease.Token, &lease.Holder, &lease.Until, &lease.Left, &now)
	})
	batch.Queue(liveGateways).Query(func(rows pgx.Rows) error {
		others, err = pgx.CollectRows(rows, scanGateway)
		return err
	})
	asked := time.Now()
	if err := l.pool.SendBatch(ctx, &batch).Close(); err != nil {
		return lease, nil, err
	}
	l.clock.Read(asked, time.Now(), now)
	return lease, slices.DeleteFunc(others, func(other cluster.Gateway) bool { return other.ID == g.ID }), nil
}

// TakeOver waits for writes under the last token. It removes lapsed gateways, so that none is live again when the
// database's clock is set back.
func (l *Lease) TakeOver(
	ctx context.Context, id string, last cluster.Lease, ttl time.Duration,
) (token int64, granted bool, err error) {
	defer func() { l.unblock(ctx, err) }()
	var batch pgx.Batch
	batch.Queue("SELECT set_config('lock_timeout', '1000', TRUE)") // of this transaction: the leader must be replaced soon
	taken := batch.Queue(`UPDATE lease SET token = token + 1, gateway = $1, until = clock_timestamp() + $2
		WHERE token = $3 AND until = $4 RETURNING token`, id, ttl, last.Token, last.Until)
	taken.Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&token}, func() error { granted = true; return nil })
		return err
	})
	batch.Queue("DELETE FROM gateways WHERE until < clock_timestamp()")
	batch.Queue(notifyStatement, channel, domain.TopicLease)
	err = l.pool.SendBatch(ctx, &batch).Close()
	return token, granted && err == nil, err
}

// Resign keeps the token: the next gateway that takes over has a greater one.
func (l *Lease) Resign(ctx context.Context, id string) error {
	return l.release(ctx, &pgx.Batch{}, id)
}

func (l *Lease) Leave(ctx context.Context, id string) error {
	var batch pgx.Batch
	batch.Queue("DELETE FROM gateways WHERE id = $1", id)
	return l.release(ctx, &batch, id)
}

func (l *Lease) release(ctx context.Context, batch *pgx.Batch, id string) error {
	batch.Queue("UPDATE lease SET gateway = '', until = clock_timestamp() WHERE gateway = $1", id)
	batch.Queue(notifyStatement, channel, domain.TopicLease)
	return l.pool.SendBatch(ctx, batch).Close()
}

const liveGateways = `SELECT id, name, started_at, unfit, reaches FROM gateways WHERE until > clock_timestamp()
	ORDER BY started_at, id`

func scanGateway(row pgx.CollectableRow) (g cluster.Gateway, err error) {
	err = row.Scan(&g.ID, &g.Name, &g.StartedAt, &g.Unfit, &g.Reaches)
	return g, err
}

// Gateways returns the live gateways, sorted by their time of starting, and the id of the leader, "" for none.
func (l *Lease) Gateways(ctx context.Context) (live []cluster.Gateway, leader string, err error) {
	var batch pgx.Batch
	batch.Queue(liveGateways).Query(func(rows pgx.Rows) error {
		live, err = pgx.CollectRows(rows, scanGateway)
		return err
	})
	batch.Queue("SELECT gateway FROM lease").QueryRow(func(row pgx.Row) error { return row.Scan(&leader) })
	err = l.pool.SendBatch(ctx, &batch).Close()
	return live, leader, err
}
