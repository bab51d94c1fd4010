package poll_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/poll"
	"switchyard/internal/upstream"
	"switchyard/internal/waittest"
)

// memory is a gateway that stores in memory.
type memory struct {
	mu       sync.Mutex
	registry *domain.Registry
	changed  chan struct{}
	cursors  []domain.FeedCursor
	reads    []domain.FeedRead
	reported []string
	fail     error                      // of Record and FeedCursors
	before   func(read domain.FeedRead) // called by Record before it stores
}

func (m *memory) Registry() *domain.Registry {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.registry
}

func (m *memory) Changed() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}

// register makes projects the whole registry.
func (m *memory) register(projects ...domain.Project) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.registry = &domain.Registry{Projects: projects}
	if m.changed != nil {
		close(m.changed)
	}
	m.changed = make(chan struct{})
}

func (m *memory) setFailure(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = err
}

func (m *memory) Cursors(_ context.Context, project string) ([]domain.FeedCursor, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(m.cursors), func(c domain.FeedCursor) bool { return c.Project != project }), m.fail
}

func (m *memory) Record(_ context.Context, read domain.FeedRead) error {
	if m.before != nil {
		m.before(read)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return m.fail
	}
	m.reads = append(m.reads, read)
	m.cursors = slices.DeleteFunc(m.cursors, func(c domain.FeedCursor) bool { return c.Project == read.Cursor.Project && c.URL == read.Cursor.URL })
	m.cursors = append(m.cursors, read.Cursor)
	return nil
}

// RefetchIfChanged keeps the results: "v2" for a version, followed by "+" if there were records, or "failed".
func (m *memory) RefetchIfChanged(_ domain.Project, r domain.FeedResult) {
	m.mu.Lock()
	defer m.mu.Unlock()
	text := r.Version
	if r.News {
		text += "+"
	}
	if r.Failed {
		text += "failed"
	}
	m.reported = append(m.reported, text)
}

// stream returns what was stored of a project: the stamps of records, and gaps as "missed:stamp".
func (m *memory) stream(project string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var texts []string
	seen := map[string]bool{}
	for _, read := range m.reads {
		if read.Cursor.Project != project {
			continue
		}
		for _, r := range read.Records {
			if seen[string(r.JSON)] {
				continue
			}
			seen[string(r.JSON)] = true
			text := fmt.Sprint(r.At.UnixMilli())
			if r.Type == domain.FeedGap {
				text = fmt.Sprintf("%d:%s", r.Details().Missed, text)
			}
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, " ")
}

// stored returns how many reads were recorded.
func (m *memory) stored() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.reads)
}

// server is a correct project server, with switches for faults.
type server struct {
	mu       sync.Mutex
	instance string
	sequence int64
	pipeline string // the version, "" for none
	board    string // its JSON, over sockets
	records  []domain.Record
	size     int // of the buffer
	news     chan struct{}

	plain       bool                         // knows neither wait nor the headers
	impatient   bool                         // has the headers, but ignores wait
	deaf        bool                         // ignores since
	down        error                        // its answer to every request
	hanging     bool                         // never answers
	answer      func(a *upstream.FeedAnswer) // changes each answer
	asked       []ask                        // every request
	beforeReply func(ctx context.Context)    // called before an answer goes out
	past        func(ctx context.Context, after int64, limit int) (upstream.HistoryPart, error)
}

type ask struct {
	since int64
	wait  time.Duration
	at    time.Time
}

func newServer(instance string, stamps ...int64) *server {
	s := &server{instance: instance, size: 500, news: make(chan struct{})}
	s.push(stamps...)
	return s
}

// stamped returns a record with that stamp.
func stamped(stamp int64) domain.Record {
	r, err := domain.ParseRecord(json.RawMessage(fmt.Sprintf(`{"type":"stage_transition","story_id":"s","timestamp_ms":%d}`, stamp)))
	if err != nil {
		panic(err)
	}
	return r
}

func (s *server) push(stamps ...int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, stamp := range stamps {
		s.sequence++
		s.records = append(s.records, stamped(stamp))
	}
	s.records = slices.Clone(s.records[max(0, len(s.records)-s.size):])
	close(s.news)
	s.news = make(chan struct{})
}

// restart gives the server a new instance with an empty buffer; requests under way are aborted.
func (s *server) restart(instance string, stamps ...int64) {
	s.mu.Lock()
	s.instance, s.sequence, s.records = instance, 0, nil
	s.mu.Unlock()
	s.push(stamps...)
}

