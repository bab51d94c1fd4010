package service_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/store/storetest"
)

// flowBoards answers every project with an empty board.
type flowBoards struct{ service.ProjectServers }

func (flowBoards) Pipeline(_ context.Context, _ domain.Project, known *domain.PipelineAnswer) (*domain.PipelineAnswer, error) {
	if known != nil {
		return known, nil
	}
	a := &domain.PipelineAnswer{Raw: []byte("[]")}
	for _, name := range []string{"1_backlog", "2_current", "3_qa", "4_merge", "5_done"} {
		a.Stages = append(a.Stages, domain.Stage{Name: name})
	}
	return a, nil
}

// BenchmarkFlow is what 200 projects with 100,000 finished stories take: reading their visits, which a gateway does once
// after its start, before anybody asks; the first look at all of them and at one; the next ones; and what they cost.
func BenchmarkFlow(b *testing.B) {
	o := openStore(b, storetest.Dir(b))
	open := func() *service.Service {
		s, err := service.New(context.Background(), service.Options{Store: o, Projects: flowBoards{}, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			b.Fatal(err)
		}
		return s
	}
	s := open()
	now := time.Now()
	const projects, stories = 200, 500
	for p := range projects {
		name := fmt.Sprintf("project-%03d", p)
		if _, err := s.Projects.Add(b.Context(), name, "http://127.0.0.1:1", nil); err != nil {
			b.Fatal(err)
		}
		var reads []domain.FeedRead
		for n := range stories {
			id, at := fmt.Sprintf("%d_story", n), now.Add(-time.Duration(n*88/stories+1)*24*time.Hour-time.Duration(p)*time.Minute)
			for i, move := range [][2]string{{"1_backlog", "2_current"}, {"2_current", "3_qa"}, {"3_qa", "5_done"}} {
				reads = append(reads, went(b, name, id, move[0], move[1], at.Add(time.Duration(i)*7*time.Hour)))
			}
		}
		all := reads[0]
		for _, r := range reads[1:] {
			all.Records = append(all.Records, r.Records...)
		}
		if err := s.Events.Record(context.Background(), all); err != nil {
			b.Fatal(err)
		}
	}
	for p := range projects {
		var calls []domain.Call
		for n := range 4 * stories {
			story := n / 4
			calls = append(calls, domain.Call{
				Key: fmt.Sprint(p, " ", n), At: now.Add(-time.Duration(story%88) * 24 * time.Hour), Client: "codex", Session: fmt.Sprint(story),
				Model: fmt.Sprint(n % 2), Cost: new(domain.Micros(n)), Project: fmt.Sprintf("project-%03d", p), StoryID: fmt.Sprintf("%d_story", story),
			})
		}
		if _, err := o.AddCalls(b.Context(), calls); err != nil {
			b.Fatal(err)
		}
	}
	q := domain.FlowQuery{Days: 90, Ahead: 14, Zone: time.UTC}
	b.Run("start", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			fresh := open()
			fresh.Pipelines.Boards(b.Context(), 0)
			b.StartTimer()
			if _, err := fresh.Flow.Report(b.Context(), q); err != nil {
				b.Fatal(err)
			}
		}
	})
	look := func(b *testing.B, q domain.FlowQuery) {
		b.Helper()
		if _, err := s.Flow.Report(b.Context(), q); err != nil {
			b.Fatal(err)
		}
	}
	look(b, q)
	for name, projects := range map[string][]string{"first": nil, "first of one": {"project-007"}} {
		b.Run(name, func(b *testing.B) {
			other := q
			other.Projects = projects
			for i := 0; b.Loop(); i++ {
				other.Days, other.Ahead = 90-i%60, 1+i/60%180 // not asked before
				look(b, other)
			}
		})
	}
	b.Run("next", func(b *testing.B) {
		for b.Loop() {
			look(b, q)
		}
	})
	var fresh *service.Service
	begin := func() {
		fresh = open()
		fresh.Pipelines.Boards(b.Context(), 0)
		for known := 0; known < projects*stories; { // until all visits have been read
			r, err := fresh.Flow.Report(b.Context(), q)
			if err != nil {
				b.Fatal(err)
			}
			known = len(r.Stories) + r.More
		}
	}
	costs := func(b *testing.B) {
		b.Helper()
		r, err := fresh.Costs.Report(b.Context(), domain.CostQuery{Days: 90, Zone: time.UTC})
		if err != nil || r.Total.Calls != 4*projects*stories || r.Finished.Count < projects*stories {
			b.Fatalf("%v: %v", err, r)
		}
	}
	b.Run("next costs", func(b *testing.B) {
		begin()
		costs(b)
		for b.Loop() {
			costs(b)
		}
	})
	b.Run("first costs", func(b *testing.B) {
		for begin(); b.Loop(); {
			costs(b)
			b.StopTimer()
			begin()
			b.StartTimer()
		}
	})
}
