package store_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"switchyard/internal/domain"
	"switchyard/internal/jsonscan"
	"switchyard/internal/pgtest"
	"switchyard/internal/service"
	"switchyard/internal/store"
	"switchyard/internal/store/postgres"
	"switchyard/internal/store/sqlite"
	"switchyard/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m.Run)) }

// database has all methods of the tables, those of the engine first.
type database struct {
	*store.Tables
	engine
}

type engine interface {
	service.Store
	Close() error
}

func opened(db engine, err error) (database, error) {
	if err != nil {
		return database{}, err
	}
	return database{db.All(), db}, nil
}

// engines create empty databases.
var engines = []struct {
	name string
	open func(t testing.TB) (reopen func() (database, error))
}{
	{"SQLite", func(t testing.TB) func() (database, error) {
		dir := storetest.Dir(t)
		return func() (database, error) { return opened(sqlite.Open(context.Background(), dir)) }
	}},
	{"PostgreSQL", func(t testing.TB) func() (database, error) {
		url := pgtest.Prepared(t, func(url string) error {
			db, err := postgres.Open(context.Background(), url)
			if err == nil {
				err = db.Close()
			}
			return err
		})
		return func() (database, error) { return opened(postgres.Open(context.Background(), url)) }
	}},
}

// onEachEngine runs a test on an empty database of each engine.
func onEachEngine(t *testing.T, test func(t *testing.T, db database)) {
	t.Helper()
	for _, engine := range engines {
		t.Run(engine.name, func(t *testing.T) { test(t, open(t, engine.open(t))) })
	}
}

func open(t testing.TB, reopen func() (database, error)) database {
	t.Helper()
	db, err := reopen()
	return storetest.Opened(t, db, err)
}

// Helpers for the tests of all engines.
var (
	eventRecord  = storetest.Record
	move         = storetest.Move
	feedRead     = storetest.Read
	appendEvents = storetest.Append
	ids          = storetest.IDs
	received     = storetest.Received
	expired      = storetest.Expired
	remove       = storetest.Remove
)

// selected returns the ids, counted from 1, of the events that match q.
func selected(q domain.EventQuery, reads []domain.FeedRead) (want []int64) {
	for i, read := range reads {
		id, r := int64(i+1), read.Records[0]
		holds := func(text string) bool { return strings.Contains(strings.ToLower(text), strings.ToLower(q.Text)) }
		if (q.Project == "" || q.Project == read.Cursor.Project) && (q.Type == "" || q.Type == r.Type) && id > q.After &&
			(q.Before == 0 || id < q.Before) && slices.ContainsFunc(append(jsonscan.Strings(r.JSON), read.Cursor.Project), holds) {
			want = append(want, id)
		}
	}
	if q.Backward {
		slices.Reverse(want)
	}
	return want
}
