package postgres_test

import (
	"strings"
	"testing"
	"time"

	"switchyard/internal/cluster"
	"switchyard/internal/pgtest"
	"switchyard/internal/store/storetest"
	"switchyard/internal/waittest"
)

// TestAnAddressMaySayThatTheServerDescribesNoStatement: then only the client knows the types of arguments. make test
// sets the build tag of released programs.
func TestAnAddressMaySayThatTheServerDescribesNoStatement(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			url := pgtest.Database(t)
			separator := "?"
			if strings.Contains(url, "?") {
				separator = "&"
			}
			db := open(t, url+separator+"default_query_exec_mode="+mode)
			storetest.Append(t, db, read("alpha", 0, 0, 20), storetest.Read("alpha", storetest.Move(t, 1)))
			storetest.AskAll(t, db.Tables)
			if _, _, err := db.Size(t.Context()); err != nil {
				t.Error(err)
			}
			short, long := cluster.Gateway{ID: "short", Name: "short"}, cluster.Gateway{ID: "long", Name: "long"}
			if _, _, err := db.Lease().Renew(t.Context(), short, time.Millisecond); err != nil {
				t.Fatal(err)
			}
			var lease cluster.Lease
			waittest.Until(t, "a gateway that is no longer live is not listed", func() bool {
				read, others, err := db.Lease().Renew(t.Context(), long, time.Hour)
				lease = read
				return err == nil && len(others) == 0
			})
			if token, granted, err := db.Lease().TakeOver(t.Context(), "long", lease, time.Hour); err != nil || !granted || token != lease.Token+1 {
				t.Errorf("token %d after %d, %v, %v", token, lease.Token, granted, err)
			}
		})
	}
}
