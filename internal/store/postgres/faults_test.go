package postgres_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"switchyard/internal/domain"
	"switchyard/internal/pgtest"
	"switchyard/internal/store/postgres"
	"switchyard/internal/waittest"
)

// proxy is a proxy between a gateway and its database.
type proxy struct {
	target string
	silent atomic.Bool // forwards nothing
	mu     sync.Mutex
	conns  []net.Conn
}

// throughProxy returns the address of a database through a new proxy.
func throughProxy(t *testing.T, address string) (*proxy, string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	p := &proxy{target: u.Host}
	t.Cleanup(p.cut)
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go p.pass(client)
		}
	}()
	u.Host = listener.Addr().String()
	return p, u.String()
}

func (p *proxy) pass(client net.Conn) {
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		client.Close()
		return
	}
	p.mu.Lock()
	p.conns = append(p.conns, client, server)
	p.mu.Unlock()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		both.Go(func() {
			defer way[0].Close()
			defer way[1].Close()
			b := make([]byte, 32<<10)
			for {
				n, err := way[0].Read(b)
				if p.silent.Load() {
					continue // it is lost, and nobody learns of it
				}
				if n > 0 {
					_, _ = way[1].Write(b[:n])
				}
				if err != nil {
					return
				}
			}
		})
	}
	both.Wait()
}

// cut ends all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

func TestADatabaseThatSaysNothingIsAnErrorWithinThreeSeconds(t *testing.T) {
	t.Parallel()
	proxy, address := throughProxy(t, pgtest.Database(t))
	db := open(t, address)
	if err := db.SetState(t.Context(), "key", "before"); err != nil {
		t.Fatal(err)
	}
	proxy.silent.Store(true)
	// No caller waits forever, even without a deadline or behind others.
	var waiting sync.WaitGroup
	for name, do := range map[string]func() error{
		"ping":  func() error { return db.Ping(t.Context()) },
		"write": func() error { return db.SetState(t.Context(), "key", "lost") },
		"read":  func() error { _, err := db.Sessions(t.Context()); return err },
		"lease": func() error { _, _, err := db.Lease().Gateways(t.Context()); return err },
	} {
		waiting.Go(func() {
			began := time.Now()
			err := do()
			if took := time.Since(began); err == nil || took > 30*time.Second {
				t.Errorf("%s: %v after %s", name, err, took)
			}
			if name != "lease" && (domain.CodeOf(err) != domain.Unavailable || domain.MessageOf(err) != "the database cannot be reached") {
				t.Errorf("%s: %q, %v", name, domain.MessageOf(err), err)
			}
		})
	}
	waiting.Wait()
	if _, err := db.WriteFailure(); err == nil {
		t.Error("the failed write does not show")
	}
	// Once the database is known not to respond, only one caller at a time waits, to check it.
	waittest.Until(t, "calls that fail at once", func() bool {
		began, atOnce := time.Now(), 0
		for time.Since(began) < 50*time.Millisecond {
			if _, err := db.Sessions(t.Context()); domain.CodeOf(err) != domain.Unavailable {
				t.Fatalf("%v", err)
			}
			atOnce++
		}
		return atOnce > 3
	})
	proxy.silent.Store(false)
	proxy.cut()
	back := time.Now()
	for db.SetState(t.Context(), "key", "after") != nil {
		if time.Since(back) > time.Minute {
			t.Fatal("the database is back, but is not used")
		}
	}
	if _, err := db.WriteFailure(); err != nil {
		t.Errorf("after a good write: %v", err)
	}
}

