package views_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/views"
)

// TestTheGridOfAChangedOrderIsThatOfANewOne changes a few projects at a time, or all of them, or their number.
func TestTheGridOfAChangedOrderIsThatOfANewOne(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pipelines, stuck := manyProjects(400, false), map[string][]string{}
	var order *views.TrackOrder
	for round := range 20 {
		pipelines = slices.Clone(pipelines)
		for range random.IntN(30) {
			changeProject(&pipelines[random.IntN(len(pipelines))], random, round)
		}
		switch round {
		case 7:
			pipelines = manyProjects(500, false)
		case 12:
			pipelines = pipelines[10:]
		case 15:
			stuck = map[string][]string{pipelines[3].Project: {"1"}, pipelines[300].Project: {"2", "3"}}
		}
		alerts := domain.NewAlerts(nil)
		alerts.Stuck = stuck
		order = views.NewTrackOrder(pipelines, stuck, order)
		if again := views.NewTrackOrder(pipelines, stuck, order); again != order {
			t.Errorf("round %d: the same projects have another order", round)
		}
		for page := 1; page < 40; page += 13 {
			p := views.OverviewProps{Pipelines: pipelines, Alerts: alerts, Now: now, Page: page}
			want := overviewHTML(t, p)
			p.Order = order
			if got := overviewHTML(t, p); got != want {
				t.Fatalf("round %d: page %d is another one than without what was known", round, page)
			}
		}
	}
}

// changeProject moves a story of a project, or makes the project unreachable.
func changeProject(p *domain.ProjectPipeline, random *rand.Rand, round int) {
	if random.IntN(4) == 0 {
		p.Reachable, p.Error = !p.Reachable, "connection refused"
		return
	}
	p.Stages = slices.Clone(p.Stages)
	moved := domain.Item{StoryID: fmt.Sprint(round), StoryName: "Moved", Since: now.Add(time.Duration(random.IntN(1000)) * time.Second)}
	p.Stages[random.IntN(len(p.Stages))].Items = []domain.Item{moved}
}

func overviewHTML(t *testing.T, p views.OverviewProps) string {
	t.Helper()
	var b bytes.Buffer
	if err := views.OverviewPart(p).Content.Render(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
