package views_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/waittest"
	"switchyard/views"
)

// stuckBoard returns a project whose stories are all stuck in one stage.
func stuckBoard(stories int) (domain.ProjectPipeline, domain.Alerts) {
	p := domain.ProjectPipeline{Project: "large", URL: "http://127.0.0.1:3001", Reachable: true}
	items := make([]domain.Item, stories)
	for i := range items {
		items[i] = domain.Item{StoryID: fmt.Sprintf("%05d_story", i), StoryName: "S", Since: minutesAgo(9000)}
	}
	p.Stages = []domain.Stage{{Name: "1_backlog"}, {Name: "2_current", Items: items}, {Name: "5_done"}}
	return p, alertsOf([]domain.ProjectPipeline{p}, time.Hour)
}

// alertsOf returns the alerts of pipelines in which a story is stuck after limit.
func alertsOf(pipelines []domain.ProjectPipeline, limit time.Duration) domain.Alerts {
	var all []domain.Alert
	for i := range pipelines {
		p := &pipelines[i]
		if !p.Reachable && p.Error != domain.NoAnswerYet {
			all = append(all, domain.Alert{Kind: domain.AlertUnreachable, Project: p.Project, Reason: p.Error})
		} else if p.Reachable {
			limited := *p
			limited.Limits = slices.Repeat([]time.Duration{limit}, len(p.Stages))
			found, _ := domain.FindAlerts(&limited, now)
			all = append(all, found...)
		}
	}
	return domain.NewAlerts(all)
}

// TestTheGridGrowsWithTheNumberOfStuckStories, not with its square: each row is on everybody's page.
func TestTheGridGrowsWithTheNumberOfStuckStories(t *testing.T) {
	runtime.LockOSThread() // count only this test's time
	defer runtime.UnlockOSThread()
	took := func(stories int) time.Duration {
		p, alerts := stuckBoard(stories)
		props := views.OverviewProps{Order: views.NewTrackOrder([]domain.ProjectPipeline{p}, alerts, nil), Alerts: alerts, Now: now}
		best := time.Hour
		for range 10 {
			var b bytes.Buffer
			began := waittest.ThreadTime()
			if err := views.OverviewPart(props).Content.Render(context.Background(), &b); err != nil {
				t.Fatal(err)
			}
			best = min(best, waittest.ThreadTime()-began)
		}
		return best
	}
	few, many := took(1000), took(20_000)
	if many > 100*max(few, time.Millisecond) { // quadratic growth would be 400 times
		t.Errorf("1,000 stuck stories took %v, 20,000 took %v", few, many)
	}
}

// TestABoardShowsALimitedNumberOfStories: few with the page, more of a column that somebody unfolds.
func TestABoardShowsALimitedNumberOfStories(t *testing.T) {
	p, alerts := stuckBoard(20_000)
	for open, most := range map[string]int{"": 40, "2_current": 500} {
		var b bytes.Buffer
		part := views.ProjectPart(views.ProjectProps{
			Project: domain.Project{Name: "large"}, Pipeline: p, Overdue: alerts.Overdue["large"], Open: open, Now: now,
		})
		if err := part.Content.Render(context.Background(), &b); err != nil {
			t.Fatal(err)
		}
		html := b.String()
		if n := strings.Count(html, `id="story-`); n != most {
			t.Errorf("open %q: %d stories are shown", open, n)
		}
		if !strings.Contains(html, "20,000") || !strings.Contains(html, "are not shown") || strings.Contains(html, ">Show them<") != (open == "") {
			t.Errorf("open %q: the page does not say how many there are, and that some are not shown", open)
		}
	}
}

// TestStuckStoriesMayBeOlder: of what git's window does not reach an alert says "over", for one story and for several.
func TestStuckStoriesMayBeOlder(t *testing.T) {
	for _, stories := range []int{1, 2} {
		p, _ := stuckBoard(stories)
		p.Stages[1].Items[0].SinceAtLeast = true
		p.Stages[1].Items[0].Since = minutesAgo(9001)
		pipelines := []domain.ProjectPipeline{p}
		alerts := alertsOf(pipelines, time.Hour)
		var b bytes.Buffer
		props := views.OverviewProps{Order: views.NewTrackOrder(nil, domain.Alerts{}, nil), Alerts: alerts, Now: now}
		if err := views.OverviewPart(props).Content.Render(context.Background(), &b); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), "over <time") {
			t.Errorf("%d stories: %s", stories, &b)
		}
	}
}
