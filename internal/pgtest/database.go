package pgtest

import (
	"fmt"
	"path"
	"strings"
	"testing"
	"time"
)

// WrongClock returns the URL of a new, empty database in which clock_timestamp is ahead of this machine's clock.
func WrongClock(t testing.TB, ahead time.Duration) string {
	t.Helper()
	url := Database(t)
	Execute(t, url, "CREATE SCHEMA wrong")
	SetClock(t, url, ahead)
	Execute(t, url, "ALTER DATABASE "+nameOf(url)+" SET search_path = wrong, public, pg_catalog")
	return url
}

// SetClock changes by how much the clock of a database from WrongClock is ahead.
func SetClock(t testing.TB, url string, ahead time.Duration) {
	t.Helper()
	Execute(t, url, fmt.Sprintf(`CREATE OR REPLACE FUNCTION wrong.clock_timestamp() RETURNS timestamptz LANGUAGE sql
		AS 'SELECT pg_catalog.clock_timestamp() + make_interval(secs => %f)'`, ahead.Seconds()))
}

// Writer makes a role that may write to what is in a database, and make more, and returns its name.
func Writer(t testing.TB, url string) (role string) {
	t.Helper()
	role = "writer_" + nameOf(url)
	Execute(t, url, "CREATE ROLE "+role+" LOGIN")
	for _, what := range []string{"SCHEMA public", "ALL TABLES IN SCHEMA public", "ALL SEQUENCES IN SCHEMA public"} {
		Execute(t, url, "GRANT ALL ON "+what+" TO "+role)
	}
	return role
}

func nameOf(url string) string { return path.Base(strings.TrimSuffix(url, options)) }

// Execute executes a statement as the superuser.
func Execute(t testing.TB, url, statement string) {
	t.Helper()
	if err := shared.server.psql(nameOf(url), statement); err != nil {
		t.Fatal(err)
	}
}
