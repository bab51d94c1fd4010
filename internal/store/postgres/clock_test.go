package postgres_test

import (
	"testing"
	"time"

	"switchyard/internal/cluster"
	"switchyard/internal/pgtest"
)

func TestTheClockOfTheDatabaseIsKnown(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
		db := open(t, pgtest.WrongClock(t, ahead))
		check := func(when string) {
			t.Helper()
			if got := db.Clock().Skew(); (got - ahead).Abs() > time.Minute {
				t.Errorf("%s the database's clock is %v ahead, want %v", when, got, ahead)
			}
		}
		check("at first")
		db.Clock().Read(time.Now(), time.Now(), time.Now())
		if _, _, err := db.Lease().Renew(t.Context(), cluster.Gateway{ID: "one", Name: "one"}, time.Hour); err != nil {
			t.Fatal(err)
		}
		check("after a renewal")
	}
}
