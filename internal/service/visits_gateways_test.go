package service_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
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

// saver is one of several gateways, one of which leads.
type saver struct {
	*service.Service
	holder
	id string
	db *postgres.DB
	t  *testing.T
}

func newSaver(t *testing.T, url, id string, b *boardServer) *saver {
	t.Helper()
	s := openSaver(t, url, id, b)
	s.run()
	return s
}

// openSaver returns a gateway that does not follow the others yet.
func openSaver(t *testing.T, url, id string, b *boardServer) *saver {
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
	t.Cleanup(func() { db.Close() })
	return s
}

// run follows the other gateways until the test ends.
func (s *saver) run() {
	ctx, cancel := context.WithCancel(context.Background())
	var loops sync.WaitGroup
	loops.Go(func() { _ = s.Events.Follow(ctx, s.db.Changed) })
	loops.Go(func() { _ = s.db.Run(ctx) })
	loops.Go(func() { _ = s.Sync(ctx) })
	loops.Go(func() { _ = s.Visits.Run(ctx) })
	s.t.Cleanup(func() { cancel(); loops.Wait() })
}

// lead takes over from the leader without its knowledge.
func (s *saver) lead() {
	s.t.Helper()
	s.token.Store(storetest.Lead(s.t, s.db.Lease(), s.id))
}

