package service_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/store/sqlite"
	"switchyard/internal/store/storetest"
)

// sameBoard returns the same board, with a version, for every project.
type sameBoard struct{ answer *domain.PipelineAnswer }

func (b *sameBoard) Pipeline(context.Context, domain.Project, *domain.PipelineAnswer) (*domain.PipelineAnswer, error) {
	return b.answer, nil
}

// newOverview returns a service that has shown the boards of n projects whose feeds send the boards' version.
func newOverview(t testing.TB, n int) (*service.Service, *sameBoard) {
	t.Helper()
	db, err := sqlite.Open(context.Background(), storetest.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	since := time.Now().Add(-time.Hour)
	board := &sameBoard{&domain.PipelineAnswer{ETag: `"1"`, Stages: []domain.Stage{
		{Name: "1_backlog", Items: []domain.Item{{StoryID: "1_a", StoryName: "A", Since: since}}},
		{Name: "2_current", Items: []domain.Item{{StoryID: "2_b", StoryName: "B", Since: since}, {StoryID: "3_c", StoryName: "C", Since: since}}},
		{Name: "3_qa"},
		{Name: "4_merge"},
		{Name: "5_done", Items: []domain.Item{{StoryID: "4_d", StoryName: "D", Since: since}}},
	}}}
	s, err := service.New(context.Background(), service.Options{Store: db, Projects: board, Bot: idleBot{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	projects := make([]domain.Project, n)
	for i := range projects {
		projects[i] = domain.Project{Name: fmt.Sprintf("project-%05d", i), URL: "http://127.0.0.1:1"}
	}
	if err := s.Projects.Seed(context.Background(), projects); err != nil {
		t.Fatal(err)
	}
	for known := false; !known; {
		_, pipelines := s.Pipelines.All(context.Background(), time.Hour)
		known = true
		for _, p := range pipelines {
			known = known && p.Reachable
		}
	}
	for _, p := range projects {
		s.Pipelines.RefetchIfChanged(p, domain.FeedResult{Version: "1"})
	}
	return s, board
}

func nextSnapshot(s *service.Service) *service.Snapshot {
	return service.NextSnapshot(context.Background(), s)
}

func TestSnapshotsShareWhatHasNotChanged(t *testing.T) {
	s, _ := newOverview(t, 3)
	var one, other *service.Snapshot
	for range 10 { // the first ones take in what is on the boards
		one, other = other, nextSnapshot(s)
	}
	if one == other || &one.Pipelines[0] != &other.Pipelines[0] || !sharesCharts(one, other) {
		t.Error("two snapshots of the same have pipelines or charts of their own")
	}
	if err := s.Events.Record(context.Background(), went(t, "project-00001", "2_b", "2_current", "5_done", time.Now())); err != nil {
		t.Fatal(err)
	}
	if next := nextSnapshot(s); next.Together.Days[domain.ChartDays-1].Finished != 1 {
		t.Errorf("a finished story does not show: %v", next.Together.Days)
	}
	if _, err := s.Projects.Remove(context.Background(), "project-00002"); err != nil {
		t.Fatal(err)
	}
	if next := nextSnapshot(s); len(next.Pipelines) != 2 || len(next.Charts) != 2 {
		t.Errorf("%d pipelines and %d charts of 2 projects", len(next.Pipelines), len(next.Charts))
	}
}

func TestAProjectIsShownWithItsChartsWhileOthersAreAwaited(t *testing.T) {
	dir := storetest.Dir(t)
	synctest.Test(t, func(t *testing.T) {
		db, err := sqlite.Open(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		b := &boardServer{}
		b.show(t, "http://alpha", blockedBoard(`"key"`))
		b.set("http://beta", good(200*time.Millisecond))
		s := overBoard(t, db, b)
		for _, name := range []string{"alpha", "beta"} {
			if _, err := s.Projects.Add(t.Context(), name, "http://"+name, nil); err != nil {
				t.Fatal(err)
			}
		}
		for _, limit := range []time.Duration{50 * time.Millisecond, 0} { // at first, and once all are known
			began := time.Now()
			p, err := s.Overview.Project(t.Context(), "alpha")
			if took := time.Since(began); err != nil || took > limit || !p.Pipeline.Reachable || len(p.Charts.Days) == 0 {
				t.Errorf("after %v: %+v, %v", took, p, err)
			}
			began = time.Now()
			story, err := s.Overview.Story(t.Context(), "alpha", "1", false)
			if took := time.Since(began); err != nil || took > limit || len(story.Alerts) != 1 || story.Alerts[0].Reason != "key" {
				t.Errorf("after %v: %+v, %v", took, story.Alerts, err)
			}
			time.Sleep(250 * time.Millisecond)
		}
		if _, err := s.Overview.Project(t.Context(), "gamma"); domain.CodeOf(err) != domain.NotFound {
			t.Errorf("of a project that is not there: %v", err)
		}
	})
}

func TestThePageOfAProjectAsksNoOther(t *testing.T) {
	slow := good(20 * time.Millisecond)
	withServers(t, []answerFunc{slow, slow, slow, slow}, func(t *testing.T, s *service.Service, up *servers) {
		p, err := s.Overview.Project(t.Context(), "p0002")
		if err != nil || brief(p.Pipeline) != "fresh [1]" {
			t.Errorf("%s, %v", brief(p.Pipeline), err)
		}
		time.Sleep(time.Second)
		if calls := up.calls.Load(); calls != 1 {
			t.Errorf("%d projects were asked", calls)
		}
	})
}

func sharesCharts(one, other *service.Snapshot) bool { return &one.Charts[0] == &other.Charts[0] }

func TestASnapshotFindsWhatGetsStuckWhileNothingElseHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newOverview(t, 2)
		for _, step := range []struct {
			wait  time.Duration
			stuck int
		}{{0, 0}, {22 * time.Hour, 0}, {59 * time.Minute, 0}, {2 * time.Minute, 4}, {time.Hour, 4}} {
			time.Sleep(step.wait)
			synctest.Wait()
			if open := nextSnapshot(s).Alerts.Open; open != step.stuck {
				t.Errorf("after another %v %d stories need attention, not %d", step.wait, open, step.stuck)
			}
		}
	})
}

// BenchmarkSnapshot measures the cost of a tab of the overview every two seconds while nothing happens.
func BenchmarkSnapshot(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, _ := newOverview(b, n)
			for one, other := nextSnapshot(s), nextSnapshot(s); !sharesCharts(one, other); {
				one, other = other, nextSnapshot(s)
			}
			b.ReportAllocs()
			for b.Loop() {
				nextSnapshot(s)
			}
		})
	}
}
