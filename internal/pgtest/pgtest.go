// Package pgtest runs a real PostgreSQL server for the tests of a package, empty and in a temporary directory,
// reachable over a Unix socket and a loopback port. make test installs PostgreSQL if it is missing.
package pgtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"switchyard/internal/waittest"
)

// Server is a running PostgreSQL.
type Server struct {
	dir     string // data directory and socket
	port    int
	account *user.User // that it runs as, nil for the current one
	process *exec.Cmd
	ended   chan struct{} // closed when process has ended
	bin     string
	made    atomic.Int64 // the number of databases created
}

var shared struct {
	sync.Mutex
	server   *Server
	prepared string // the name of the database that Prepared copies
}

// Run runs the tests of a package and then stops the server that they shared. A package whose tests call Database
// must call it in TestMain, and exit with the status that it returns.
func Run(run func() int) int {
	defer func() {
		shared.Lock()
		defer shared.Unlock()
		if shared.server != nil {
			shared.server.Close()
		}
	}()
	return run()
}

// Own starts a server for one test, which may stop it. With -short it skips the test.
func Own(t testing.TB) *Server {
	t.Helper()
	skipShort(t)
	server, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server
}

func skipShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs PostgreSQL")
	}
	if _, err := binaries(); err != nil {
		waittest.Missing(t, err)
	}
}

// Database returns the URL of a new, empty database on the server shared by the tests of a package. With -short it
// skips the test.
func Database(t testing.TB) string {
	t.Helper()
	skipShort(t)
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil {
		server, err := Start()
		if err != nil {
			t.Fatal(err)
		}
		shared.server = server
	}
	url, err := shared.server.Database(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return url
}

// Prepared returns the URL of a new database, a copy of one filled by prepare, which runs once for all tests of a
// package and must leave no connection open. With -short it skips the test.
func Prepared(t testing.TB, prepare func(url string) error) string {
	t.Helper()
	skipShort(t)
	shared.Lock()
	prepared := shared.prepared
	shared.Unlock()
	if prepared == "" {
		url := Database(t)
		if err := prepare(url); err != nil {
			t.Fatal(err)
		}
		shared.Lock()
		shared.prepared = path.Base(strings.TrimSuffix(url, options))
		prepared = shared.prepared
		shared.Unlock()
	}
	url, err := shared.server.database(" TEMPLATE " + prepared)
	if err != nil {
		t.Fatal(err)
	}
	return url
}

// Start starts a server. The caller closes it.
func Start() (_ *Server, err error) {
	s := &Server{}
	if s.bin, err = binaries(); err != nil {
		return nil, err
	}
	if s.account, err = account(); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp("", "pg"); err != nil { // a short path: socket paths are limited to 108 bytes
		return nil, err
	}
	if s.account != nil {
		uid, _ := strconv.Atoi(s.account.Uid)
		gid, _ := strconv.Atoi(s.account.Gid)
		if err := os.Chown(s.dir, uid, gid); err != nil {
			return nil, err
		}
	}
	initdb := s.command("initdb", "--pgdata", s.data(), "--username", "postgres", "--auth", "trust",
		"--no-sync", "--encoding", "UTF8", "--locale", "C")
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	for range 5 { // another process may take the port meanwhile
		if s.port, err = freePort(); err != nil {
			return nil, err
		}
		if err = s.Restart(); err == nil {
			return s, nil
		}
	}
	s.Close()
	return nil, err
}

// Restart starts the server again with the same data and port, after Stop or Kill.
func (s *Server) Restart() error {
	s.process = s.command("postgres", "-D", s.data(), "-k", s.dir, "-p", strconv.Itoa(s.port),
		"-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "full_page_writes=off", "-c", "autovacuum=off",
		"-c", "max_connections=200", "-c", "shared_buffers=32MB")
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	s.process.Stdout, s.process.Stderr = log, log
	endWithUs(s.process)
	if err := s.process.Start(); err != nil {
		return err
	}
	process, ended := s.process, make(chan struct{})
	s.ended = ended
	go func() { _ = process.Wait(); close(ended) }()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for limit := time.After(2 * time.Minute); ; {
		if s.psql("postgres", "SELECT 1") == nil {
			return nil
		}
		select {
		case <-poll.C:
			continue
		case <-s.ended:
		case <-limit:
		}
		break
	}
	s.Kill()
	text, _ := os.ReadFile(log.Name())
	return fmt.Errorf("PostgreSQL does not start:\n%s", text)
}

// Stop ends the server as its administrator would, aborting transactions.
func (s *Server) Stop() { s.end(syscall.SIGINT) }

// Kill ends the server as a crash would.
func (s *Server) Kill() { s.end(syscall.SIGQUIT) }

func (s *Server) end(signal os.Signal) {
	if s.process == nil {
		return
	}
	_ = s.process.Process.Signal(signal)
	<-s.ended
	s.process = nil
}

// Close ends the server and removes its data.
func (s *Server) Close() {
	s.Kill()
	_ = os.RemoveAll(s.dir)
}

// Database creates an empty database and returns its URL.
func (s *Server) Database(context.Context) (url string, err error) { return s.database("") }

const options = "?sslmode=disable"

func (s *Server) database(template string) (url string, err error) {
	name := fmt.Sprintf("db%d", s.made.Add(1))
	if err := s.psql("postgres", "CREATE DATABASE "+name+template); err != nil {
		return "", err
	}
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s%s", s.port, name, options), nil
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) psql(database, statement string) error {
	command := s.command("psql", "-h", s.dir, "-p", strconv.Itoa(s.port),
		"-U", "postgres", "-q", "-c", statement, database)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("psql: %w: %s", err, out)
	}
	return nil
}

func (s *Server) command(name string, args ...string) *exec.Cmd {
	command := exec.Command(filepath.Join(s.bin, name), args...)
	command.Dir = s.dir
	command.Env = append(os.Environ(), "LC_ALL=C")
	runAs(command, s.account)
	return command
}

// binaries returns the directory of PostgreSQL's programs, of the newest version installed.
func binaries() (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres") // Debian's
	if len(found) > 0 {
		slices.Sort(found)
		return filepath.Dir(found[len(found)-1]), nil
	}
	path, err := exec.LookPath("postgres")
	if err != nil {
		return "", fmt.Errorf("PostgreSQL: %w", err)
	}
	return filepath.Dir(path), nil
}

// account returns the user to run the server as: PostgreSQL refuses to run as root.
func account() (*user.User, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if who, err := user.Lookup(name); err == nil {
			return who, nil
		}
	}
	return nil, fmt.Errorf("there is no account postgres to run PostgreSQL as")
}

// freePort returns a free port outside the system's ephemeral range, so that it is still free when the server is
// restarted.
func freePort() (port int, err error) {
	for range 100 {
		port = 10_000 + rand.IntN(20_000)
		var listener net.Listener
		if listener, err = net.Listen("tcp", fmt.Sprint("127.0.0.1:", port)); err == nil {
			return port, listener.Close()
		}
	}
	return 0, err
}