// want waits until the gateway has all events and shows that the story was in these stages.
func (s *saver) want(stages ...string) {
	s.t.Helper()
	last, err := s.db.LastEventID(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	waittest.Until(s.t, "the stream is followed", func() bool { return s.Events.LastID() >= last })
	var names []string
	waittest.Until(s.t, fmt.Sprint("gateway ", s.id, " shows ", stages), func() bool {
		visits, err := s.Visits.Story(s.t.Context(), "alpha", "1")
		if err != nil {
			s.t.Fatal(err)
		}
		names = nil
		for _, v := range visits {
			names = append(names, v.Stage)
		}
		return slices.Equal(names, stages)
	})
}

// record stores a read of a feed under the gateway's token.
func (s *saver) record(read domain.FeedRead) error {
	read.Token = s.token.Load()
	return s.Events.Record(s.t.Context(), read)
}

// TestAGatewayThatHasJustStartedMissesNoMove: somebody looks before it follows the leader.
func TestAGatewayThatHasJustStartedMissesNoMove(t *testing.T) {
	url, b := pgtest.Database(t), &boardServer{}
	moved := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	const board = `[{"name":"%s","items":[{"story_id":"1","story_name":"One","blocked":null,"merge_failure":null,"since_ms":null}]}]`
	one := newSaver(t, url, "one", b)
	if _, err := one.Projects.Add(t.Context(), "alpha", "http://alpha", nil); err != nil {
		t.Fatal(err)
	}
	other := openSaver(t, url, "other", b)
	one.lead()
	for _, to := range []string{"2_current", "3_qa"} {
		if err := one.record(went(t, "alpha", "1", "1_backlog", to, moved)); err != nil {
			t.Fatal(err)
		}
		b.show(t, "http://alpha", fmt.Sprintf(board, to))
		if to == "3_qa" {
			other.run()
		}
		raw(t, other.Service, fmt.Sprintf(`"since_ms":%d`, moved.UnixMilli()))
		moved = moved.Add(time.Minute)
	}
}

func TestTheLeaderKeepsVisitsAndEachGatewayShowsThem(t *testing.T) {
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
	moves := func(leader *saver, from, to string, at time.Time, stages ...string) {
		t.Helper()
		if err := leader.record(went(t, "alpha", "1", from, to, at)); err != nil {
			t.Fatal(err)
		}
		show(to)
		for _, s := range []*saver{one, other} {
			s.want(stages...)
			raw(t, s.Service, fmt.Sprintf(`"since_ms":%d`, at.UnixMilli()))
		}
	}
	moves(one, "1_backlog", "2_current", now.Add(-5*time.Hour), "2_current")
	moves(one, "2_current", "3_qa", now.Add(-3*time.Hour), "2_current", "3_qa")

	// A frozen gateway saves nothing after another has taken over.
	other.lead()
	if err := one.record(went(t, "alpha", "1", "3_qa", "4_merge", now)); !errors.Is(err, domain.ErrNotLeader) {
		t.Errorf("a former leader stores events: %v", err)
	}
	one.want("2_current", "3_qa")
	one.token.Store(0)
	moves(other, "3_qa", "2_current", now.Add(-time.Hour), "2_current", "3_qa", "2_current")
	third := newSaver(t, url, "third", b)
	third.want("2_current", "3_qa", "2_current")
	today, _ := draw(t, third.Service, "alpha")
	if got, _ := draw(t, one.Service, "alpha"); !slices.Equal(got, today) {
		t.Errorf("one draws %v, another %v", got, today)
	}

	// The leader alone keeps what only pipelines show.
	b.show(t, "http://alpha", fmt.Sprintf(board, "4_merge", now.UnixMilli()))
	raw(t, one.Service, "4_merge")
	one.want("2_current", "3_qa", "2_current")
	raw(t, other.Service, "4_merge")
	for _, s := range []*saver{one, other, third} {
		s.want("2_current", "3_qa", "2_current", "4_merge")
	}
}

// TestAStandbyThatLacksTheLastEventsGivesOutOtherIds: it has taken over from a lost server. Ids that have been read
// are not assigned to other events, and events read again from the projects come after all ids that have been read.
func TestAStandbyThatLacksTheLastEventsGivesOutOtherIds(t *testing.T) {
	url, b := pgtest.Database(t), &boardServer{}
	one, other := newSaver(t, url, "one", b), newSaver(t, url, "other", b)
	if _, err := one.Projects.Add(t.Context(), "alpha", "http://alpha", nil); err != nil {
		t.Fatal(err)
	}
	one.lead()
	at := time.Now().Truncate(time.Millisecond).Add(-time.Hour)
	moved := went(t, "alpha", "1", "2_current", "3_qa", at.Add(time.Minute))
	for _, read := range []domain.FeedRead{went(t, "alpha", "1", "1_backlog", "2_current", at), moved} {
		if err := one.record(read); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []*saver{one, other} {
		s.want("2_current", "3_qa")
	}
	connection, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close(t.Context())
	for _, statement := range []string{
		"DELETE FROM events WHERE id > 1", "DELETE FROM event_digests", "DELETE FROM feed_cursors",
		"UPDATE stream SET last_id = 1", "DELETE FROM stage_visits WHERE stage = '3_qa'",
		"UPDATE stage_visits SET to_ms = 0, next_stage = '' WHERE stage = '2_current'",
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
		s.want("2_current", "3_qa")
	}
}

func TestEachGatewayShowsWhatTheLeaderHasReadFromGit(t *testing.T) {
	url, b := pgtest.Database(t), &boardServer{}
	now := time.UnixMilli(time.Now().UnixMilli())
	b.show(t, "http://alpha", fmt.Sprintf(
		`[{"name":"1_backlog","items":[]},{"name":"2_current","items":[{"story_id":"1","story_name":"One","blocked":null,"merge_failure":null,"since_ms":%d}]},{"name":"3_qa","items":[]}]`, now.UnixMilli()))
	one, other := newSaver(t, url, "one", b), newSaver(t, url, "other", b)
	if _, err := one.Projects.Add(t.Context(), "alpha", "http://alpha", nil); err != nil {
		t.Fatal(err)
	}
	one.lead()
	for _, s := range []*saver{one, other} {
		raw(t, s.Service, fmt.Sprintf(`"since_ms":%d`, now.UnixMilli()))
	}
	one.want("2_current")
	project, _ := one.Projects.Registry().Find("alpha")
	ago := func(hours int) time.Time { return now.Add(-time.Duration(hours) * time.Hour) }
	merge := func(s *saver, id string, moves ...domain.Move) error {
		waittest.Until(t, "the board is known", func() bool {
			_, err := s.Histories.Last(t.Context(), project)
			return err == nil
		})
		return s.Histories.Merge(t.Context(), s.token.Load(), project, id, moves)
	}
	if err := merge(one, "a", domain.Move{StoryID: "1", To: "1_backlog", At: ago(9)}, domain.Move{StoryID: "1", From: "1_backlog", To: "2_current", At: ago(5)}); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*saver{one, other} {
		s.want("1_backlog", "2_current")
		raw(t, s.Service, fmt.Sprintf(`"since_ms":%d`, ago(5).UnixMilli()))
	}
	// The second takes the place of the first, and removes what that had.
	if err := merge(one, "b", domain.Move{StoryID: "1", To: "2_current", At: ago(7)}); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*saver{one, other} {
		s.want("2_current")
		raw(t, s.Service, fmt.Sprintf(`"since_ms":%d`, ago(7).UnixMilli()))
	}
	other.lead()
	if err := merge(one, "c", domain.Move{StoryID: "1", To: "2_current", At: ago(8)}); !errors.Is(err, domain.ErrNotLeader) {
		t.Errorf("a former leader merges a history: %v", err)
	}
	if id, err := other.Histories.Last(t.Context(), project); err == nil && id != "b" {
		t.Errorf("the last history is %q", id)
	}
	raw(t, other.Service, fmt.Sprintf(`"since_ms":%d`, ago(7).UnixMilli()))
}
