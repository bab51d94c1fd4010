// Package store keeps the gateway's state in a database. It has the SQL that SQLite and PostgreSQL share; packages
// sqlite and postgres have their drivers, schemas and whatever differs. It translates driver errors into domain errors.
// It must know no rules: package service decides what may be stored.
//
// Its SQL uses only what both engines understand: $1 parameters, ON CONFLICT, RETURNING.
package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync/atomic"

	"switchyard/internal/domain"
)

// Tables are the tables that both engines use in the same way, a type for each noun.
type Tables struct {
	*conn
	projects
	agents
	access
	audit
	events
	stories
	visits
	acknowledgements
	claims
	reviews
	questions
	agentSessions
	targets
	usage
	state
}

// NewTables returns the tables in a database. They must not be used before the schema is up to date.
func NewTables(engine Engine) *Tables {
	c := &conn{engine: engine, sql: newChangeSQL(engine.Dialect)}
	return &Tables{
		c,
		projects{c},
		agents{c},
		access{c},
		audit{c},
		events{c},
		stories{c},
		visits{c},
		acknowledgements{c},
		claims{c},
		reviews{c},
		questions{c},
		agentSessions{c},
		targets{c},
		usage{c},
		state{c},
	}
}

// All returns the tables themselves, for types that embed them in an engine.
func (t *Tables) All() *Tables { return t }

type (
	projects         struct{ *conn }
	agents           struct{ *conn }
	access           struct{ *conn }
	audit            struct{ *conn }
	events           struct{ *conn }
	stories          struct{ *conn }
	visits           struct{ *conn }
	acknowledgements struct{ *conn }
	claims           struct{ *conn }
	reviews          struct{ *conn }
	questions        struct{ *conn }
	agentSessions    struct{ *conn }
	targets          struct{ *conn }
	usage            struct{ *conn }
	state            struct{ *conn }
)

type conn struct {
	engine Engine
	sql    *changeSQL
	seen   atomic.Int64 // the greatest event id that this gateway has seen
	// appends is about appending events, health about all other writes.
	health, appends health
}

type topics = []domain.Topic

// Tx runs steps in one transaction: everything is stored if Tx returns nil, otherwise nothing. It notifies other
// gateways of the topics changed.
func (db *conn) Tx(ctx context.Context, about []domain.Topic, steps ...Step) error {
	return db.LeaderTx(ctx, 0, about, steps...)
}

// LeaderTx is Tx for a write of the leader, under its fencing token; 0 is for a gateway that is alone. It returns
// ErrNotLeader, and stores nothing, once another gateway has taken over.
func (db *conn) LeaderTx(ctx context.Context, token int64, about []domain.Topic, steps ...Step) (err error) {
	defer func() { err = db.Wrote(err) }()
	if err := db.checkFile(); err != nil {
		return err
	}
	endTurn, err := db.beginTurn(ctx)
	if err != nil {
		return err
	}
	defer endTurn()
	tx, err := db.engine.Write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // no-op after Commit
	if token != 0 {
		err := Get(db.sql.held, []any{jsonText([][]any{{token}})}, new(int64))(ctx, tx)
		if IsMissing(err) {
			db.engine.Refused(token)
			return domain.ErrNotLeader
		}
		if err != nil {
			return err
		}
	}
	for _, topic := range about {
		if db.engine.Notify != nil {
			steps = append(steps, db.engine.Notify(topic))
		}
	}
	if err := All(steps...)(ctx, tx); err != nil {
		return err
	}
	return tx.Commit()
}

func (db *conn) checkFile() error {
	if db.engine.Present == nil {
		return nil
	}
	return db.engine.Present()
}

// Wrote records the result of a write by the engine, and returns the translated error.
func (db *conn) Wrote(err error) error {
	err = db.Translate(err)
	db.health.record(err)
	return err
}

// beginTurn waits until all writers that came before are done, or ctx ends.
func (db *conn) beginTurn(ctx context.Context) (end func(), err error) {
	if db.engine.Turn == nil {
		return func() {}, nil
	}
	select {
	case db.engine.Turn <- struct{}{}:
		return func() { <-db.engine.Turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (db *conn) exec(ctx context.Context, about topics, statement string, args ...any) (result sql.Result, err error) {
	if db.engine.Notify != nil && len(about) > 0 {
		err = db.Tx(ctx, about, func(ctx context.Context, tx *sql.Tx) error {
			result, err = tx.ExecContext(ctx, statement, args...)
			return err
		})
		return result, err
	}
	if err = db.checkFile(); err == nil {
		var endTurn func()
		if endTurn, err = db.beginTurn(ctx); err == nil {
			result, err = db.engine.Write.ExecContext(ctx, statement, args...)
			endTurn()
		}
	}
	if err != nil {
		return nil, db.Wrote(err)
	}
	if n, err := result.RowsAffected(); err == nil && n > 0 { // otherwise nothing was written
		db.health.record(nil)
	}
	return result, nil
}

// change is Tx for a change and its audit entry, nil for none: both are stored, or neither.
func (db *conn) change(ctx context.Context, e *domain.AuditEntry, about topics, steps ...Step) error {
	if e != nil {
		steps = append(slices.Clip(steps), addAudit(e))
	}
	return db.Tx(ctx, about, steps...)
}

// changeOne executes a statement and returns NotFound if it changed no row. The end of ctx does not interrupt it, as
// that would leave it unknown whether the change was stored.
func (db *conn) changeOne(
	ctx context.Context, e *domain.AuditEntry, about topics, statement string, args ...any,
) error {
	return db.change(context.WithoutCancel(ctx), e, about, Must(statement, args...))
}

// noteEventID keeps the greatest event id that this gateway has seen. A standby that takes over from a lost server may
// lack the last events. Their ids must not be assigned again, or clients that have read them would miss other events.
func (db *conn) noteEventID(id int64) {
	for last := db.seen.Load(); id > last && !db.seen.CompareAndSwap(last, id); last = db.seen.Load() {
	}
}

// Translate turns an error into a domain error: NotFound for a missing row, the engine's translation for an error that
// it knows, and Internal for all others, keeping the cause for the log. Domain errors and nil are returned unchanged.
func (db *conn) Translate(err error) error {
	var known *domain.Error
	switch {
	case err == nil, errors.As(err, &known), errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, sql.ErrNoRows):
		return domain.WrapError(domain.NotFound, err, "not found")
	}
	if known = db.engine.Code(err); known != nil {
		return known
	}
	return domain.WrapError(domain.Internal, err, "the store failed")
}

func (db *conn) Ping(ctx context.Context) error {
	var one int
	return db.Translate(db.engine.Read.QueryRowContext(ctx,
		"SELECT 1 FROM state WHERE key = $1 UNION ALL SELECT 1 LIMIT 1", "").Scan(&one))
}
