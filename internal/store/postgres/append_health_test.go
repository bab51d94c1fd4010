package postgres_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"switchyard/internal/cluster"
	"switchyard/internal/domain"
	"switchyard/internal/pgtest"
	"switchyard/internal/waittest"
)

// TestAppendsThatFailShowUntilTheySucceed, whatever else succeeds: renewals of the lease, small writes, attempts at a
// harmless write.
func TestAppendsThatFailShowUntilTheySucceed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		begin, end string // statements
		want       string
	}{
		"revoked":      {"REVOKE INSERT ON events FROM postgres", "GRANT INSERT ON events TO postgres", "the database denies this login a required privilege"},
		"foreign lock": {"BEGIN; LOCK TABLE events IN EXCLUSIVE MODE", "COMMIT", "the database takes too long"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.Database(t)
			owner := open(t, url)
			role := pgtest.Writer(t, url)
			db := open(t, strings.Replace(url, "postgres@", role+"@", 1))
			admin, err := pgx.Connect(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			defer admin.Close(t.Context())
			run := func(statement string) {
				t.Helper()
				if _, err := admin.Exec(t.Context(), strings.ReplaceAll(statement, "postgres", role)); err != nil {
					t.Fatal(err)
				}
			}
			events := []domain.FeedRead{read("alpha", 0, 1, 1)}
			run(c.begin)
			_, err = db.AppendEvents(t.Context(), events)
			if domain.CodeOf(err) != domain.Unavailable || domain.MessageOf(err) != c.want {
				t.Fatalf("appending: %v", err)
			}
			for i, write := range []func() error{
				func() error { return db.SetState(t.Context(), "small", "value") },
				func() error {
					_, _, err := db.Lease().Renew(t.Context(), cluster.Gateway{ID: "one", Name: "one"}, time.Minute)
					return err
				},
				func() error { _ = db.TryWrite(t.Context()); return nil },
			} {
				if err := write(); err != nil {
					t.Error(err)
				}
				if _, err := db.WriteFailure(); domain.MessageOf(err) != c.want {
					t.Errorf("after write %d the failure is %v", i, err)
				}
			}
			run(c.end)
			if err := db.TryWrite(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := db.WriteFailure(); err != nil {
				t.Errorf("when events can be appended again: %v", err)
			}
			if _, err := db.AppendEvents(t.Context(), events); err != nil {
				t.Error(err)
			}
			if _, err := owner.WriteFailure(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestARoleThatWasReadOnlyWritesAgain without anybody cutting the connections that were made meanwhile.
func TestARoleThatWasReadOnlyWritesAgain(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	open(t, url)
	role := pgtest.Writer(t, url)
	db := open(t, strings.Replace(url, "postgres@", role+"@", 1))
	writes := map[string]func() error{
		"state": func() error { return db.SetState(t.Context(), "key", "value") },
		"append": func() error {
			_, err := db.AppendEvents(t.Context(), []domain.FeedRead{read("alpha", 0, 1, 1)})
			return err
		},
		"lease": func() error {
			_, _, err := db.Lease().Renew(t.Context(), cluster.Gateway{ID: "one", Name: "one"}, time.Minute)
			return err
		},
	}
	execute(t, url, "ALTER ROLE "+role+" SET default_transaction_read_only = on")
	execute(t, url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '"+role+"'")
	for name, write := range writes {
		waittest.Until(t, name+" is refused", func() bool { return strings.Contains(domain.MessageOf(db.Wrote(write())), "read-only") })
	}
	if err := db.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	execute(t, url, "ALTER ROLE "+role+" RESET default_transaction_read_only")
	for name, write := range writes {
		failed := 0
		waittest.Until(t, name+" succeeds", func() bool {
			if write() == nil {
				return true
			}
			failed++
			return false
		})
		if failed > 3 {
			t.Errorf("%s failed %d times after the role could write", name, failed)
		}
	}
	if err := db.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := db.WriteFailure(); err != nil {
		t.Errorf("it still says %v", err)
	}
}

// TestASlowLinkMakesAppendsSlow, which a refusal by the server does not.
func TestASlowLinkMakesAppendsSlow(t *testing.T) {
	t.Parallel()
	proxy, address := throughProxy(t, pgtest.Database(t))
	db := open(t, address)
	events := []domain.FeedRead{read("alpha", 0, 1, 1)}
	if _, err := db.AppendEvents(t.Context(), events); err != nil || db.SlowAppends() != 0 {
		t.Fatalf("%v, slow for %v", err, db.SlowAppends())
	}
	proxy.silent.Store(true)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for db.SlowAppends() < 3*time.Second && t.Context().Err() == nil {
			_, _ = db.AppendEvents(t.Context(), events)
		}
	}()
	waittest.Until(t, "appends are slow", func() bool { return db.SlowAppends() > 3*time.Second })
	<-done
	proxy.silent.Store(false)
	proxy.cut()
	waittest.Until(t, "events are appended again", func() bool { _, err := db.AppendEvents(t.Context(), events); return err == nil })
	if slow := db.SlowAppends(); slow != 0 {
		t.Errorf("still slow for %v", slow)
	}
}
