package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"switchyard/internal/clock"
	"switchyard/internal/cluster"
	"switchyard/internal/domain"
)

// Duties keeps the leases and duties of gateways, by the database's clock. Several duties are always locked in the order of their
// names, so that gateways never deadlock.
type Duties struct {
	pool     *pgxpool.Pool
	clock    *clock.Clock // read with each renewal
	listener *listener
	wrote    func(error) error // records the results of writes
	unblock  func(context.Context, error)
}

// Duties returns the leases and duties of gateways.
func (db *DB) Duties() *Duties {
	return &Duties{db.leases, &db.clock, db.listener, db.Wrote, db.unblock}
}

// Released returns a channel that is closed when any gateway joins, leaves, or releases duties.
func (d *Duties) Released() <-chan struct{} { return d.listener.changed(domain.TopicDuties) }

// Join adds a gateway with a lease.
func (d *Duties) Join(ctx context.Context, g cluster.Gateway, lease time.Duration) error {
	var batch pgx.Batch
	// Remove leases that ended long ago.
	batch.Queue(`DELETE FROM gateways WHERE until < clock_timestamp() - INTERVAL '1 day'`)
	batch.Queue(`INSERT INTO gateways (id, name, started_at, until) VALUES ($1, $2, clock_timestamp(), clock_timestamp() + $3)`, g.ID, g.Name, lease)
	batch.Queue(notifyStatement, channel, domain.TopicDuties)
	return d.pool.SendBatch(ctx, &batch).Close()
}

// Renew renews the gateway's lease. It returns the ids of all live gateways, including this one, and the time until the first lease
// of another gateway ends, 0 if there is no other. It returns cluster.ErrLapsed.
func (d *Duties) Renew(ctx context.Context, id string, lease time.Duration) (live []string, next time.Duration, err error) {
	var batch pgx.Batch
	batch.Queue(`UPDATE gateways SET until = clock_timestamp() + $2 WHERE id = $1 AND until > clock_timestamp()`, id, lease)
	batch.Queue(`SELECT id, until - clock_timestamp(), clock_timestamp() FROM gateways WHERE until > clock_timestamp() ORDER BY id`)
	asked := time.Now()
	results := d.pool.SendBatch(ctx, &batch)
	defer results.Close()
	renewed, err := results.Exec()
	_ = d.wrote(err) // so that even a gateway without other writes notices when the database is back
	if err != nil {
		return nil, 0, err
	}
	if renewed.RowsAffected() == 0 {
		return nil, 0, cluster.ErrLapsed
	}
	rows, err := results.Query()
	if err != nil {
		return nil, 0, err
	}
	var each string
	var left time.Duration
	var now time.Time
	_, err = pgx.ForEachRow(rows, []any{&each, &left, &now}, func() error {
		live = append(live, each)
		if each != id && (next == 0 || left < next) {
			next = max(left, 1)
		}
		return nil
	})
	if len(live) > 0 {
		d.clock.Read(asked, time.Now(), now)
	}
	return live, next, err
}

// Claim grants the gateway those of the duties that no other live gateway has, and returns their epochs.
func (d *Duties) Claim(ctx context.Context, id string, duties []string) (granted map[string]int64, err error) {
	defer func() { d.unblock(ctx, err) }()
	rows, err := d.pool.Query(ctx, `INSERT INTO duties (name, gateway, epoch, since)
		SELECT name, $1, 1, clock_timestamp() FROM unnest($2::text[]) AS name ORDER BY name
		ON CONFLICT (name) DO UPDATE SET gateway = $1, epoch = duties.epoch + 1, since = clock_timestamp()
		WHERE duties.gateway = $1 OR NOT EXISTS (SELECT FROM gateways WHERE id = duties.gateway AND until > clock_timestamp())
		RETURNING name, epoch`, id, duties)
	if err != nil {
		return nil, err
	}
	granted = map[string]int64{}
	var name string
	var epoch int64
	_, err = pgx.ForEachRow(rows, []any{&name, &epoch}, func() error {
		granted[name] = epoch
		return nil
	})
	return granted, err
}

// Held returns the gateway's duties.
func (d *Duties) Held(ctx context.Context, id string) ([]string, error) {
	rows, err := d.pool.Query(ctx, "SELECT name FROM duties WHERE gateway = $1", id)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// Release gives up those of the duties that the gateway has.
func (d *Duties) Release(ctx context.Context, id string, duties []string) (err error) {
	defer func() { d.unblock(ctx, err) }()
	var batch pgx.Batch
	batch.Queue("SELECT FROM duties WHERE name = ANY ($1) ORDER BY name FOR UPDATE", duties)
	batch.Queue("UPDATE duties SET gateway = '' WHERE name = ANY ($2) AND gateway = $1", id, duties)
	batch.Queue(notifyStatement, channel, domain.TopicDuties)
	return d.pool.SendBatch(ctx, &batch).Close()
}

// Leave ends the gateway's lease, so that others can claim all its duties.
func (d *Duties) Leave(ctx context.Context, id string) error {
	var batch pgx.Batch
	batch.Queue("DELETE FROM gateways WHERE id = $1", id)
	batch.Queue(notifyStatement, channel, domain.TopicDuties)
	return d.pool.SendBatch(ctx, &batch).Close()
}

// Gateways returns the live gateways, sorted by their time of starting.
func (d *Duties) Gateways(ctx context.Context) ([]cluster.Gateway, error) {
	rows, err := d.pool.Query(ctx, `SELECT g.id, g.name, g.started_at, count(d.name), count(d.name) FILTER (WHERE starts_with(d.name, $1)),
			COALESCE(bool_or(d.name = $2), FALSE)
		FROM gateways g LEFT JOIN duties d ON d.gateway = g.id
		WHERE g.until > clock_timestamp() GROUP BY g.id ORDER BY g.started_at, g.id`, domain.FeedDuty(""), domain.DutyBot)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (g cluster.Gateway, err error) {
		err = row.Scan(&g.ID, &g.Name, &g.StartedAt, &g.Duties, &g.Feeds, &g.Bot)
		return g, err
	})
}
