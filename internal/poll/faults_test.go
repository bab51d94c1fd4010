package poll_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/poll"
	"switchyard/internal/service"
	"switchyard/internal/store/sqlite"
	"switchyard/internal/store/storetest"
	"switchyard/internal/upstream"
)

// mortalStore is a real store whose process can be killed in the middle of an append.
type mortalStore struct {
	*sqlite.DB
	mu   sync.Mutex
	dies string        // "before" or "after" the next commit
	dead chan struct{} // closed when it died
}

var errDead = errors.New("the process is dead")

func (m *mortalStore) AppendEvents(ctx context.Context, reads []domain.FeedRead) (domain.AppendResult, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.dead:
		return domain.AppendResult{}, errDead
	default:
	}
	if m.dies == "before" {
		close(m.dead)
		return domain.AppendResult{}, errDead
	}
	appended, err := m.DB.AppendEvents(ctx, reads)
	if m.dies == "after" {
		close(m.dead)
		return domain.AppendResult{}, errDead
	}
	return appended, err
}

func (m *mortalStore) dieNext(when string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dies = when
}

// world is a gateway with a real database and project servers, all of which can fail.
type world struct {
	t       *testing.T
	dir     string
	random  *rand.Rand
	network network
	servers map[string]*server // by project
	pushed  int                // records ever
	stamp   int64

	db   *mortalStore
	svc  *service.Service
	stop func()
}

// start starts the gateway's process.
func (w *world) start() {
	db, err := sqlite.Open(context.Background(), w.dir)
	if err != nil {
		w.t.Fatal(err)
	}
	w.db = &mortalStore{DB: db, dead: make(chan struct{})}
	log := slog.New(slog.DiscardHandler)
	if w.svc, err = service.New(context.Background(), service.Options{Store: w.db, Log: log}); err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = poll.New(poll.Options{Projects: w.svc.Projects, Events: w.svc.Events, Feeds: &w.network, Pipelines: w.svc.Pipelines, Interval: interval, Log: log}).Run(ctx) // nil
	}()
	w.stop = func() {
		cancel()
		<-done
		if err := db.Close(); err != nil {
			w.t.Error(err)
		}
	}
}

// restartIfDead starts a new process if the last one died.
func (w *world) restartIfDead() {
	select {
	case <-w.db.dead:
		w.stop()
		w.start()
	default:
	}
}

// push records n events at a project server. Their story is the instance and their position in its sequence.
func (w *world) push(s *server, n int) {
	s.change(func() {
		for range n {
			if !s.plain || w.random.IntN(3) > 0 { // stamps repeat on a plain server
				w.stamp++
			}
			s.sequence++
			r, err := domain.ParseRecord(fmt.Appendf(nil, `{"story_id":%q,"missed":%d,"timestamp_ms":%d}`, s.instance, s.sequence, w.stamp))
			if err != nil {
				panic(err)
			}
			s.records = append(s.records, r)
			w.pushed++
		}
	})
	s.push() // truncates the buffer and wakes readers
}

// step causes a random event or fault.
func (w *world) step(project string) {
	s := w.servers[project]
	switch w.random.IntN(14) {
	case 0, 1, 2, 3:
		w.push(s, 1+w.random.IntN(4))
	case 4:
		w.push(s, w.random.IntN(2*s.size))
	case 5:
		if !s.plain { // a new instance of a plain server cannot be recognised
			s.restart(fmt.Sprint(project, "-", w.pushed))
		}
	case 6:
		s.change(func() { s.down = errors.New("connection refused") })
	case 7:
		s.change(func() { s.down = nil })
	case 8: // the answer is lost on its way
		s.change(func() {
			s.answer = func(*upstream.FeedAnswer) { s.answer = nil; s.down = errors.New("connection reset") }
		})
	case 9:
		w.db.dieNext("before")
	case 10:
		w.db.dieNext("after")
	case 11: // killed between two of its steps
		w.stop()
		w.start()
	case 12:
		_, _ = w.svc.Projects.Remove(context.Background(), project) // may be removed already
	case 13:
		w.register(project)
	}
}

