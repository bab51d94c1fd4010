package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/store/storetest"
	"switchyard/internal/waittest"
)

// chartPipeline returns the pipeline of a project with the usual stages.
func chartPipeline(project string) domain.ProjectPipeline {
	p := domain.ProjectPipeline{Project: project}
	for _, name := range []string{"1_backlog", "2_current", "3_qa", "4_merge", "5_done"} {
		p.Stages = append(p.Stages, domain.Stage{Name: name})
	}
	return p
}

// went returns a read with one move, made and received at at.
func went(t testing.TB, project, story, from, to string, at time.Time) domain.FeedRead {
	t.Helper()
	r, err := domain.ParseRecord(json.RawMessage(fmt.Sprintf(
		`{"type":"stage_transition","story_id":%q,"story_name":"A name of usual length","from_stage":%q,"to_stage":%q,"timestamp_ms":%d}`,
		story, from, to, at.UnixMilli())))
	if err != nil {
		t.Fatal(err)
	}
	return domain.FeedRead{Cursor: domain.FeedCursor{Project: project, URL: "http://" + project}, Records: []domain.Record{r}, ReceivedAt: at}
}

// draw returns how many stories each project finished today, and the median of its second stage.
func draw(t testing.TB, s *service.Service, projects ...string) (today []int, current []time.Duration) {
	t.Helper()
	var pipelines []domain.ProjectPipeline
	for _, name := range projects {
		pipelines = append(pipelines, chartPipeline(name))
	}
	var charts []domain.Charts
	waittest.Until(t, "the stream is accounted for", func() bool {
		var err error
		if charts, err = service.Charts(context.Background(), s, pipelines); err != nil {
			t.Fatal(err)
		}
		return !slices.ContainsFunc(charts, func(c domain.Charts) bool { return c.Days == nil })
	})
	for _, c := range charts {
		today = append(today, c.Days[len(c.Days)-1].Finished)
		current = append(current, c.Stages[0].Median)
	}
	return today, current
}

func TestChartsFollowTheStream(t *testing.T) {
	o := openStore(t, storetest.Dir(t))
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		record := func(s *service.Service, read domain.FeedRead) {
			t.Helper()
			if err := s.Events.Record(context.Background(), read); err != nil {
				t.Fatal(err)
			}
		}
		before := streamOver(t, o)
		record(before, went(t, "alpha", "1", "1_backlog", "2_current", now.Add(-40*24*time.Hour))) // stays are kept for longer than charts look back
		record(before, went(t, "alpha", "2", "1_backlog", "2_current", now.Add(-5*time.Hour)))
		record(before, went(t, "beta", "2", "1_backlog", "2_current", now.Add(-time.Hour)))

		s := streamOver(t, o) // the next process reads what the last one stored
		record(s, went(t, "alpha", "1", "2_current", "5_done", now))
		record(s, went(t, "alpha", "2", "2_current", "5_done", now))
		today, current := draw(t, s, "alpha", "beta", "gamma")
		if fmt.Sprint(today, current) != "[2 0 0] [482h30m0s 0s 0s]" {
			t.Errorf("finished today %v, median %v", today, current)
		}
		if charts, err := service.Charts(context.Background(), s, []domain.ProjectPipeline{{Project: "alpha"}}); err != nil || charts[0].Days != nil {
			t.Errorf("charts without known stages: %v, %v", charts, err)
		}

		// Only new events are read from then on.
		o.queries.Store(0)
		record(s, went(t, "beta", "2", "2_current", "5_done", now.Add(time.Minute)))
		today, current = draw(t, s, "alpha", "beta")
		if fmt.Sprint(today, current) != "[2 1] [482h30m0s 1h1m0s]" || o.queries.Load() > 0 {
			t.Errorf("finished today %v, median %v after %d queries", today, current, o.queries.Load())
		}

		// A new day begins without any move.
		time.Sleep(24 * time.Hour)
		today, current = draw(t, s, "alpha")
		if fmt.Sprint(today, current) != "[0] [482h30m0s]" {
			t.Errorf("a day later: finished today %v, median %v", today, current)
		}
		time.Sleep(domain.ChartDays * 24 * time.Hour)
		if _, current = draw(t, s, "alpha"); current[0] != 0 {
			t.Errorf("two weeks later: median %v", current)
		}
	})
}

// slowStore returns events only when it is released.
type slowStore struct {
	*observedStore
	may chan struct{}
	err atomic.Pointer[error]
}

func (s *slowStore) Events(ctx context.Context, q domain.EventQuery) (domain.EventPage, error) {
	<-s.may
	if err := s.err.Load(); err != nil {
		return domain.EventPage{}, *err
	}
	return s.observedStore.Events(ctx, q)
}

