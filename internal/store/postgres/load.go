package postgres

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"switchyard/internal/domain"
	"switchyard/internal/store"
)

type Table struct {
	Name    string
	Columns []string
	Count   int64                 // of its rows
	Next    func() ([]any, error) // returns the next row, nil after the last
}

var errNotEmpty error = domain.Errorf(domain.Internal, "the database to move to is not empty")

func OpenEmpty(ctx context.Context, url string) (*DB, error) {
	pool, err := newPool(ctx, url, tablePool, nil)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	err = pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error {
		if err := checkServer(c.Conn().PgConn()); err != nil {
			return err
		}
		version, err := schemaVersion(ctx, c)
		if err != nil {
			return err
		}
		var others bool
		err = c.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_class JOIN pg_namespace AS n ON n.oid = relnamespace
			WHERE relkind IN ('r', 'p', 'v', 'm', 'f')
			AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\_%'
			AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = pg_class.oid AND deptype = 'e'))`).Scan(&others)
		if err == nil && version == 0 && others {
			err = errNotEmpty
		}
		return err
	})
	if err != nil {
		return nil, openFailure(err)
	}
	db, err := Open(ctx, url)
	if err != nil {
		return nil, err
	}
	if err := pgx.BeginFunc(ctx, db.pool, func(tx pgx.Tx) error { return checkEmpty(ctx, tx) }); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// checkEmpty returns errNotEmpty if one of our tables has rows.
func checkEmpty(ctx context.Context, tx pgx.Tx) error {
	names, err := tableNames(ctx, tx)
	for _, name := range names {
		var found bool
		if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM "+name+")").Scan(&found); err != nil {
			return err
		}
		if found {
			return fmt.Errorf("%w: its table %s has rows", errNotEmpty, name)
		}
	}
	return err
}

func tableNames(ctx context.Context, tx pgx.Tx) ([]string, error) {
	rows, err := tx.Query(ctx, `SELECT c.relname FROM pg_class AS c
		JOIN pg_class AS version ON version.relnamespace = c.relnamespace
		WHERE version.oid = to_regclass('switchyard_schema') AND c.relkind = 'r'
		AND c.relname NOT IN ('switchyard_schema', 'stream', 'lease') ORDER BY 1`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// Load fills tables, all or none, and stores the session key. Nobody else may use the database meanwhile. Rows that are
// added later get greater ids.
func (db *DB) Load(
	ctx context.Context, tables []string, open func(name string) (Table, error), sessionKey []byte,
) error {
	return alone(ctx, db.pool, func(tx pgx.Tx) error {
		names, err := tableNames(ctx, tx)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "LOCK TABLE stream, "+strings.Join(names, ", ")); err != nil {
			return err
		}
		if err := checkEmpty(ctx, tx); err != nil { // somebody may have written since it was opened
			return err
		}
		if db.indexed { // creating it takes a fraction of the time that adding to it does
			if _, err := tx.Exec(ctx, "DROP INDEX texts_of_words, stories_of_words"); err != nil {
				return err
			}
		}
		for _, name := range tables {
			table, err := open(name)
			if err == nil {
				err = load(ctx, tx, table)
			}
			if err != nil {
				return fmt.Errorf("table %s: %w", name, err)
			}
		}
		_, err = tx.Exec(ctx, store.PutState, sessionKeyName, hex.EncodeToString(sessionKey))
		if err != nil {
			return err
		}
		if db.indexed {
			if _, err := tx.Exec(ctx, indexWords); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, "UPDATE stream SET last_id = (SELECT COALESCE(MAX(id), 0) FROM events)")
		return err
	})
}

func load(ctx context.Context, tx pgx.Tx, table Table) error {
	count, err := tx.CopyFrom(ctx, pgx.Identifier{table.Name}, table.Columns, pgx.CopyFromFunc(table.Next))
	if err != nil {
		return err
	}
	if count != table.Count {
		return fmt.Errorf("expected %d rows, but got %d", table.Count, count)
	}
	if _, err := tx.Exec(ctx, "ANALYZE "+table.Name); err != nil {
		return err
	}
	if !slices.Contains(table.Columns, "id") || count == 0 {
		return nil
	}
	var sequence *string
	err = tx.QueryRow(ctx, "SELECT pg_get_serial_sequence($1, 'id')", table.Name).Scan(&sequence)
	if err == nil && sequence != nil {
		_, err = tx.Exec(ctx, "SELECT setval($1::text::regclass, (SELECT MAX(id) FROM "+table.Name+"))", *sequence)
	}
	return err
}

// Address returns a database's address without password and options, for display.
func Address(address string) string {
	config, err := pgx.ParseConfig(address)
	if err != nil {
		return "PostgreSQL"
	}
	host := net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
	u := url.URL{Scheme: "postgres", Host: host, Path: config.Database}
	return u.String()
}
