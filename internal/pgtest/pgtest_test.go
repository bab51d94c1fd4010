package pgtest

import (
	"database/sql"
	"os"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
)

func TestMain(m *testing.M) { os.Exit(Run(m.Run)) }

// TestDatabasesAreEmptyAndApart: each test has a separate database, which survives a restart of the server.
func TestDatabasesAreEmptyAndApart(t *testing.T) {
	one, other := Database(t), Database(t)
	execute(t, one, "CREATE TABLE things (name TEXT)")
	execute(t, other, "CREATE TABLE things (name TEXT)")
	shared.server.Stop()
	if err := shared.server.Restart(); err != nil {
		t.Fatal(err)
	}
	execute(t, one, "INSERT INTO things VALUES ('kept')")
}

func execute(t *testing.T, url, statement string) {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}
