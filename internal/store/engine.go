package store

import (
	"context"
	"database/sql"
	"time"

	"switchyard/internal/domain"
)

type Engine struct {
	Write *sql.DB
	// Turn, unless nil, has room for one value: writers take turns in order of arrival where Write has a single
	// connection, which database/sql would give to any of them.
	Turn        chan struct{}
	Read        *sql.DB
	Searches    *sql.DB // for slow reads, so that others never wait for them
	SearchLimit time.Duration
	// Snapshot is the isolation level at which a transaction sees one state of the database.
	Snapshot sql.IsolationLevel
	Dialect  Dialect
	// Code translates an error of the driver. It returns nil for an unknown error.
	Code func(error) *domain.Error
	// Transact runs statements in one transaction: first those that read, then those that write returns once the results
	// of the first have been read. It notifies other gateways.
	Transact func(ctx context.Context, read []Statement,
		write func() (statements []Statement, about []domain.Topic, err error)) error
	// Notify notifies other gateways, once the transaction has been committed, of a topic changed. It is nil if there are
	// none.
	Notify func(topic domain.Topic) Step
	// Present returns an error if what is written would be lost because the database is no longer where it was opened.
	// It is nil if the database notices that itself.
	Present func() error
	// Refused is called with a former leader's token under which a write was refused.
	Refused func(token int64)
}

// Dialect is how statements differ between engines.
type Dialect struct {
	// Rows returns what each.value is selected from: the elements of the JSON array that is the n-th argument.
	Rows func(n int) string
	// Lock follows a SELECT of a row that is to be locked.
	Lock string
	// ProjectEvents is the table of events for reading those of a project and a type.
	ProjectEvents string
	// CursorURL is the form of the address in the unique index of reading positions.
	CursorURL string
	// VisitChanged ends the list of columns that are updated with a visit.
	VisitChanged string
	// Containing selects the ids of the rows of a table whose words contain all texts, given as folded and of three or
	// more characters each; the arguments are numbered from n.
	Containing func(table string, n int, texts ...string) (statement string, args []any)
}

// DevelopmentVersion says why a database made before the first release is refused.
const DevelopmentVersion = "was written by a development version of switchyard; " +
	"the last commit that reads it is 4d58293"
