package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"reflect"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

// openTables is the pool for package sql.
func openTables(pool *pgxpool.Pool) *sql.DB {
	busy := func() bool { return pool.Stat().AcquiredConns() == pool.Config().MaxConns }
	db := sql.OpenDB(connector{stdlib.GetPoolConnector(pool), &breaker{busy: busy}})
	db.SetMaxIdleConns(0) // pool keeps idle connections
	return db
}

// connector waits for a connection for a limited time, and not at all while the database does not respond.
type connector struct {
	driver.Connector
	breaker *breaker
}

func (c connector) Connect(ctx context.Context) (found driver.Conn, err error) {
	err = c.breaker.do(ctx, func() error {
		limited, cancel := context.WithTimeout(ctx, acquireLimit)
		defer cancel()
		found, err = c.Connector.Connect(limited)
		return err
	})
	if err != nil {
		return nil, err
	}
	return conn{found.(*stdlib.Conn)}, nil
}

// conn converts texts to the form that PostgreSQL can store.
type conn struct{ *stdlib.Conn }

func (c conn) CheckNamedValue(v *driver.NamedValue) error {
	if value := reflect.ValueOf(v.Value); value.Kind() == reflect.String {
		v.Value = Text(value.String())
	}
	return nil
}
