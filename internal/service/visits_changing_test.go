package service_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/store/storetest"
)

// changeCounter counts the visits that observations change.
type changeCounter struct {
	service.Store
	changed, transactions atomic.Int64
}

func (s *changeCounter) ObserveVisits(
	ctx context.Context, token int64, o ...domain.Observation,
) ([]domain.Visit, []string, error) {
	changed, contradicted, err := s.Store.ObserveVisits(ctx, token, o...)
	s.changed.Add(int64(len(changed)))
	s.transactions.Add(1)
	return changed, contradicted, err
}

// boardOf returns a board with n stories in the stage.
func boardOf(stage string, n int) *domain.PipelineAnswer {
	answer := &domain.PipelineAnswer{Stages: []domain.Stage{{Name: "1_a"}, {Name: "2_b"}}}
	for i := range answer.Stages {
		if answer.Stages[i].Name != stage {
			continue
		}
		for k := range n {
			answer.Stages[i].Items = append(answer.Stages[i].Items, domain.Item{StoryID: fmt.Sprint(k), StoryName: "A story"})
		}
	}
	return answer
}

// TestABoardThatAlwaysChangesIsStoredWithinLimits: and neither another board nor its own removal waits for it.
func TestABoardThatAlwaysChangesIsStoredWithinLimits(t *testing.T) {
	db := openStore(t, storetest.Dir(t))
	synctest.Test(t, func(t *testing.T) {
		o := &changeCounter{Store: db}
		s, err := service.New(t.Context(), service.Options{Store: o, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"wild", "calm"} {
			if _, err := s.Projects.Add(t.Context(), name, "http://"+name, nil); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = s.Visits.Run(ctx) }()
		const stories, minutes, left = 500, 4, 2_000
		service.SpendObservations(s, "wild", 40_000-left)
		refused := 0
		for i := range minutes * 6 {
			s.Visits.Observe("wild", boardOf([]string{"1_a", "2_b"}[i%2], stories), time.Now(), func(settled bool) {
				if !settled {
					refused++
				}
			})
			time.Sleep(10 * time.Second)
		}
		synctest.Wait()
		// A move changes two visits.
		if n := o.changed.Load(); n < 2*stories || n > 2*(left+minutes*60*2+200) || refused == 0 {
			t.Errorf("%d visits were changed in %d minutes, %d pipelines were refused", n, minutes, refused)
		}

		settled := make(chan time.Time, 1)
		began := time.Now()
		s.Visits.Observe("wild", boardOf("1_a", stories), began, func(bool) {})
		s.Visits.Observe("calm", boardOf("1_a", 3), began, func(bool) { settled <- time.Now() })
		if took := (<-settled).Sub(began); took > time.Second {
			t.Errorf("another board waits for %v", took)
		}
		if _, err := s.Projects.Remove(t.Context(), "wild"); err != nil {
			t.Fatal(err)
		}
		cancel()
		<-ended
	})
}

// TestManyBoardsAreObservedInFewTransactions: a transaction for each would keep a gateway with thousands of projects
// busy for minutes after its first start.
func TestManyBoardsAreObservedInFewTransactions(t *testing.T) {
	db := openStore(t, storetest.Dir(t))
	synctest.Test(t, func(t *testing.T) {
		o := &changeCounter{Store: db}
		s, err := service.New(t.Context(), service.Options{Store: o, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		const projects, stories = 100, 8
		settled := 0
		for i := range projects {
			name := fmt.Sprint("project-", i)
			if _, err := s.Projects.Add(t.Context(), name, "http://"+name, nil); err != nil {
				t.Fatal(err)
			}
			s.Visits.Observe(name, boardOf("1_a", stories), time.Now(), func(agreed bool) {
				if agreed {
					settled++
				}
			})
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = s.Visits.Run(ctx) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := o.changed.Load(); n != projects*stories || settled != projects {
			t.Errorf("%d visits were stored, %d boards are settled", n, settled)
		}
		if n := o.transactions.Load(); n > 5 {
			t.Errorf("%d boards took %d transactions", projects, n)
		}
		cancel()
		<-ended
	})
}
