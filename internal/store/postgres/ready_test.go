package postgres_test

import (
	"testing"
	"time"

	"switchyard/internal/cluster"
	"switchyard/internal/domain"
	"switchyard/internal/pgtest"
)

// TestARenewedLeaseShowsThatWritingWorksAgain: a load balancer sends no requests, and so no writes, to a gateway that is not ready.
func TestARenewedLeaseShowsThatWritingWorksAgain(t *testing.T) {
	t.Parallel()
	db := open(t, pgtest.Database(t))
	_ = db.Wrote(domain.Errorf(domain.Unavailable, "gone"))
	if _, err := db.WriteFailure(); err == nil {
		t.Fatal("a failed write is forgotten at once")
	}
	if _, _, err := db.Lease().Renew(t.Context(), cluster.Gateway{ID: "one", Name: "one"}, time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := db.WriteFailure(); err != nil {
		t.Errorf("after a good write it still says %v", err)
	}
}
