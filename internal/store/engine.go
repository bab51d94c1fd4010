package store

import (
	"context"
	"database/sql"
	"time"

	"switchyard/internal/domain"
)

// Engine is the database that tables are in.
type Engine struct {
	Write    *sql.DB
	Read     *sql.DB
	Searches *sql.DB // for what may take long, so that other reads never wait for it
	// SearchLimit is how long a search may take.
	SearchLimit time.Duration
	// Snapshot is the isolation under which a transaction sees one state of the database.
	Snapshot sql.IsolationLevel
	Dialect  Dialect
	// Code gives an error of the driver its domain code. It returns nil for an error that it does not know.
	Code func(error) *domain.Error
	// Notify tells other gateways, once the transaction is committed, which topics it changed. It is nil where there are none.
	Notify func(ctx context.Context, tx *sql.Tx, topics []domain.Topic) error
	// Fence returns domain.ErrDutyLost when another gateway has taken over the duty that ctx has. It is nil where there are none.
	Fence func(ctx context.Context, tx *sql.Tx) error
	// Wrote is called after each write. It is nil where nobody needs to know.
	Wrote func()
	// Earlier returns what an earlier version of the program left in other tables, nil when that is nothing.
	Earlier func() Earlier
}

// Dialect holds the statements that differ between engines.
type Dialect interface {
	// From is the FROM clause for reading the events of a run.
	From(Run) string
	// FirstOfRuns selects the first $3 ids of the events of each of these runs between the ids $1 and $2, exclusively, or
	// the first $3 of all of them; order is "id" or "id DESC". An id may come twice.
	FirstOfRuns(runs []Run, order string) string
	// TextsWith selects id, story_id, story_name and more of the texts that may hold a folded text, those of a project
	// unless that is 0. An empty statement selects nothing.
	TextsWith(ctx context.Context, tx *sql.Tx, project int64, text string) (statement string, args []any, err error)
	// StoriesWith selects project, id and name of the stories that may hold these folded words, the newest first.
	StoriesWith(words []string) (statement string, args []any)
}

// Earlier reads what an earlier version of the program stored in other tables than those of Tables.
type Earlier interface {
	// Events calls take with the first limit events that q selects, until it returns false. Their ids are the smaller ones.
	Events(ctx context.Context, tx *sql.Tx, q domain.EventQuery, limit int, take func(domain.Event) bool) error
	// StoryEvents calls take with the newest limit events of a story, the newest first.
	StoryEvents(ctx context.Context, tx *sql.Tx, project, id string, limit int, take func(domain.Event) bool) error
	// FindStories adds stories to those that were found, as Tables.FindStories finds them.
	FindStories(ctx context.Context, tx *sql.Tx, words []string, limit int, found []domain.StoryRef) ([]domain.StoryRef, error)
}

func (db *Tables) earlier() Earlier {
	if db.engine.Earlier == nil {
		return nil
	}
	return db.engine.Earlier()
}
