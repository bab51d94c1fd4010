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
	Searches *sql.DB // for slow reads, so that others never wait for them
	// SearchLimit is the time limit of a search.
	SearchLimit time.Duration
	// Snapshot is the isolation level at which a transaction sees one state of the database.
	Snapshot sql.IsolationLevel
	Dialect  Dialect
	// Code translates an error of the driver. It returns nil for an unknown error.
	Code func(error) *domain.Error
	// Notify notifies other gateways, once the transaction has been committed, of the topics changed. It is nil if there are none.
	Notify func(ctx context.Context, tx *sql.Tx, topics []domain.Topic) error
	// Fence returns domain.ErrNotLeader when another gateway has taken over since the token was granted. It is nil if there are no
	// others.
	Fence func(ctx context.Context, tx *sql.Tx, token int64) error
	// Wrote, unless nil, is called after each write.
	Wrote func()
}

// Dialect holds the statements that differ between engines.
type Dialect interface {
	// From returns the FROM clause for reading the events of a run.
	From(Run) string
	// FirstOfRuns selects the first $3 ids between $1 and $2, exclusively, of the events of each run, or the first $3 of all of
	// them; order is "id" or "id DESC". An id may be repeated.
	FirstOfRuns(runs []Run, order string) string
	// TextsWith selects id, story_id, story_name and more of the texts that may contain a folded text, only those of project
	// unless it is 0. An empty statement selects nothing.
	TextsWith(ctx context.Context, tx *sql.Tx, project int64, text string) (statement string, args []any, err error)
	// StoriesWith selects project, id and name of the stories that may contain the folded words, newest first.
	StoriesWith(words []string) (statement string, args []any)
}

// DevelopmentVersion says why a database is refused that was made before the first release.
const DevelopmentVersion = "was written by a development version of switchyard; the last commit that reads it is 4d58293"
