package sqlite_test

import (
	"context"
	"fmt"
	"testing"

	"switchyard/internal/generate"
	"switchyard/internal/store/sqlite"
	"switchyard/internal/waittest"
)

func TestNoWriteMovesTheLogIntoTheDatabaseAndItStaysSmall(t *testing.T) {
	db := openStore(t)
	write := func(n int) {
		t.Helper()
		if err := db.SetState(t.Context(), "key", fmt.Sprint(n)); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for ; db.LogSize() < 2*sqlite.MaxLog; n += 100 { // it would end at half of that
		if _, err := db.AppendEvents(t.Context(), generate.Reads(n, n+100, 20)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- db.Checkpoints(ctx) }()
	waittest.Until(t, "the log is small again", func() bool {
		n++
		write(n)
		return db.LogSize() <= sqlite.MaxLog
	})
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if value, err := db.State(t.Context(), "key"); value != fmt.Sprint(n) || err != nil {
		t.Errorf("%q, %v", value, err)
	}
}
