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

	"switchyard/internal/cluster"
	"switchyard/internal/domain"
	"switchyard/internal/pgtest"
	"switchyard/internal/service"
	"switchyard/internal/store/postgres"
	"switchyard/internal/waittest"
)

// holder is a gateway's view of its only duty.
type holder struct{ epoch atomic.Int64 }

func (h *holder) Epoch(string) (int64, bool) { return h.epoch.Load(), h.epoch.Load() > 0 }

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
		Store: db, Changes: db, Duties: s, Projects: b, Bot: idleBot{}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Duties().Join(t.Context(), cluster.Gateway{ID: id}, time.Hour); err != nil {
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

// take takes over the duty from another gateway without its knowledge.
func (s *saver) take(from string) {
	s.t.Helper()
	duty := []string{domain.DutyStays}
	if err := s.db.Duties().Release(s.t.Context(), from, duty); err != nil {
		s.t.Fatal(err)
	}
	granted, err := s.db.Duties().Claim(s.t.Context(), s.id, duty)
	if err != nil || granted[domain.DutyStays] == 0 {
		s.t.Fatalf("granted %v, %v", granted, err)
	}
	s.epoch.Store(granted[domain.DutyStays])
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
	one.take("")

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
	other.take("one")
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
	one.epoch.Store(0)
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

// TestAStayThatOneGatewaySawBeginIsKnownToAll: the story leaves the backlog before the gateway that saves stays fetches the pipeline,
// and there is no event for its arrival.
func TestAStayThatOneGatewaySawBeginIsKnownToAll(t *testing.T) {
	url, b := pgtest.Database(t), &boardServer{}
	now := time.Now().Truncate(time.Millisecond)
	came := now.Add(-time.Minute)
	b.show(t, "http://alpha", `[{"name":"1_backlog","items":[]}]`)
	one := newSaver(t, url, "one", b)
	if _, err := one.Projects.Add(t.Context(), "alpha", "http://alpha", nil); err != nil {
		t.Fatal(err)
	}
	other, third := newSaver(t, url, "other", b), newSaver(t, url, "third", b)
	one.take("")
	for _, s := range []*saver{one, other, third} {
		raw(t, s.Service, `[]`)
		s.tick()
	}
	const board = `[{"name":"%s","items":[{"story_id":"1","story_name":"One","blocked":null,"merge_failure":null,"since_ms":%d}]}]`
	b.show(t, "http://alpha", fmt.Sprintf(board, "1_backlog", came.UnixMilli()))
	raw(t, other.Service, fmt.Sprintf(`"since_ms":%d`, came.UnixMilli()))
	b.show(t, "http://alpha", fmt.Sprintf(board, "2_current", now.UnixMilli()))
	recordFeed(t, other.Service, went(t, "alpha", "1", "1_backlog", "2_current", now))
	one.tick()
	pipelines := []domain.ProjectPipeline{{Project: "alpha", Stages: []domain.Stage{{Name: "0_ideas"}, {Name: "1_backlog"}, {Name: "2_current"}, {Name: "5_done"}}}}
	inBacklog := func() (median time.Duration) {
		waittest.Until(t, "charts are drawn", func() bool {
			charts, err := third.Charts.Draw(t.Context(), pipelines)
			if err != nil || charts[0].Days == nil {
				return false
			}
			median = charts[0].Stages[0].Median
			return true
		})
		return median
	}
	if before := inBacklog(); before != 0 {
		t.Errorf("before anybody told when the story came it was there for %v", before)
	}
	other.tick() // only now does it tell
	third.tick()
	if after := inBacklog(); after != now.Sub(came) {
		t.Errorf("charts say that the story was there for %v, want %v", after, now.Sub(came))
	}
	one.tick()
	for _, s := range []*saver{one, other, third} {
		s.want("1_backlog", "2_current")
		stays, err := s.Stays.Of(t.Context(), "alpha", "1")
		if err != nil || !stays[0].From.Equal(came) || !stays[0].To.Equal(now) {
			t.Errorf("gateway %s: %+v, %v", s.id, stays, err)
		}
	}
	// A gateway that saves next, or starts later, does not begin the stay again after the story has left.
	b.show(t, "http://alpha", `[{"name":"1_backlog","items":[]}]`)
	raw(t, one.Service, `[]`)
	one.tick()
	other.take("one")
	one.epoch.Store(0)
	other.tick()
	for _, s := range []*saver{one, other, third, newSaver(t, url, "fourth", b)} {
		s.tick()
		s.want("1_backlog", "2_current")
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
	one.take("")
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
