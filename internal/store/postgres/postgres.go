// Package postgres is what differs where the store is a PostgreSQL database that several gateways share: connections, schema,
// and what they tell each other.
package postgres

import (
	"context"
	"embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Connections of a gateway. PostgreSQL's default allows 100 for everybody.
const maxConnections = 12

// The database ends a transaction of ours that has done nothing for this long: a gateway that is frozen within one would
// block all others. A connection whose other end is silent is given up after connectionTimeout.
const (
	idleInTransaction = 2 * time.Second
	connectionTimeout = 3 * time.Second
)

// Open connects to the database at url and brings its schema up to date.
func Open(ctx context.Context, url string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.MaxConns = maxConnections
	config.ConnConfig.ConnectTimeout = connectionTimeout
	parameters := config.ConnConfig.RuntimeParams
	parameters["idle_in_transaction_session_timeout"] = fmt.Sprint(idleInTransaction.Milliseconds())
	parameters["tcp_user_timeout"] = fmt.Sprint(connectionTimeout.Milliseconds())
	parameters["application_name"] = "switchyard"
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	if err := migrate(ctx, pool); err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// migrate applies the scripts of migrations/ that the database has not seen, in the order of their names. Gateways that start
// at the same time do so one after the other.
func migrate(ctx context.Context, pool *pgxpool.Pool) error {
	scripts, err := migrations.ReadDir("migrations")
	if err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", migrationLock); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "CREATE TABLE IF NOT EXISTS schema_version (version INT NOT NULL)"); err != nil {
			return err
		}
		var applied int
		if err := tx.QueryRow(ctx, "SELECT COALESCE(MAX(version), 0) FROM schema_version").Scan(&applied); err != nil {
			return err
		}
		if applied > len(scripts) {
			return fmt.Errorf("the database was written by a newer version of switchyard (schema %d, this one knows %d)", applied, len(scripts))
		}
		for i, script := range scripts[applied:] {
			text, err := migrations.ReadFile("migrations/" + script.Name())
			if err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, string(text)); err != nil {
				return fmt.Errorf("%s: %w", script.Name(), err)
			}
			if _, err := tx.Exec(ctx, "INSERT INTO schema_version VALUES ($1)", applied+i+1); err != nil {
				return err
			}
		}
		return nil
	})
}

// Keys of advisory locks: any numbers that nobody else uses.
const (
	migrationLock = 0x5717_0001
	appendLock    = 0x5717_0002
)
