package service_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/store/sqlite"
	"switchyard/internal/store/storetest"
	"switchyard/internal/waittest"
)

// blockedBoard returns the JSON of stages with a story that is blocked for a reason.
func blockedBoard(reason string) string {
	return fmt.Sprintf(`[{"name":"2_current","items":[{"story_id":"1","story_name":"One","blocked":%s,"since_ms":1}]},{"name":"5_done","items":[]}]`, reason)
}

func TestAcknowledgementsEndWithTheirTrouble(t *testing.T) {
	const key = "blocked/alpha/1"
	for _, test := range []struct {
		name     string
		duration time.Duration
		then     func(t *testing.T, s *service.Service, b *boardServer)
		open     bool // needs attention again, once the story is blocked for the same reason as at first
	}{
		{"nothing changes", 0, func(*testing.T, *service.Service, *boardServer) { time.Sleep(30 * 24 * time.Hour) }, false},
		{"before its time is over", 4 * time.Hour, func(*testing.T, *service.Service, *boardServer) { time.Sleep(230 * time.Minute) }, false},
		{"its time is over", 4 * time.Hour, func(*testing.T, *service.Service, *boardServer) { time.Sleep(4 * time.Hour) }, true},
		{"the story is unblocked", 0, func(t *testing.T, s *service.Service, b *boardServer) {
			b.show(t, "http://alpha", blockedBoard("null"))
			open(t, s)
		}, true},
		{"the story is unblocked and blocked again while nobody looks", 0, func(t *testing.T, s *service.Service, b *boardServer) {
			for _, reason := range []string{"null", `"key"`} {
				b.show(t, "http://alpha", blockedBoard(reason))
				time.Sleep(time.Minute)
				s.Pipelines.All(t.Context(), 0) // as in the background
			}
		}, true},
		{"another reason", 0, func(t *testing.T, s *service.Service, b *boardServer) {
			b.show(t, "http://alpha", blockedBoard(`"another"`))
			open(t, s)
		}, true},
		{"its project does not answer for a while", 0, func(t *testing.T, s *service.Service, b *boardServer) {
			b.set("http://alpha", bad(0, "refused"))
			open(t, s)
			time.Sleep(time.Minute)
			open(t, s)
		}, false},
		{"reopened", 0, func(t *testing.T, s *service.Service, b *boardServer) {
			if err := s.Alerts.Reopen(t.Context(), key); err != nil {
				t.Error(err)
			}
		}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := storetest.Dir(t)
			synctest.Test(t, func(t *testing.T) {
				db, err := sqlite.Open(t.Context(), dir)
				if err != nil {
					t.Fatal(err)
				}
				defer db.Close()
				b := &boardServer{}
				b.show(t, "http://alpha", blockedBoard(`"key"`))
				s := overBoard(t, db, b)
				if _, err := s.Projects.Add(t.Context(), "alpha", "http://alpha", nil); err != nil {
					t.Fatal(err)
				}
				if n := open(t, s); n != 1 {
					t.Fatalf("%d alerts at first", n)
				}
				if err := s.Alerts.Acknowledge(asZoe(t), key, test.duration); err != nil {
					t.Fatal(err)
				}
				if n := open(t, s); n != 0 {
					t.Errorf("%d alerts are open after the acknowledgement", n)
				}
				test.then(t, s, b)
				for _, when := range []string{"then", "after a restart"} {
					b.show(t, "http://alpha", blockedBoard(`"key"`))
					open(t, s) // a project that failed is not waited for
					synctest.Wait()
					if n := open(t, s); (n == 1) != test.open {
						t.Errorf("%s: %d alerts are open", when, n)
					}
					s = overBoard(t, db, b)
				}
			})
		})
	}
}

// TestNoReaderWaitsForTheDatabasesLock, which another process holds while an acknowledged trouble ends.
func TestNoReaderWaitsForTheDatabasesLock(t *testing.T) {
	dir := storetest.Dir(t)
	db, err := sqlite.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	b := &boardServer{}
	b.show(t, "http://alpha", blockedBoard(`"key"`))
	s := overBoard(t, db, b)
	if _, err := s.Projects.Add(t.Context(), "alpha", "http://alpha", nil); err != nil {
		t.Fatal(err)
	}
	shown := func() domain.Alerts { return service.NextSnapshot(t.Context(), s).Alerts }
	waittest.Until(t, "the story is blocked", func() bool { return shown().Open == 1 })
	if err := s.Alerts.Acknowledge(asZoe(t), "blocked/alpha/1", 0); err != nil {
		t.Fatal(err)
	}
	other, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "switchyard.db")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	conn, err := other.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	b.show(t, "http://alpha", blockedBoard("null"))
	waittest.Until(t, "the trouble is over", func() bool {
		began := time.Now()
		alerts := shown()
		if took := time.Since(began); took > 3*time.Second { // a write waits for 5 s
			t.Errorf("a page took %v", took)
		}
		return len(alerts.Items) == 0
	})
	if _, err := conn.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "the acknowledgement has ended", func() bool {
		left, err := db.Acknowledgements(t.Context())
		return err == nil && len(left) == 0
	})
}

// open returns the number of alerts that are not acknowledged.
func open(t *testing.T, s *service.Service) int {
	t.Helper()
	time.Sleep(time.Second) // of the bubble's clock: what is known is a second old
	alerts := s.Alerts.List(t.Context())
	for _, a := range alerts.Items {
		if a.Acknowledged != nil && (a.Acknowledged.By != "zoe" || a.Acknowledged.At.IsZero()) {
			t.Errorf("acknowledged %+v", a.Acknowledged)
		}
	}
	return alerts.Open
}

func TestOnlyAlertsAreAcknowledged(t *testing.T) {
	db, err := sqlite.Open(t.Context(), storetest.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s := overBoard(t, db, &boardServer{})
	for name, err := range map[string]error{
		"acknowledge": s.Alerts.Acknowledge(asZoe(t), "blocked/alpha/1", 0), "reopen": s.Alerts.Reopen(t.Context(), "blocked/alpha/1"),
	} {
		if domain.CodeOf(err) != domain.NotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// asZoe returns a context whose actor is zoe.
func asZoe(t *testing.T) context.Context {
	return domain.WithActor(t.Context(), &domain.Actor{Who: "zoe", Via: domain.ViaToken, Role: domain.RoleOperator})
}
