package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"switchyard/internal/domain"
	"switchyard/internal/store"
)

//go:embed migrations/*.sql
var migrations embed.FS

// minVersion is the oldest PostgreSQL that is supported.
const minVersion = 15

// migrationLock is the key of the advisory lock for changes of the schema, an arbitrary unique number.
const migrationLock = 0x5717_0001

// migrate applies new scripts in migrations/ to the database, in the order of their names.
func migrate(ctx context.Context, pool *pgxpool.Pool) error {
	scripts, err := migrations.ReadDir("migrations")
	if err != nil {
		return err
	}
	var applied int
	err = pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error {
		if err := checkServer(c.Conn().PgConn()); err != nil {
			return err
		}
		applied, err = schemaVersion(ctx, c)
		return err
	})
	if err != nil {
		return err
	}
	if applied > len(scripts) {
		return domain.Errorf(domain.Internal, "the database was written by a newer version of switchyard"+
			" (schema %d, this one knows %d)", applied, len(scripts))
	}
	if applied == len(scripts) {
		return nil
	}
	return alone(ctx, pool, func(tx pgx.Tx) error {
		applied, err := schemaVersion(ctx, tx) // another gateway may have been faster
		if err != nil {
			return err
		}
		for i := applied; i < len(scripts); i++ {
			script, err := migrations.ReadFile("migrations/" + scripts[i].Name())
			if err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, string(script)); err != nil {
				return fmt.Errorf("%s: %w", scripts[i].Name(), err)
			}
			if _, err := tx.Exec(ctx, "INSERT INTO switchyard_schema VALUES ($1)", i+1); err != nil {
				return err
			}
		}
		return nil
	})
}

// checkServer returns an error for a server that is too old or a database that cannot store all characters.
func checkServer(c *pgconn.PgConn) error {
	version := c.ParameterStatus("server_version") // such as "15.8 (Debian 15.8-1)" or "18beta1"
	var major int
	if _, err := fmt.Sscanf(version, "%d", &major); err != nil || major < minVersion {
		return domain.Errorf(domain.Internal, "PostgreSQL %s is too old: %d or newer is required", version, minVersion)
	}
	if encoding := c.ParameterStatus("server_encoding"); encoding != "UTF8" {
		return domain.Errorf(domain.Internal, "the database has the encoding %s: UTF8 is required", encoding)
	}
	return nil
}

type querier interface {
	QueryRow(ctx context.Context, statement string, args ...any) pgx.Row
}

// schemaVersion returns how many scripts have been applied. Development versions counted them in another table.
func schemaVersion(ctx context.Context, q querier) (applied int, err error) {
	var exists, old bool
	err = q.QueryRow(ctx, `SELECT to_regclass('switchyard_schema') IS NOT NULL,
		to_regclass('schema_version') IS NOT NULL AND to_regclass('event_projects') IS NOT NULL`).Scan(&exists, &old)
	switch {
	case err != nil:
		return 0, err
	case exists:
		err = q.QueryRow(ctx, "SELECT COALESCE(MAX(version), 0) FROM switchyard_schema").Scan(&applied)
	case old:
		err = domain.Errorf(domain.Internal, "the database %s", store.DevelopmentVersion)
	}
	return applied, err
}

// alone runs fn in a transaction without a time limit, holding the lock for changes of the schema.
func alone(ctx context.Context, pool *pgxpool.Pool, fn func(pgx.Tx) error) error {
	config := pool.Config().ConnConfig
	config.Tracer = nil
	for _, limit := range []string{"lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"} {
		delete(config.RuntimeParams, limit)
	}
	c, err := connect(ctx, config)
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(ctx))
	return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", migrationLock); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "CREATE TABLE IF NOT EXISTS switchyard_schema (version INT NOT NULL)"); err != nil {
			return err
		}
		return fn(tx)
	})
}

const indexWords = `CREATE INDEX IF NOT EXISTS texts_of_words ON texts USING gin (words gin_trgm_ops);
	CREATE INDEX IF NOT EXISTS stories_of_words ON stories USING gin (words gin_trgm_ops)`

// ensureIndexOfWords creates the indexes, and reports whether there are any. It requires the extension pg_trgm, which
// any role with CREATE on the database can install if the server has it.
func ensureIndexOfWords(ctx context.Context, pool *pgxpool.Pool) (bool, error) {
	var exists, possible bool
	err := pool.QueryRow(ctx, `SELECT to_regclass('texts_of_words') IS NOT NULL,
		EXISTS (SELECT FROM pg_available_extensions WHERE name = 'pg_trgm')`).Scan(&exists, &possible)
	if err != nil || exists || !possible {
		return exists, err
	}
	err = alone(ctx, pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "CREATE EXTENSION IF NOT EXISTS pg_trgm; "+indexWords)
		return err
	})
	// This role may not install it, or it is in another schema.
	if refused := new(pgconn.PgError); errors.As(err, &refused) {
		return false, nil
	}
	return err == nil, err
}