func TestChartsKeepNobodyWaiting(t *testing.T) {
	o := openStore(t, storetest.Dir(t))
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		reads := []domain.FeedRead{
			went(t, "alpha", "1", "1_backlog", "2_current", now.Add(-time.Hour)),
			went(t, "alpha", "1", "2_current", "5_done", now),
		}
		if _, err := o.AppendEvents(context.Background(), reads); err != nil {
			t.Fatal(err)
		}
		slow := &slowStore{observedStore: o, may: make(chan struct{})}
		b := &boardServer{}
		b.show(t, "http://alpha", `[{"name":"1_backlog","items":[]},{"name":"2_current","items":[]},{"name":"5_done","items":[]}]`)
		s := overBoard(t, slow, b)
		if _, err := s.Projects.Add(t.Context(), "alpha", "http://alpha", nil); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second waits for the first one's work
			began := time.Now()
			shown := service.NextSnapshot(t.Context(), s)
			if waited := time.Since(began); shown.Charts[0].Days != nil || waited > time.Second {
				t.Errorf("charts after %v: %v", waited, shown.Charts)
			}
		}
		failure := errors.New("disk on fire")
		slow.err.Store(&failure)
		close(slow.may)
		synctest.Wait()
		if shown := service.NextSnapshot(t.Context(), s); !shown.Pipelines[0].Reachable || shown.Charts[0].Days != nil {
			t.Errorf("without a store: %+v", shown.Pipelines)
		}
		slow.err.Store(nil)
		time.Sleep(2 * time.Second)
		shown := service.NextSnapshot(t.Context(), s)
		if c := shown.Charts[0]; len(c.Days) == 0 || c.Days[domain.ChartDays-1].Finished != 1 || c.Stages[0].Median != time.Hour {
			t.Errorf("charts %+v", c)
		}
	})
}

// BenchmarkCharts draws charts over 100,000 events of 14 days in 200 projects: after a start, and after each further event.
func BenchmarkCharts(b *testing.B) {
	const events, projects = 100_000, 200
	o := openStore(b, storetest.Dir(b))
	names := []string{"1_backlog", "2_current", "3_qa", "4_merge", "5_done"}
	begin := time.Now().Add(-domain.ChartDays * 24 * time.Hour)
	step := domain.ChartDays * 24 * time.Hour / events
	var reads []domain.FeedRead
	for i := range events {
		story, at := fmt.Sprintf("%d_story_of_some_length", i/(4*projects)), i/projects%4
		reads = append(reads, went(b, fmt.Sprint("project-", i%projects), story, names[at], names[at+1], begin.Add(time.Duration(i)*step)))
	}
	for len(reads) > 0 {
		n := min(1000, len(reads))
		if _, err := o.AppendEvents(context.Background(), reads[:n]); err != nil {
			b.Fatal(err)
		}
		reads = reads[n:]
	}
	var pipelines []domain.ProjectPipeline
	for i := range projects {
		pipelines = append(pipelines, chartPipeline(fmt.Sprint("project-", i)))
	}
	draw := func(b *testing.B, s *service.Service) {
		for drawn := false; !drawn; {
			charts, err := service.Charts(context.Background(), s, pipelines)
			if err != nil {
				b.Fatal(err)
			}
			drawn = charts[0].Days != nil
		}
	}
	s := streamOver(b, o)
	draw(b, s)
	if err := service.SaveStays(context.Background(), s); err != nil {
		b.Fatal(err)
	}
	b.Run("after a start", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			s = streamOver(b, o)
			b.StartTimer()
			draw(b, s)
		}
	})
	b.Run("unchanged", func(b *testing.B) {
		for b.Loop() {
			draw(b, s)
		}
	})
	b.Run("one event", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			b.StopTimer()
			if err := s.Events.Record(context.Background(), went(b, "project-7", fmt.Sprint("new-", i), "1_backlog", "2_current", time.Now())); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			draw(b, s)
		}
	})
}

