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
	name := path.Base(strings.TrimSuffix(url, options))
	for _, statement := range []string{
		"CREATE SCHEMA wrong",
		fmt.Sprintf("CREATE FUNCTION wrong.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS 'SELECT pg_catalog.clock_timestamp() + make_interval(secs => %f)'", ahead.Seconds()),
		"ALTER DATABASE " + name + " SET search_path = wrong, public, pg_catalog",
	} {
		if err := shared.server.psql(name, statement); err != nil {
			t.Fatal(err)
		}
	}
	return url
}
