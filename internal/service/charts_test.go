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
		charts, err = service.Charts(context.Background(), s, pipelines)
		if domain.CodeOf(err) == domain.Unavailable { // it is being read
			return false
		}
		if err != nil {
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
		record(before, went(t, "alpha", "1", "1_backlog", "2_current", now.Add(-40*24*time.Hour))) // visits are kept for longer than charts look back
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

// slowStore returns visits only when it is released.
type slowStore struct {
	*observedStore
	may chan struct{}
	err atomic.Pointer[error]
}

func (s *slowStore) ProjectVisits(ctx context.Context, projects []string, newest int) (map[string]*domain.ProjectVisits, error) {
	<-s.may
	if err := s.err.Load(); err != nil {
		return nil, *err
	}
	return s.observedStore.ProjectVisits(ctx, projects, newest)
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
		before := streamOver(t, o)
		for _, read := range []domain.FeedRead{
			went(t, "alpha", "1", "1_backlog", "2_current", now.Add(-3*time.Hour)),
			went(t, "alpha", "1", "2_current", "5_done", now.Add(-2*time.Hour)),
			went(t, "beta", "1", "1_backlog", "2_current", now.Add(-time.Hour)),
		} {
			if err := before.Events.Record(t.Context(), read); err != nil {
				t.Fatal(err)
			}
		}
		pipelines := []domain.ProjectPipeline{chartPipeline("alpha"), chartPipeline("beta")}
		want, err := service.Charts(t.Context(), before, pipelines)
		if err != nil || want[0].Stages[0].Median != time.Hour {
			t.Fatal(want, err)
		}
		if got, err := service.Charts(t.Context(), streamOver(t, o), pipelines); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("after a restart\n got %v, %v\nwant %v", got, err, want)
		}
	})
}

// visitReads counts the reads of projects' visits.
type visitReads struct {
	service.Store
	reads, projects atomic.Int64
}

func (s *visitReads) ProjectVisits(ctx context.Context, projects []string, newest int) (map[string]*domain.ProjectVisits, error) {
	s.reads.Add(1)
	s.projects.Add(int64(len(projects)))
	return s.Store.ProjectVisits(ctx, projects, newest)
}

// TestVisitsOfManyProjectsAreReadTogether: and each once, whoever asks.
func TestVisitsOfManyProjectsAreReadTogether(t *testing.T) {
	db := openStore(t, storetest.Dir(t))
	o := &visitReads{Store: db}
	const projects = 250
	now := time.Now()
	var reads []domain.FeedRead
	var names []string
	var registered []domain.Project
	for project := range projects {
		name := fmt.Sprint("project-", project)
		names, registered = append(names, name), append(registered, domain.Project{Name: name, URL: "http://" + name})
		reads = append(reads, went(t, name, "0", "1_backlog", "5_done", now)) // of today, even at midnight
	}
	if err := db.AddProjects(t.Context(), nil, "", registered...); err != nil {
		t.Fatal(err)
	}
	if _, err := o.AppendEvents(t.Context(), reads); err != nil {
		t.Fatal(err)
	}
	s := streamOver(t, o)
	for i := range 3 {
		waittest.Until(t, "all are read", func() bool {
			if err := s.Visits.Load(t.Context(), time.Second, names...); err != nil {
				t.Fatal(err)
			}
			return o.projects.Load() == projects
		})
		if err := s.Events.Record(t.Context(), went(t, "project-7", fmt.Sprint("story ", i), "1_backlog", "5_done", now)); err != nil {
			t.Fatal(err)
		}
	}
	if today, _ := draw(t, s, names...); today[7] != 4 || today[8] != 1 || o.reads.Load() != projects/10 || o.projects.Load() != projects {
		t.Errorf("finished today: %v, after %d reads of %d projects", today, o.reads.Load(), o.projects.Load())
	}
}
