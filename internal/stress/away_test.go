//go:build stress

package stress

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// noticed is how soon a gateway must report that its database is unreachable.
const noticed = 3 * time.Second

// TestGatewaysWithoutTheirDatabaseShowWhatTheyKnow: however the database becomes unreachable, the last known state is shown, changes
// are refused with 503, and everything recovers by itself.
func TestGatewaysWithoutTheirDatabaseShowWhatTheyKnow(t *testing.T) {
	g := newGroup(t, "")
	must(t, "POST", g.members[0].url+"/api/gateway/projects", map[string]string{"name": "alpha", "url": "http://127.0.0.1:1"}, nil)
	if !until(everywhere, func() bool { return g.shows("/api/gateway", "alpha") }) {
		t.Fatalf("a new project is not known everywhere after %v", everywhere)
	}
	for _, c := range []struct {
		what       string
		away, back func()
	}{
		{"stopped", g.postgres.Stop, g.restart},
		{"crashed", g.postgres.Kill, g.restart},
		{
			"cut off",
			func() {
				for _, m := range g.members {
					m.wire.blackhole()
				}
			},
			func() {
				for _, m := range g.members {
					m.wire.heal()
				}
			},
		},
		{
			"read-only",
			func() { g.execute("ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()") },
			func() {
				g.execute("SET default_transaction_read_only = off", "ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_reload_conf()")
			},
		},
		{"out of connections", g.takeConnections, func() { g.hoard.release() }},
	} {
		t.Run(c.what, func(t *testing.T) {
			began := time.Now()
			c.away()
			if !until(noticed, func() bool { return g.all("/readyz", http.StatusServiceUnavailable) }) {
				t.Errorf("some gateway is ready %v after its database was %s", time.Since(began), c.what)
			}
			noticed := time.Since(began)
			for path, status := range map[string]int{
				"/healthz": 200, "/api/gateway": 200, "/api/gateway/pipeline": 200, "/gateway/agents": 200, "/": 200, "/projects": 200, "/agents": 200,
				"/metrics": 200,
			} {
				if !g.all(path, status) {
					t.Errorf("%s: %v, want %d", path, g.statuses(path), status)
				}
			}
			if !g.shows("/api/gateway", "alpha") || !g.shows("/projects", "alpha") {
				t.Error("what was known is not shown")
			}
			for i, m := range g.members {
				for _, write := range []struct{ method, path string }{
					{"POST", "/api/gateway/switch"}, {"DELETE", "/api/gateway/projects/alpha"}, {"POST", "/gateway/tokens"},
				} {
					status, err := call(t.Context(), write.method, m.url+write.path, "", map[string]string{"project": "alpha"}, nil)
					if err != nil || status != http.StatusServiceUnavailable {
						t.Errorf("gateway %d: %s %s: status %d, %v", i, write.method, write.path, status, err)
					}
				}
			}
			if c.what != "read-only" && !g.all("/api/gateway/events?after=0", http.StatusServiceUnavailable) {
				t.Errorf("the stream answers %v", g.statuses("/api/gateway/events?after=0"))
			}
			began = time.Now()
			c.back()
			if !until(returned, func() bool { return g.all("/readyz", http.StatusOK) && g.writes() }) {
				t.Errorf("%v after the database's return /readyz answers %v, and changes %v", time.Since(began), g.statuses("/readyz"), g.changes())
			}
			t.Logf("noticed after %v, back after %v", noticed.Round(10*time.Millisecond), time.Since(began).Round(10*time.Millisecond))
		})
	}
}

// statuses returns each gateway's status for a path, all requested concurrently.
func (g *group) statuses(path string) []int {
	return g.each(func(m *member) int {
		status, _ := call(g.t.Context(), http.MethodGet, m.url+path, "", nil, nil)
		return status
	})
}

func (g *group) each(ask func(m *member) int) []int {
	statuses := make([]int, len(g.members))
	var all sync.WaitGroup
	for i, m := range g.members {
		all.Go(func() { statuses[i] = ask(m) })
	}
	all.Wait()
	return statuses
}

func (g *group) all(path string, status int) bool {
	return !slices.ContainsFunc(g.statuses(path), func(s int) bool { return s != status })
}

// shows reports whether each gateway's response for a path contains text.
func (g *group) shows(path, text string) bool {
	for _, m := range g.members {
		if _, body := get(g.t, m.url+path); !strings.Contains(body, text) {
			return false
		}
	}
	return true
}

// changes returns each gateway's status for a change.
func (g *group) changes() []int {
	return g.each(func(m *member) int {
		status, _ := call(g.t.Context(), "POST", m.url+"/api/gateway/switch", "", map[string]string{"project": "alpha"}, nil)
		return status
	})
}

// writes reports whether each gateway stores a change.
func (g *group) writes() bool {
	return !slices.ContainsFunc(g.changes(), func(status int) bool { return status != http.StatusOK })
}

func (g *group) restart() {
	if err := g.postgres.Restart(); err != nil {
		g.t.Fatal(err)
	}
}

func (g *group) execute(statements ...string) {
	connection, err := pgx.Connect(g.t.Context(), g.database)
	if err != nil {
		g.t.Fatal(err)
	}
	defer connection.Close(context.Background())
	for _, statement := range statements {
		if _, err := connection.Exec(g.t.Context(), statement); err != nil {
			g.t.Fatalf("%s: %v", statement, err)
		}
	}
}

// hoard holds all connections that the database allows.
type hoard []*pgx.Conn

func (h *hoard) release() {
	for _, connection := range *h {
		_ = connection.Close(context.Background())
	}
	*h = nil
}

// takeConnections takes all connections, including the gateways'.
func (g *group) takeConnections() {
	first, err := pgx.Connect(g.t.Context(), g.database)
	if err != nil {
		g.t.Fatal(err)
	}
	g.hoard = hoard{first}
	g.t.Cleanup(g.hoard.release)
	for {
		for {
			connection, err := pgx.Connect(g.t.Context(), g.database)
			if err != nil {
				break
			}
			g.hoard = append(g.hoard, connection)
		}
		var ended int
		const end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'switchyard'"
		if err := first.QueryRow(g.t.Context(), end).Scan(&ended); err != nil {
			g.t.Fatal(err)
		}
		if ended == 0 {
			return
		}
	}
}

// get returns the response for an address.
func get(t *testing.T, address string) (status int, body string) {
	t.Helper()
	response, err := client.Get(address)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer response.Body.Close()
	var text strings.Builder
	if _, err := io.Copy(&text, response.Body); err != nil {
		t.Error(err)
	}
	return response.StatusCode, text.String()
}