func TestNoticesComeFromOtherGatewaysAlsoAfterTheConnectionWasLost(t *testing.T) {
	t.Parallel()
	address := pgtest.Database(t)
	proxy, lossy := throughProxy(t, address)
	one, other := open(t, address), open(t, lossy)
	ctx, cancel := context.WithCancel(t.Context())
	ended, begun := make(chan error, 1), other.Changed(domain.TopicProjects)
	go func() { ended <- other.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	wait := func(changed <-chan struct{}, what string) {
		t.Helper()
		select {
		case <-changed:
		case <-time.After(time.Minute):
			t.Fatalf("%s was not told", what)
		}
	}
	wait(begun, "the beginning")
	for round := range 2 {
		projects, acknowledgements := other.Changed(domain.TopicProjects), other.Changed(domain.TopicAcknowledgements)
		if err := one.AddProjects(t.Context(), nil, "", domain.Project{Name: string(rune('a' + round)), URL: "http://x"}); err != nil {
			t.Fatal(err)
		}
		wait(projects, "a new project")
		select {
		case <-acknowledgements:
			t.Error("what was not changed was told")
		default:
		}
		if err := one.AddProjects(t.Context(), nil, "", domain.Project{Name: "a", URL: "http://x"}); domain.CodeOf(err) != domain.Conflict {
			t.Errorf("one of the same name: %v", err)
		}
		if round == 0 {
			lost := other.Changed(domain.TopicEvents)
			proxy.cut()
			wait(lost, "that something may have been missed")
		}
	}
}

func TestGatewaysThatStartAtTheSameTimeMakeOneDatabase(t *testing.T) {
	t.Parallel()
	address := pgtest.Database(t)
	var starting sync.WaitGroup
	for range 4 {
		starting.Go(func() {
			db, err := postgres.Open(t.Context(), address)
			if err != nil {
				t.Error(err)
				return
			}
			if err := db.Ping(t.Context()); err != nil {
				t.Error(err)
			}
			db.Close()
		})
	}
	starting.Wait()
}

func TestADatabaseOfANewerVersionIsRefused(t *testing.T) {
	t.Parallel()
	address := pgtest.Database(t)
	open(t, address)
	execute(t, address, "INSERT INTO switchyard_schema VALUES (1000)")
	if _, err := postgres.Open(t.Context(), address); err == nil || !strings.Contains(err.Error(), "written by a newer version of switchyard (schema 1000") || domain.CodeOf(err) == domain.Unavailable {
		t.Errorf("Open = %v", err)
	}
}

func TestADatabaseOfADevelopmentVersionIsRefused(t *testing.T) {
	t.Parallel()
	address := pgtest.Database(t)
	execute(t, address, "CREATE TABLE schema_version (version INT NOT NULL); INSERT INTO schema_version VALUES (4); CREATE TABLE event_projects ()")
	_, err := postgres.Open(t.Context(), address)
	if err == nil || !strings.Contains(err.Error(), "the last commit that reads it is 4d58293") || domain.CodeOf(err) == domain.Unavailable {
		t.Errorf("Open = %v", err)
	}
}

func TestWhetherToWaitForADatabase(t *testing.T) {
	t.Parallel()
	address := pgtest.Database(t)
	gone, _, _ := strings.Cut(address, "?")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() { // accepts and says nothing
		for {
			if c, err := listener.Accept(); err != nil {
				return
			} else {
				go io.Copy(io.Discard, c) //nolint:errcheck // until it is closed
			}
		}
	}()
	for name, c := range map[string]struct {
		address string
		wait    bool
	}{
		"nobody there":   {"postgres://postgres@127.0.0.1:1/x?sslmode=disable", true},
		"nobody answers": {"postgres://postgres@" + listener.Addr().String() + "/x?sslmode=disable", true},
		"no such one":    {gone + "_missing?sslmode=disable", false},
		"no such option": {gone + "?sslmode=nonsense", false},
	} {
		began := time.Now()
		_, err := postgres.Open(t.Context(), c.address)
		if err == nil || (domain.CodeOf(err) == domain.Unavailable) != c.wait || time.Since(began) > 30*time.Second {
			t.Errorf("%s: %v after %s", name, err, time.Since(began))
		}
	}
}

func TestSearchingWorksWithoutAnIndexOfWords(t *testing.T) {
	t.Parallel()
	address := pgtest.Database(t)
	role := "limited_" + path.Base(strings.TrimSuffix(address, "?sslmode=disable")) // of all databases of the server
	execute(t, address, "CREATE ROLE "+role+" LOGIN; GRANT CREATE ON SCHEMA public TO "+role)
	db := open(t, strings.Replace(address, "postgres@", role+"@", 1))
	if db.SearchesUseIndex() {
		t.Error("the role was allowed to make an extension")
	}
	if _, err := db.AppendEvents(t.Context(), []domain.FeedRead{read("alpha", 0, 1, 20)}); err != nil {
		t.Fatal(err)
	}
	if page, err := db.Events(t.Context(), domain.EventQuery{Text: "uberblick 7", Limit: 9}); err != nil || len(page.Events) != 2 {
		t.Errorf("found %v, %v", ids(page.Events), err)
	}
	if db := open(t, address); !db.SearchesUseIndex() { // somebody who may has come
		t.Error("the index was not made later")
	}
}

// TestAGatewayThatStopsWithinATransactionHoldsUpOthersForSeconds: a frozen gateway must not hold its locks forever.
func TestAGatewayThatStopsWithinATransactionHoldsUpOthersForSeconds(t *testing.T) {
	t.Parallel()
	address := pgtest.Database(t)
	db := open(t, address)
	held := make(chan struct{})
	release := make(chan struct{})
	go func() {
		frozen, err := postgres.Open(context.WithoutCancel(t.Context()), address)
		if err != nil {
			t.Error(err)
			close(held)
			return
		}
		defer frozen.Close()
		_ = frozen.HoldStream(func() { close(held); <-release })
	}()
	<-held
	defer close(release)
	began := time.Now()
	for {
		_, err := db.AppendEvents(t.Context(), []domain.FeedRead{read("alpha", 0, 1, 1)})
		if err == nil {
			break
		}
		if time.Since(began) > time.Minute || domain.CodeOf(err) != domain.Unavailable {
			t.Fatalf("%v after %s", err, time.Since(began))
		}
	}
}

func execute(t *testing.T, address, statement string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), statement); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
}
