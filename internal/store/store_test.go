package store_test

import (
	"context"
	"testing"

	"switchyard/internal/store"
)

func openStore(tb testing.TB) *store.DB {
	tb.Helper()
	db, err := store.Open(context.Background(), tb.TempDir())
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
