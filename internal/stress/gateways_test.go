//go:build stress

package stress

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"switchyard/internal/pgtest"
)

// everywhere is how soon a change made at one gateway must apply at all.
const everywhere = time.Second

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
	token    string // of an administrator, "" for none
	hoard    hoard
}

// leader waits until one of the gateways leads, and returns it.
func (g *group) leader() (found *member) {
	g.t.Helper()
	if !until(takenOver, func() bool { found = g.leaderNow(); return found != nil }) {
		g.t.Fatal("no gateway leads")
	}
	return found
}

// leaderNow returns the gateway that leads, nil if none does.
func (g *group) leaderNow() *member {
	g.t.Helper()
	leads := func(m *member) bool {
		request, err := http.NewRequestWithContext(g.t.Context(), http.MethodGet, m.url+"/metrics", nil)
		if err != nil {
			g.t.Fatal(err)
		}
		if g.token != "" {
			request.Header.Set("Authorization", "Bearer "+g.token)
		}
		answer, err := client.Do(request)
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		return err == nil && strings.Contains(string(text), "\nswitchyard_leader 1\n")
	}
	if i := slices.IndexFunc(g.members, leads); i >= 0 {
		return g.members[i]
	}
	return nil
}

// killAndFreeze kills the leader, starts it again and freezes the next leader, each for longer than a take-over takes.
func (g *group) killAndFreeze() {
	g.t.Helper()
	killed := g.leader()
	killed.kill()
	time.Sleep(7 * time.Second)
	killed.start()
	time.Sleep(2 * time.Second)
	g.leader().freeze(frozen)
	time.Sleep(2 * time.Second)
}

// changeLeaders kills, freezes, cuts off and stops whoever leads, each gateway once, and returns how often.
func (g *group) changeLeaders() (changes int) {
	g.t.Helper()
	for range g.members {
		g.killAndFreeze()
		m := g.leader()
		m.wire.blackhole()
		time.Sleep(frozen)
		m.wire.heal()
		time.Sleep(2 * time.Second)
		m = g.leader()
		m.stop()
		m.start()
		changes += 4
	}
	return changes
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
	g := &group{t: t, postgres: postgres, database: database, token: token}
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
