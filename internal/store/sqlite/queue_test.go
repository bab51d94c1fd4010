package sqlite_test

import (
	"context"
	"database/sql"
	"slices"
	"testing"
	"testing/synctest"

	"switchyard/internal/store/sqlite"
	"switchyard/internal/store/storetest"
)

// TestWritersHaveTheirTurnsInOrder: nobody waits for those who came later.
func TestWritersHaveTheirTurnsInOrder(t *testing.T) {
	dir := storetest.Dir(t)
	synctest.Test(t, func(t *testing.T) {
		db, err := sqlite.Open(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		free := make(chan struct{})
		var order, want []int
		write := func(n int) {
			err := db.Tx(t.Context(), nil, func(context.Context, *sql.Tx) error {
				if n == 0 {
					<-free
				}
				order = append(order, n)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
		for n := range 20 {
			want = append(want, n)
			go write(n)
			synctest.Wait()
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		if err := db.Tx(gone, nil, func(context.Context, *sql.Tx) error { return nil }); err == nil {
			t.Error("who has left has a turn")
		}
		close(free)
		synctest.Wait()
		if !slices.Equal(order, want) {
			t.Errorf("the order is %v", order)
		}
	})
}
