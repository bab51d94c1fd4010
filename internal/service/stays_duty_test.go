package service_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"switchyard/internal/domain"
	"switchyard/internal/pgtest"
	"switchyard/internal/service"
	"switchyard/internal/store/postgres"
	"switchyard/internal/store/storetest"
	"switchyard/internal/waittest"
)

// holder is a gateway's view of the lease.
type holder struct{ token atomic.Int64 }

func (h *holder) Leads() bool { return h.token.Load() > 0 }

func (h *holder) Token() (int64, bool) { return h.token.Load(), h.token.Load() > 0 }

func (h *holder) Changed() <-chan struct{} { return nil }

// saver is one of several gateways, one of which saves stays.
type saver struct {
	*service.Service
	holder
	id string
	db *postgres.DB
	t  *testing.T
}

func newSaver(t *testing.T, url, id string, b *boardServer) *saver {
	t.Helper()
	db, err := postgres.Open(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	s := &saver{id: id, db: db, t: t}
	s.Service, err = service.New(t.Context(), service.Options{
		Store: db, Changes: db, Leadership: s, Projects: b, Bot: idleBot{}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Events.Follow(ctx, func() <-chan struct{} { return db.Changed(domain.TopicEvents) })
	}()
	listened := make(chan struct{})
	go func() { defer close(listened); _ = db.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended; <-listened; db.Close() })
	return s
}

// lead takes over from the leader without its knowledge.
func (s *saver) lead() {
	s.t.Helper()
	s.token.Store(storetest.Lead(s.t, s.db.Lease(), s.id))
}

func (s *saver) tick() {
	s.t.Helper()
	last, err := s.db.LastEventID(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	waittest.Until(s.t, "the stream is followed", func() bool { return s.Events.LastID() == last })
	if err := service.TickStays(s.t.Context(), s.Service); err != nil {
		s.t.Fatal(err)
	}
}

// want checks the stages of the story's stays, both as this gateway returns them and as stored.
func (s *saver) want(stages ...string) {
	s.t.Helper()
	for what, find := range map[string]func() ([]domain.Stay, error){
		"shows": func() ([]domain.Stay, error) { return s.Stays.Of(s.t.Context(), "alpha", "1") },
		"has stored": func() ([]domain.Stay, error) {
			stays, err := s.db.Stays(s.t.Context(), "alpha", "1", 100)
			return slices.DeleteFunc(stays, func(stay domain.Stay) bool { return stay.From.IsZero() }), err
		},
	} {
		stays, err := find()
		if err != nil {
			s.t.Fatal(err)
		}
		var names []string
		for _, stay := range stays {
			names = append(names, stay.Stage)
		}
		if !slices.Equal(names, stages) {
			s.t.Errorf("gateway %s %s %v, want %v", s.id, what, names, stages)
		}
	}
}

func TestOneGatewaySavesStaysAndEachShowsThem(t *testing.T) {
	url, b := pgtest.Database(t), &boardServer{}
	now := time.Now().Truncate(time.Millisecond)
	const board = `[{"name":"%s","items":[{"story_id":"1","story_name":"One","blocked":null,"merge_failure":null,"since_ms":%d}]}]`
	show := func(stage string) { b.show(t, "http://alpha", fmt.Sprintf(board, stage, now.UnixMilli())) }
	show("2_current")
	one := newSaver(t, url, "one", b)
	if _, err := one.Projects.Add(t.Context(), "alpha", "http://alpha", nil); err != nil {
		t.Fatal(err)
	}
	other := newSaver(t, url, "other", b)
	one.lead()

	arrived := now.Add(-5 * time.Hour)
	recordFeed(t, one.Service, went(t, "alpha", "1", "1_backlog", "2_current", arrived))
	one.tick()
	for _, s := range []*saver{one, other} {
		s.want("2_current")
		raw(t, s.Service, fmt.Sprintf(`"since_ms":%d`, arrived.UnixMilli()))
	}
	// Events covered by the stays that one gateway has saved are not applied again by another that reads the project.
	left := now.Add(-3 * time.Hour)
	recordFeed(t, other.Service, went(t, "alpha", "1", "2_current", "3_qa", left))
	show("3_qa")
	one.tick()
	other.tick()
	for _, s := range []*saver{one, other} {
		s.want("2_current", "3_qa")
		raw(t, s.Service, fmt.Sprintf(`"since_ms":%d`, left.UnixMilli()))
	}

	// A frozen gateway saves nothing after another has taken over.
	other.lead()
	back := now.Add(-time.Hour)
	recordFeed(t, one.Service, went(t, "alpha", "1", "3_qa", "2_current", back))
	show("2_current")
	before, err := one.db.StaysUpTo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	one.tick()
	if after, err := one.db.StaysUpTo(t.Context()); err != nil || after != before {
		t.Errorf("saved up to %d after %d, %v", after, before, err)
	}
	one.token.Store(0)
	other.tick()
	one.tick()
	for _, s := range []*saver{one, other} {
		s.want("2_current", "3_qa", "2_current")
		raw(t, s.Service, fmt.Sprintf(`"since_ms":%d`, back.UnixMilli()))
	}
	if upTo, err := one.db.StaysUpTo(t.Context()); err != nil || upTo != one.Events.LastID() {
		t.Errorf("saved up to %d of %d, %v", upTo, one.Events.LastID(), err)
	}
	third := newSaver(t, url, "third", b)
	third.tick()
	third.want("2_current", "3_qa", "2_current")
	today, _ := draw(t, third.Service, "alpha")
	if got, _ := draw(t, one.Service, "alpha"); !slices.Equal(got, today) {
		t.Errorf("one draws %v, another %v", got, today)
	}
}

// TestAStandbyThatLacksTheLastEventsGivesOutOtherIds: it has taken over from a lost server. Ids that have been read are not assigned
// to other events, and events read again from the projects come after all ids that have been read.
func TestAStandbyThatLacksTheLastEventsGivesOutOtherIds(t *testing.T) {
	url, b := pgtest.Database(t), &boardServer{}
	one, other := newSaver(t, url, "one", b), newSaver(t, url, "other", b)
	if _, err := one.Projects.Add(t.Context(), "alpha", "http://alpha", nil); err != nil {
		t.Fatal(err)
	}
	one.lead()
	at := time.Now().Truncate(time.Millisecond).Add(-time.Hour)
	moved := went(t, "alpha", "1", "2_current", "3_qa", at.Add(time.Minute))
	recordFeed(t, one.Service, went(t, "alpha", "1", "1_backlog", "2_current", at))
	recordFeed(t, one.Service, moved)
	for _, s := range []*saver{one, other} {
		s.tick()
		s.want("2_current", "3_qa")
	}
	connection, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close(t.Context())
	for _, statement := range []string{
		"DELETE FROM events WHERE id > 1", "DELETE FROM event_digests", "DELETE FROM feed_cursors",
		"UPDATE stream SET last_id = 1", "DELETE FROM stays", "DELETE FROM state WHERE key = 'stays_up_to'",
	} {
		if _, err := connection.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	service.LoseStore(one.Service)
	service.LoseStore(other.Service)
	another := went(t, "beta", "7", "1_backlog", "2_current", at.Add(2*time.Minute))
	recordFeed(t, other.Service, another)
	recordFeed(t, other.Service, moved)
	for _, s := range []*saver{one, other} {
		waittest.Until(t, "what there is now", func() bool {
			page, err := s.Events.Page(t.Context(), domain.EventQuery{Limit: 10})
			return err == nil && len(page.Events) >= 3
		})
		page, err := s.Events.Page(t.Context(), domain.EventQuery{After: 1, Limit: 10})
		if err != nil || page.Events[0].ID <= 2 || page.Events[0].Project != "beta" || page.Events[len(page.Events)-1].Project != "alpha" {
			t.Errorf("gateway %s has %+v, %v", s.id, page.Events, err)
		}
		s.tick()
		s.want("2_current", "3_qa")
	}
}
