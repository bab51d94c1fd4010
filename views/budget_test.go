package views_test

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/a-h/templ"

	"switchyard/internal/domain"
	"switchyard/internal/web"
	"switchyard/static"
	"switchyard/views"
)

// manyProjects returns projects of all kinds. If all is true, every story of theirs is in trouble.
func manyProjects(n int, all bool) (list []domain.ProjectPipeline) {
	verbs := strings.Fields("add remove rename export import speed limit show hide retry cache sort filter print mail sign pay count merge split")
	nouns := strings.Fields("orders baskets labels invoices pictures accounts contacts reports pages prices stores carts coupons tokens webhooks themes menus tables")
	item := func(i int) domain.Item {
		verb, noun := verbs[i*7%len(verbs)], nouns[i*11%len(nouns)]
		return domain.Item{
			StoryID: fmt.Sprintf("%d_story_%s_%s", i, verb, noun), StoryName: fmt.Sprintf("%s %s of team %d", verb, noun, i%97), Since: minutesAgo(i),
		}
	}
	for i := range n {
		stages := []domain.Stage{{Name: "1_backlog"}, {Name: "2_current"}, {Name: "3_qa"}, {Name: "4_merge"}, {Name: "5_done"}, {Name: "6_archived"}}
		for s := range stages {
			for k := range (i + s) % 6 {
				it := item(i*50 + s*10 + k)
				if all || (i*7+s+k)%11 == 0 {
					it.Blocked = "waiting for " + it.StoryName
				}
				stages[s].Items = append(stages[s].Items, it)
			}
		}
		if !all && i%5 != 0 {
			stages[1].Items, stages[2].Items, stages[3].Items = nil, nil, nil
		}
		if i%40 == 3 {
			stages = stages[:5]
		}
		list = append(list, domain.ProjectPipeline{Project: fmt.Sprintf("%s-%d", nouns[i*5%len(nouns)], i), Reachable: true, Stages: stages})
	}
	return list
}

// TestTheFirstPageStaysSmall holds the page and all its files to 60 kB on the wire and to 3,000 elements, however many projects
// are registered and in trouble.
func TestTheFirstPageStaysSmall(t *testing.T) {
	for _, n := range []int{0, 1, 8, 60, 100, 200, 10_000} {
		for _, all := range []bool{false, true} {
			page := overviewPage(t, n, all)
			elements := len(regexp.MustCompile(`<[a-z]`).FindAll(page, -1))
			bytes := len(web.Gzip(page))
			for _, file := range regexp.MustCompile(`(?:src|href)="(/static/[^"]*)"`).FindAllSubmatch(page, -1) {
				asset, _ := static.Lookup(string(file[1]))
				bytes += len(asset.Compressed())
			}
			t.Logf("%5d projects, all in trouble %t: %d elements, %d bytes", n, all, elements, bytes)
			if elements > 3000 || bytes > 60_000 {
				t.Errorf("%d projects, all in trouble %t: %d elements, %d bytes", n, all, elements, bytes)
			}
		}
	}
}

func overviewPage(t *testing.T, n int, all bool) []byte {
	t.Helper()
	pipelines := manyProjects(n, all)
	frame := views.Frame{Page: views.PageOverview, Path: "/", Now: now}
	charts := make([]domain.Charts, n)
	for i, p := range pipelines {
		frame.Projects = append(frame.Projects, domain.Project{Name: p.Project})
		charts[i].Days = days(i%4, i%3, i%5, i%2, i%7, i%3, i%4, i%5, i%6, i%2, i%9, i%4, i%3, i%2)
	}
	alerts := alertsOf(pipelines, 24*time.Hour)
	part := views.OverviewPart(views.OverviewProps{
		Order: views.NewTrackOrder(pipelines, alerts, charts), Alerts: alerts,
		Events: domain.History(events(t), nil), Together: domain.Charts{
			Days: days(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14), ToDone: domain.StageTime{Median: 1e14, Visits: 3},
			Stages: []domain.StageTime{{Stage: "Current", Median: 1e14, Visits: 9}, {Stage: "QA", Median: 1e13, Visits: 8}, {Stage: "Merge", Median: 1e12, Visits: 7}},
		}, Now: now,
	})
	var page bytes.Buffer
	if err := views.Layout(frame).Render(templ.WithChildren(context.Background(), views.Around(views.Overview(), element(part))), &page); err != nil {
		t.Fatal(err)
	}
	return page.Bytes()
}
