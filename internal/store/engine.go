package store

import (
	"context"
	"database/sql"
	"time"

	"switchyard/internal/domain"
)

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
	// Notify notifies other gateways, once the transaction has been committed, of the topics changed. It is nil if there
	// are none.
	Notify func(ctx context.Context, tx *sql.Tx, topics []domain.Topic) error
	// Fence returns domain.ErrNotLeader when another gateway has taken over since the token was granted. It is nil if
	// there are no others.
	Fence func(ctx context.Context, tx *sql.Tx, token int64) error
	// Wrote, unless nil, is called after each write.
	Wrote func()
}

// Dialect holds the statements that differ between engines.
type Dialect interface {
	// Key returns the form in which a type or a story's id is stored in its column, where that cannot hold every text.
	Key(text string) string
	// EventsLike returns where to read the events that match a query, whose text is folded. first is whether they are the
	// first that are read for it.
	EventsLike(ctx context.Context, tx Querier, q domain.EventQuery, first bool) (Source, error)
	// StoriesWith selects project, id and name of the first limit stories that may contain the folded words, newest first.
	StoriesWith(words []string, limit int) (statement string, args []any)
}

// Source is where the events that match a query are read, perhaps among others.
type Source struct {
	Tables    string
	ID        string // the column to order by
	Condition string // with %d for the number of its argument
	Arg       string // "" for no condition
}

// DevelopmentVersion says why a database is refused that was made before the first release.
const DevelopmentVersion = "was written by a development version of switchyard; " +
	"the last commit that reads it is 4d58293"
