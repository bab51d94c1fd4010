package postgres_test

import (
	"testing"

	"switchyard/internal/domain"
	"switchyard/internal/pgtest"
)

// TestAHarmlessWriteShowsThatWritingWorksAgain: a load balancer sends no requests, and so no writes, to a gateway that
// is not ready.
func TestAHarmlessWriteShowsThatWritingWorksAgain(t *testing.T) {
	t.Parallel()
	db := open(t, pgtest.Database(t))
	_ = db.Wrote(domain.Errorf(domain.Unavailable, "gone"))
	if _, err := db.WriteFailure(); err == nil {
		t.Fatal("a failed write is forgotten at once")
	}
	if err := db.TryWrite(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := db.WriteFailure(); err != nil {
		t.Errorf("after a good write it still says %v", err)
	}
}
