// Package store is the gateway's state in a database. The SQL that both engines, SQLite and PostgreSQL, share is here; packages
// sqlite and postgres hold the engines, their schemas and what differs. It translates driver errors into domain errors and
// knows no rules: what may be stored is decided in package service.
//
// Its SQL is text that both engines take: $1 parameters, ON CONFLICT, RETURNING.
package store

import (
	"context"
	"database/sql"
	"errors"

	"switchyard/internal/domain"
)

// Tables are the tables that both engines use in the same way.
type Tables struct {
	engine Engine
	health health
}

// NewTables returns the tables in a database. They are used once the schema is up to date.
func NewTables(engine Engine) *Tables { return &Tables{engine: engine} }

// topics say what a change is about.
type topics = []domain.Topic

// Tx runs fn in one transaction: all of it is stored when Tx returns nil, none of it otherwise. The audit entry that ctx has
// is stored with it. Other gateways are told which topics it changed.
func (db *Tables) Tx(ctx context.Context, about []domain.Topic, fn func(*sql.Tx) error) (err error) {
	defer func() { db.note(err) }()
	tx, err := db.engine.Write.BeginTx(ctx, nil)
	if err != nil {
		return db.Translate(err)
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it does nothing
	if db.engine.Fence != nil {
		if err := db.engine.Fence(ctx, tx); err != nil {
			return db.Translate(err)
		}
	}
	if err := fn(tx); err != nil {
		return db.Translate(err)
	}
	if err := addAudit(ctx, tx); err != nil {
		return db.Translate(err)
	}
	if db.engine.Notify != nil && len(about) > 0 {
		if err := db.engine.Notify(ctx, tx, about); err != nil {
			return db.Translate(err)
		}
	}
	return db.Translate(tx.Commit())
}

// Wrote notes how a write of the engine ended, and returns its error as Translate does.
func (db *Tables) Wrote(err error) error {
	err = db.Translate(err)
	db.note(err)
	return err
}

// note records how a write ended; err is already translated.
func (db *Tables) note(err error) {
	db.health.note(err)
	if err == nil && db.engine.Wrote != nil {
		db.engine.Wrote()
	}
}

// exec executes a statement that writes.
func (db *Tables) exec(ctx context.Context, about topics, statement string, args ...any) (result sql.Result, err error) {
	if _, audited := domain.AuditOf(ctx); audited {
		return db.execAudited(ctx, about, statement, args...)
	}
	_, fenced := domain.DutyOf(ctx)
	if db.engine.Notify != nil && (len(about) > 0 || fenced) {
		err = db.Tx(ctx, about, func(tx *sql.Tx) error {
			result, err = tx.ExecContext(ctx, statement, args...)
			return err
		})
		return result, err
	}
	if result, err = db.engine.Write.ExecContext(ctx, statement, args...); err != nil {
		return nil, db.Wrote(err)
	}
	if n, err := result.RowsAffected(); err == nil && n > 0 { // without a changed row nothing was written
		db.note(nil)
	}
	return result, nil
}

// changeOne executes a statement and returns NotFound when it changed no row. The end of ctx does not interrupt it: then
// nobody would know whether it was stored.
func (db *Tables) changeOne(ctx context.Context, about topics, statement string, args ...any) error {
	result, err := db.exec(context.WithoutCancel(ctx), about, statement, args...)
	if err != nil {
		return err
	}
	return db.Translate(changed(result))
}

// changed returns sql.ErrNoRows when a statement changed no row.
func changed(result sql.Result) error {
	n, err := result.RowsAffected()
	if err == nil && n == 0 {
		err = sql.ErrNoRows
	}
	return err
}

// Translate gives an error its domain code: NotFound for a missing row, the engine's code for an error that the engine knows,
// Internal for all others, with the cause kept for the log. Domain errors and nil stay as they are.
func (db *Tables) Translate(err error) error {
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

// Ping reports whether the store answers.
func (db *Tables) Ping(ctx context.Context) error {
	var one int
	return db.Translate(db.engine.Read.QueryRowContext(ctx, "SELECT 1 FROM state WHERE key = $1 UNION ALL SELECT 1 LIMIT 1", "").Scan(&one))
}
