package postgres_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"switchyard/internal/cluster"
	"switchyard/internal/domain"
	"switchyard/internal/pgtest"
)

// TestAFullDiskIsFullUntilMuchFits: there is no space for events and new tables, although small writes still succeed.
func TestAFullDiskIsFullUntilMuchFits(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	db := open(t, url)
	admin, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(t.Context())
	execute := func(statement string) {
		t.Helper()
		if _, err := admin.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	execute(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'full' USING ERRCODE = 'disk_full'; END $$`)
	execute(`CREATE FUNCTION refuse_tables() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'full' USING ERRCODE = 'disk_full'; END $$`)
	execute(`CREATE TRIGGER full_disk BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION refuse()`)
	execute(`CREATE EVENT TRIGGER full_disk ON ddl_command_start EXECUTE FUNCTION refuse_tables()`)
	if _, err := db.AppendEvents(t.Context(), []domain.FeedRead{read("alpha", 0, 1, 1)}); domain.CodeOf(err) != domain.Unavailable {
		t.Fatalf("appending to a full disk: %v", err)
	}
	check := func(when string, full bool) {
		t.Helper()
		if _, err := db.WriteFailure(); (err != nil) != full {
			t.Errorf("%s the last failure is %v", when, err)
		}
	}
	check("at first", true)
	if err := db.SetState(t.Context(), "small", "value"); err != nil {
		t.Fatal(err)
	}
	check("after a small write", true)
	if _, _, err := db.Lease().Renew(t.Context(), cluster.Gateway{ID: "one", Name: "one"}, time.Minute); err != nil {
		t.Fatal(err)
	}
	check("after a renewal", true)
	if err := db.TryWrite(t.Context()); domain.CodeOf(err) != domain.Unavailable {
		t.Errorf("writing much to a full disk: %v", err)
	}
	check("after another failure", true)

	execute(`ALTER EVENT TRIGGER full_disk DISABLE`)
	execute(`DROP TRIGGER full_disk ON events`)
	if err := db.TryWrite(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("with space again", false)
	if _, err := db.AppendEvents(t.Context(), []domain.FeedRead{read("alpha", 0, 1, 1)}); err != nil {
		t.Error(err)
	}
}
