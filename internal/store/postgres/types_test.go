package postgres_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/internal/cluster"
	"switchyard/internal/domain"
	"switchyard/internal/pgtest"
	"switchyard/internal/store/storetest"
	"switchyard/internal/waittest"
)

// TestAnAddressMaySayThatTheServerDescribesNoStatement: then only the client knows the types of arguments. make test sets the build
// tag of released programs.
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
			storetest.AskAll(t, db)
			duties := db.Duties()
			for id, lease := range map[string]time.Duration{"short": time.Millisecond, "long": time.Hour} {
				if err := duties.Join(t.Context(), cluster.Gateway{ID: id, Name: id}, lease); err != nil {
					t.Fatal(err)
				}
			}
			waittest.Until(t, "a short lease is over", func() bool {
				live, _, err := duties.Renew(t.Context(), "long", time.Hour)
				return err == nil && slices.Equal(live, []string{"long"})
			})
			if granted, err := duties.Claim(t.Context(), "long", []string{domain.FeedDuty("alpha")}); err != nil || len(granted) != 1 {
				t.Errorf("granted: %v, %v", granted, err)
			}
		})
	}
}
