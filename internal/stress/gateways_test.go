//go:build stress

package stress

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"switchyard/internal/pgtest"
)

// member is one of several gateways on a database.
type member struct {
	*server
	wire *wire // to PostgreSQL
}

// freeze stops the process for a while, as on a machine that is suspended or out of memory.
func (m *member) freeze(duration time.Duration) {
	m.t.Helper()
	if err := m.current.Process.Signal(syscall.SIGSTOP); err != nil {
		m.t.Fatal(err)
	}
	time.Sleep(duration)
	if err := m.current.Process.Signal(syscall.SIGCONT); err != nil {
		m.t.Fatal(err)
	}
}

// killAndFreeze kills the gateway, starts it again and freezes it, each for longer than another one takes to take over its duties.
func (m *member) killAndFreeze() {
	m.t.Helper()
	m.kill()
	time.Sleep(7 * time.Second)
	m.start()
	time.Sleep(2 * time.Second)
	m.freeze(frozen)
	time.Sleep(2 * time.Second)
}

// stop ends the gateway as its administrator would.
func (m *member) stop() {
	m.t.Helper()
	m.lives[len(m.lives)-1].ended = time.Now()
	if err := m.current.Process.Signal(syscall.SIGTERM); err != nil {
		m.t.Fatal(err)
	}
	if err := m.current.Wait(); err != nil {
		m.t.Errorf("a clean stop: %v, see %s", err, m.log.Name())
	}
	m.current = nil
}

// lastLines returns the last lines of the log.
func (m *member) lastLines(count int) string {
	text, err := os.ReadFile(m.log.Name())
	if err != nil {
		return err.Error()
	}
	lines := strings.SplitAfter(string(text), "\n")
	return strings.Join(lines[max(0, len(lines)-count):], "")
}

// group is three gateways on one PostgreSQL.
type group struct {
	t        *testing.T
	postgres *pgtest.Server
	database string // its address, without a wire
	members  []*member
	hoard    hoard
}

// newGroup starts a group. If token is not "", all requests need it.
func newGroup(t *testing.T, token string) *group {
	t.Helper()
	return newGroupOf(t, build(t), token, nil)
}

// newGroupOf starts gateways of a program, each with the variables that more returns.
func newGroupOf(t *testing.T, program, token string, more func(i int) []string) *group {
	t.Helper()
	postgres, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(postgres.Close)
	database, err := postgres.Database(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	direct, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	g := &group{t: t, postgres: postgres, database: database}
	dir := t.TempDir()
	for i := range 3 {
		w := newWire(t, loopback(t, 10+i), direct.Host)
		through := *direct
		through.Host = w.listener.Addr().String()
		command := []string{program, "gateway", "--data", filepath.Join(dir, fmt.Sprint("data-", i)), "--database", through.String()}
		if token != "" {
			file := filepath.Join(dir, "token")
			if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
				t.Fatal(err)
			}
			command = append(command, "--admin-token-file", file)
		}
		m := &member{newServer(t, fmt.Sprint("gateway-", i), loopback(t, 1+i), command...), w}
		m.mayFail = true // without its database
		if more != nil {
			m.more = more(i)
		}
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("gateway %d said at last:\n%s", i, m.lastLines(20))
			}
		})
		m.start()
		g.members = append(g.members, m)
	}
	g.await(soon) // they serve before they have their database
	return g
}

// await waits until all gateways are ready.
func (g *group) await(limit time.Duration) {
	g.t.Helper()
	for i, m := range g.members {
		if !until(limit, func() bool {
			status, err := call(g.t.Context(), http.MethodGet, m.url+"/readyz", "", nil, nil)
			return err == nil && status == http.StatusOK
		}) {
			g.t.Fatalf("gateway %d is not ready after %v, see %s", i, limit, m.log.Name())
		}
	}
}
