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
	runSQL(t, url, "CREATE SCHEMA wrong")
	SetClock(t, url, ahead)
	runSQL(t, url, "ALTER DATABASE "+nameOf(url)+" SET search_path = wrong, public, pg_catalog")
	return url
}

// SetClock changes by how much the clock of a database from WrongClock is ahead.
func SetClock(t testing.TB, url string, ahead time.Duration) {
	t.Helper()
	runSQL(t, url, fmt.Sprintf(`CREATE OR REPLACE FUNCTION wrong.clock_timestamp() RETURNS timestamptz LANGUAGE sql
		AS 'SELECT pg_catalog.clock_timestamp() + make_interval(secs => %f)'`, ahead.Seconds()))
}

func nameOf(url string) string { return path.Base(strings.TrimSuffix(url, options)) }

func runSQL(t testing.TB, url, statement string) {
	t.Helper()
	if err := shared.server.psql(nameOf(url), statement); err != nil {
		t.Fatal(err)
	}
}