func (s *server) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *server) requests() []ask {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

func (s *server) feed(ctx context.Context, r upstream.FeedRequest) (upstream.FeedAnswer, error) {
	since, wait := r.Since, r.Wait
	s.mu.Lock()
	s.asked = append(s.asked, ask{since, wait, time.Now()})
	instance := s.instance
	s.mu.Unlock()
	deadline := time.After(wait)
	for {
		s.mu.Lock()
		hanging, news := s.hanging, s.news
		found := upstream.FeedAnswer{Instance: s.instance, Sequence: s.sequence, Pipeline: s.pipeline}
		for _, r := range s.records {
			if r.At.UnixMilli() > since || s.deaf {
				found.Records = append(found.Records, r)
			}
		}
		hold := wait > 0 && !s.plain && !s.impatient && len(found.Records) == 0 && (r.Pipeline == "" || r.Pipeline == s.pipeline)
		if s.plain {
			found.Instance, found.Sequence = "", -1
		}
		found.Received = len(found.Records)
		if s.answer != nil {
			s.answer(&found)
		}
		down, before := s.down, s.beforeReply
		if s.instance != instance {
			down = errors.New("connection reset")
		}
		s.mu.Unlock()
		if hanging {
			select {
			case <-time.After(wait + 2*time.Second): // the client's timeout
				return upstream.FeedAnswer{}, errors.New("no answer")
			case <-ctx.Done():
				return upstream.FeedAnswer{}, ctx.Err()
			}
		}
		if down != nil {
			return upstream.FeedAnswer{}, down
		}
		if !hold {
			if before != nil {
				before(ctx)
			}
			return found, ctx.Err()
		}
		select {
		case <-news:
		case <-deadline:
			wait = 0
		case <-ctx.Done():
			return upstream.FeedAnswer{}, ctx.Err()
		}
	}
}

// network holds servers by URL.
type network struct{ servers sync.Map }

func (n *network) add(url string, s *server) {
	s.change(func() { s.news = make(chan struct{}) }) // so that it belongs to the bubble
	n.servers.Store(url, s)
}

func (n *network) Feed(ctx context.Context, p domain.Project, r upstream.FeedRequest) (upstream.FeedAnswer, error) {
	s, ok := n.servers.Load(p.URL)
	if !ok {
		return upstream.FeedAnswer{}, errors.New("connection refused")
	}
	return s.(*server).feed(ctx, r)
}

func (n *network) History(ctx context.Context, p domain.Project, after int64, limit int) (upstream.HistoryPart, error) {
	s, _ := n.servers.Load(p.URL)
	return s.(*server).past(ctx, after, limit)
}

// site is a bubble with a gateway, project servers and a poller.
type site struct {
	*memory
	*network
	t          *testing.T
	log        *waittest.Log
	leadership *leadership // nil for a single gateway
	histories  poll.Histories
	start      func() // starts or restarts the poller
	stop       func() // ends it

	poller *poll.Poller
}

const interval = 2 * time.Second

// following runs test in a bubble in which the project alpha is at http://a and the poller runs.
func following(t *testing.T, a *server, test func(y *site)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		y := &site{memory: &memory{}, network: &network{}, t: t, log: &waittest.Log{}}
		y.add("http://a", a)
		y.register(alpha)
		y.start = func() {
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan struct{})
			p := poll.New(poll.Options{Projects: y.memory, Events: y.memory, Feeds: y.network, Pipelines: y.memory, Histories: y.histories, Interval: interval, Log: slog.New(slog.NewTextHandler(y.log, nil)), Leadership: y.leadershipOrNone()})
			y.poller = p
			go func() {
				defer close(done)
				if err := p.Run(ctx); err != nil {
					t.Error(err)
				}
			}()
			y.stop = func() { cancel(); <-done }
			synctest.Wait()
		}
		y.start()
		test(y)
		y.stop()
	})
}

var alpha = domain.Project{Name: "alpha", URL: "http://a"}

// pass lets time pass.
func (y *site) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// soon is longer than it takes to read new records.
const soon = 5 * time.Millisecond

// want checks what was stored of alpha soon after.
func (y *site) want(stream string) {
	y.t.Helper()
	y.pass(soon)
	if got := y.stream("alpha"); got != stream {
		y.t.Errorf("stored %q, want %q", got, stream)
	}
}

// rate returns how many requests a server gets in a minute.
func (y *site) rate(s *server) int {
	before := len(s.requests())
	y.pass(time.Minute)
	return len(s.requests()) - before
}
