package sqlite_test

import (
	"context"
	"testing"

	"switchyard/internal/store/sqlite"
	"switchyard/internal/store/storetest"
)

func openStore(tb testing.TB) *sqlite.DB {
	tb.Helper()
	db, err := sqlite.Open(context.Background(), tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := db.Close(); err != nil {
			tb.Error(err)
		}
	})
	return db
}

// What tests of all engines have in common.
var (
	eventRecord  = storetest.Record
	move         = storetest.Move
	feedRead     = storetest.Read
	appendEvents = storetest.Append
	ids          = storetest.IDs
	received     = storetest.Received
	expired      = storetest.Expired
	remove       = storetest.Remove
	selected     = storetest.Selected
)