// TestChartsAreThereRightAfterAStart runs in virtual time, in which no timeout ends while a goroutine is working.
func TestChartsAreThereRightAfterAStart(t *testing.T) {
	dir := storetest.Dir(t)
	synctest.Test(t, func(t *testing.T) {
		o := openStore(t, dir)
		now := time.Now()
		reads := []domain.FeedRead{
			went(t, "alpha", "1", "1_backlog", "2_current", now.Add(-3*time.Hour)),
			went(t, "alpha", "1", "2_current", "5_done", now.Add(-2*time.Hour)),
			went(t, "beta", "1", "1_backlog", "2_current", now.Add(-time.Hour)),
		}
		if _, err := o.AppendEvents(t.Context(), reads); err != nil {
			t.Fatal(err)
		}
		pipelines := []domain.ProjectPipeline{chartPipeline("alpha"), chartPipeline("beta")}
		before := streamOver(t, o)
		want, err := service.Charts(t.Context(), before, pipelines)
		if err != nil || want[0].Stages[0].Median != time.Hour {
			t.Fatal(want, err)
		}
		if err := service.SaveStays(t.Context(), before); err != nil {
			t.Fatal(err)
		}
		restart := func() []domain.Charts {
			after := streamOver(t, o)
			charts, err := service.Charts(t.Context(), after, pipelines)
			if err != nil {
				t.Fatal(err)
			}
			return charts
		}
		if got := restart(); !reflect.DeepEqual(got, want) {
			t.Errorf("after a restart\n got %v\nwant %v", got, want)
		}
		// Truncated moves are rebuilt from the stays; other corruption at least causes no failure.
		at, pieces, err := o.Moves(t.Context())
		if err != nil || pieces != 1 {
			t.Fatal(pieces, err)
		}
		moves, err := o.MovesPiece(t.Context(), 0, at)
		if err != nil {
			t.Fatal(err)
		}
		for length := range len(moves) {
			other := slices.Clone(moves)
			other[length] ^= 0xff
			for _, unreadable := range [][]byte{moves[:length], other} {
				if err := o.SaveMoves(t.Context(), at, [][]byte{unreadable}); err != nil {
					t.Fatal(err)
				}
				if got := restart(); len(unreadable) < len(moves) && !reflect.DeepEqual(got, want) {
					t.Errorf("with %d bytes of %d moves are\n got %v\nwant %v", length, len(moves), got, want)
				}
			}
		}
		if err := o.SaveMoves(t.Context(), at, [][]byte{moves}); err != nil {
			t.Fatal(err)
		}

		// A feed has events from long ago, and the gateway is killed before the moves are stored again.
		again := streamOver(t, o)
		if err := again.Events.Record(t.Context(), went(t, "alpha", "2", "2_current", "5_done", now.Add(-time.Hour))); err != nil {
			t.Fatal(err)
		}
		if _, err = service.Charts(t.Context(), again, pipelines); err != nil {
			t.Fatal(err)
		}
		if err := service.SaveStaysAlone(t.Context(), again); err != nil {
			t.Fatal(err)
		}
		if _, _, err := o.Moves(t.Context()); domain.CodeOf(err) != domain.NotFound {
			t.Errorf("moves that miss one are kept: %v", err)
		}
	})
}

// piecesRead counts the pieces of moves that are read, and the projects whose stays are read instead.
type piecesRead struct {
	service.Store
	pieces, projects atomic.Int64
}

func (s *piecesRead) ProjectStays(ctx context.Context, project string, since time.Time, limit int) ([]domain.Stay, error) {
	s.projects.Add(1)
	return s.Store.ProjectStays(ctx, project, since, limit)
}

func (s *piecesRead) MovesPiece(ctx context.Context, piece int, before time.Time) ([]byte, error) {
	s.pieces.Add(1)
	return s.Store.MovesPiece(ctx, piece, before)
}

func TestAfterAStartTheChartsOfAProjectAreReadWithoutThoseOfAllOthers(t *testing.T) {
	o := &piecesRead{Store: openStore(t, storetest.Dir(t))}
	const projects, stories = 12, 20
	now := time.Now()
	var reads []domain.FeedRead
	var pipelines []domain.ProjectPipeline
	for project := range projects {
		name := fmt.Sprint("project-", project)
		pipelines = append(pipelines, chartPipeline(name))
		read := went(t, name, "0", "1_backlog", "5_done", now.Add(-2*time.Hour))
		for story := range stories {
			at := now.Add(-time.Hour).Add(time.Duration(story) * time.Second)
			read.Records = append(read.Records, went(t, name, fmt.Sprint(story+project), "1_backlog", "5_done", at).Records...)
		}
		reads = append(reads, read)
	}
	if _, err := o.AppendEvents(t.Context(), reads); err != nil {
		t.Fatal(err)
	}
	drawn := func(s *service.Service, pipelines []domain.ProjectPipeline) (charts []domain.Charts) {
		waittest.Until(t, "the stream is accounted for", func() bool {
			var err error
			if charts, err = service.Charts(t.Context(), s, pipelines); err != nil {
				t.Fatal(err)
			}
			return !slices.ContainsFunc(charts, func(c domain.Charts) bool { return c.Days == nil })
		})
		return charts
	}
	before := streamOver(t, o)
	service.SplitMoves(before, 500)
	want := drawn(before, pipelines)
	if err := service.SaveStays(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	_, pieces, err := o.Moves(t.Context())
	if err != nil || pieces < 3 {
		t.Fatalf("%d pieces, %v: this tests nothing", pieces, err)
	}
	for range 2 { // the second one reads what the first one saved, which had read little
		s := streamOver(t, o)
		o.pieces.Store(0)
		o.projects.Store(0)
		if got := drawn(s, pipelines[4:5]); !reflect.DeepEqual(got, want[4:5]) {
			t.Errorf("after a restart\n got %v\nwant %v", got, want[4:5])
		}
		if read := o.pieces.Load(); read != 1 {
			t.Errorf("%d of %d pieces were read for one project", read, pieces)
		}
		if err := service.SaveStays(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if got := drawn(s, pipelines); !reflect.DeepEqual(got, want) {
			t.Errorf("of all\n got %v\nwant %v", got, want)
		}
		if read := o.projects.Load(); read != 0 {
			t.Errorf("of %d projects the stays were read", read)
		}
	}
}
