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
	return storetest.Opened(tb, db, err)
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
)