// register makes sure that the project is there, at one of its two addresses.
func (w *world) register(project string) {
	address := fmt.Sprintf("http://%s.%d", project, w.random.IntN(2))
	if _, err := w.svc.Projects.Ensure(context.Background(), project, address, nil); err != nil {
		w.t.Error(err)
	}
}

// TestNothingIsLostOrDoubledWhateverDies lets project servers, connections and the gateway fail at random, the gateway
// also right before and right after a commit. Afterwards every record is in the stream once and in order, and gaps count
// exactly the records that buffers dropped unread.
func TestNothingIsLostOrDoubledWhateverDies(t *testing.T) {
	seeds := uint64(8)
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			dir := storetest.Dir(t)
			synctest.Test(t, func(t *testing.T) {
				w := &world{t: t, dir: dir, random: rand.New(rand.NewPCG(seed, 1)), servers: map[string]*server{}, stamp: 1000}
				w.start()
				projects := []string{"alpha", "beta", "plain"}
				for _, project := range projects {
					s := newServer(project)
					s.size, s.plain = 20, project == "plain"
					w.servers[project] = s
					w.network.add("http://"+project+".0", s)
					w.network.add("http://"+project+".1", s)
					w.register(project)
				}
				for range 150 {
					w.step(projects[w.random.IntN(len(projects))])
					time.Sleep(time.Duration(w.random.IntN(4)*w.random.IntN(500)) * time.Millisecond)
					synctest.Wait()
					w.restartIfDead()
				}
				w.db.dieNext("")
				for _, project := range projects {
					w.servers[project].change(func() { w.servers[project].down, w.servers[project].answer = nil, nil })
					w.register(project)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				w.restartIfDead()
				time.Sleep(time.Minute)
				for _, project := range projects {
					w.push(w.servers[project], 1)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				w.check()
				w.stop()
			})
		})
	}
}

// check reads the whole stream.
func (w *world) check() {
	var events []domain.Event
	for after := int64(0); ; after = events[len(events)-1].ID {
		page, err := w.svc.Events.Page(context.Background(), domain.EventQuery{After: after, Limit: 1000})
		if err != nil {
			w.t.Fatal(err)
		}
		events = append(events, page.Events...)
		if !page.More {
			break
		}
	}
	stored := map[string]map[string]int64{} // by project and instance: the last sequence
	content := map[string]bool{}
	gap := map[string]domain.Event{} // by project: the gap that waits for its record
	for i, e := range events {
		if e.ID != int64(i)+1 {
			w.t.Errorf("id %d follows %d", e.ID, i)
		}
		if key := e.Project + string(e.JSON); content[key] {
			w.t.Errorf("doubled: %s %s", e.Project, e.JSON)
		} else {
			content[key] = true
		}
		if e.Type == domain.FeedGap {
			gap[e.Project] = e
			continue
		}
		if w.servers[e.Project].plain {
			continue
		}
		d := e.Details()
		instance, sequence := d.StoryID, d.Missed
		first := stored[e.Project] == nil
		if first {
			stored[e.Project] = map[string]int64{}
		}
		missing := sequence - stored[e.Project][instance] - 1
		mark, marked := gap[e.Project]
		delete(gap, e.Project)
		switch {
		case missing < 0:
			w.t.Errorf("%s: %s/%d comes after %d", e.Project, instance, sequence, stored[e.Project][instance])
		case missing > 0 && !marked && !first:
			w.t.Errorf("%s: %d before %s/%d are lost without a mark", e.Project, missing, instance, sequence)
		case marked && (mark.Details().Missed != missing || !mark.At.Equal(e.At)):
			w.t.Errorf("%s: the mark before %s is %s, %d are missing", e.Project, e.JSON, mark.JSON, missing)
		}
		stored[e.Project][instance] = sequence
	}
	for project, s := range w.servers {
		for _, r := range s.records {
			if !content[project+string(r.JSON)] {
				w.t.Errorf("%s still holds %s, which is not in the stream", project, r.JSON)
			}
		}
	}
	if len(events) < 50 {
		w.t.Errorf("only %d events: this tests nothing", len(events))
	}
}
