package views_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/a-h/templ"

	"switchyard/internal/domain"
	"switchyard/static"
	"switchyard/views"
)

var update = flag.Bool("update", false, "write the golden files again")

// now is the current time in these tests.
var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func minutesAgo(n int) time.Time { return now.Add(-time.Duration(n) * time.Minute) }

var alpha = domain.ProjectPipeline{
	Project: "alpha", URL: "http://127.0.0.1:3001", Reachable: true, FetchedAt: minutesAgo(0), LastSeen: minutesAgo(0),
	Stages: []domain.Stage{
		{Name: "1_backlog", Items: []domain.Item{{StoryID: "20_story_idea", StoryName: "An idea", Since: minutesAgo(9000)}}},
		{Name: "2_current", Items: []domain.Item{
			{StoryID: "14_story_login", StoryName: "Log in with a passkey or with a token", Since: minutesAgo(14)},
			{StoryID: "15", StoryName: "15", Since: minutesAgo(1)},
			{StoryID: "16_story_c", StoryName: "C", Since: minutesAgo(2)},
			{StoryID: "12_story_pay", StoryName: "Pay", Since: minutesAgo(120), Blocked: "waiting: API key"},
		}},
		{Name: "3_qa"},
		{Name: "5_done", Items: []domain.Item{{StoryID: "1_story_a", StoryName: "A", Since: minutesAgo(3)}}},
	},
}

var (
	stale = domain.ProjectPipeline{
		Project: "be ta/2", URL: "http://127.0.0.1:3002", Reachable: true, Stale: true, FetchedAt: minutesAgo(1), LastSeen: minutesAgo(1),
		Stages: []domain.Stage{{Name: "1_todo"}, {Name: "2_current", Items: []domain.Item{
			{StoryID: "7_story_cache", StoryName: "Cache", Since: minutesAgo(2000), MergeFailure: "conflict in go.mod"},
		}}, {Name: "3_done"}},
	}
	lost    = domain.ProjectPipeline{Project: "gamma", URL: "http://127.0.0.1:3003", Error: "connection refused", LastSeen: minutesAgo(3)}
	unheard = domain.ProjectPipeline{Project: "new", URL: "http://127.0.0.1:3004", Error: domain.NoAnswerYet}
)

func event(t *testing.T, id int64, record string) domain.Event {
	r, err := domain.ParseRecord([]byte(record))
	if err != nil {
		t.Fatal(err)
	}
	return domain.Event{ID: id, Project: "alpha", ReceivedAt: r.At, Record: r}
}

func events(t *testing.T) []domain.Event {
	ours := event(t, 6, `{"type":"feed_gap","missed":2,"timestamp_ms":1795261600000}`)
	ours.Type = domain.ForeignFeedGap // the stored form of a gap that a project's own feed reports
	return []domain.Event{
		ours,
		event(t, 5, `{"type":"feed_gap","missed":3,"timestamp_ms":1795261500000}`),
		event(t, 4, `{"type":"something_new","timestamp_ms":1795261400000}`),
		event(t, 3, `{"type":"merge_failure","story_id":"7_story_cache","story_name":"Cache","reason":"conflict","timestamp_ms":1795261300000}`),
		event(t, 2, `{"type":"story_blocked","story_id":"12_story_pay","story_name":"Pay","reason":"waiting: API key","timestamp_ms":1795174900000}`),
		event(t, 1, `{"type":"stage_transition","story_id":"12_story_pay","story_name":"Pay","from_stage":"1_backlog","to_stage":"4_code_review","timestamp_ms":1794000000000}`),
	}
}

// days returns counts of finished stories, the last one for today.
func days(counts ...int) (list []domain.DayCount) {
	for i, n := range counts {
		list = append(list, domain.DayCount{Day: now.AddDate(0, 0, i-len(counts)+1).Truncate(24 * time.Hour), Finished: n})
	}
	return list
}

// fromGit says how many of each day's only git knows.
func fromGit(list []domain.DayCount, counts ...int) []domain.DayCount {
	for i, n := range counts {
		list[i].FromGit = n
	}
	return list
}

func TestComponentsMatchTheirGoldenFiles(t *testing.T) {
	pipelines := []domain.ProjectPipeline{alpha, stale, lost, unheard}
	stuck, nothing := alertsOf(pipelines, 24*time.Hour), views.NewTrackOrder(nil, domain.Alerts{}, nil)
	eventsPage := views.EventsProps{Filter: views.EventFilter{Text: "a b"}, Events: domain.History(events(t), nil), Since: views.EventPlace{At: 1, ID: 1}, Older: views.EventPlace{At: 1, ID: 1}, Now: now}
	caused := domain.History(events(t)[4:], nil)
	caused[0].By, caused[0].Via = "Ada", domain.ChannelGit
	order := views.NewTrackOrder([]domain.ProjectPipeline{alpha, lost, stale}, domain.Alerts{}, nil)
	list, rows := views.NewProjectList(order, "", views.ShowAll, "", 1)
	for name, component := range map[string]templ.Component{
		"layout": views.Layout(views.Frame{
			Version: "1.2.3",
			Title:   "Overview", Page: views.PageOverview, Path: "/?q=x", Active: "alpha", Now: now, Theme: views.ThemeDark,
			Projects: []domain.Project{{Name: "alpha", Token: "secret"}, {Name: "beta"}},
			SignIn:   domain.SignInStatus{Authenticated: true, ExpiresAt: uint64(minutesAgo(-42).UnixMilli())},
			Notice:   views.Notice{Text: "beta is removed.", Undo: views.Undo{URL: "/restore-project", Name: "removal", Value: "id"}},
		}),
		"overview": element(views.OverviewPart(views.OverviewProps{
			Active: "alpha", Order: views.NewTrackOrder(pipelines, stuck, nil), Alerts: stuck, Events: domain.History(events(t), nil), Now: now,
		})),
		"overview_troubled": element(views.OverviewPart(views.OverviewProps{Now: now, Order: nothing, Alerts: domain.NewAlerts([]domain.Alert{
			{Kind: domain.AlertBot, Reason: "wrong password", Since: minutesAgo(3)},
			{Kind: domain.AlertStore, Reason: "the store failed: the disk is full", Since: minutesAgo(9)},
			{Kind: domain.AlertAgentLost, Project: "al/pha", Agent: "builder-2", AgentID: "b2", Since: minutesAgo(50)},
			{Kind: domain.AlertClockAhead, Project: "alpha", Since: minutesAgo(60)},
		})})),
		"charts_empty": element(views.ProjectPart(views.ProjectProps{
			Project: domain.Project{Name: "alpha"}, Pipeline: lost, Now: now, Charts: domain.Charts{Days: days(0, 0)},
		})),
		"overview_busy": element(views.OverviewPart(views.OverviewProps{Order: views.NewTrackOrder(pipelines, domain.Alerts{}, nil), Now: now, Together: domain.Charts{
			Days: days(120, 3, 0), Before: 100, ToDone: domain.StageTime{Median: 46 * time.Hour, Visits: 123},
			Stages: []domain.StageTime{{Stage: "Current", Median: 26 * time.Hour, Visits: 99}, {Stage: "QA", Median: 14 * time.Minute, Visits: 1}},
		}})),
		"overview_first": element(views.OverviewPart(views.OverviewProps{Now: now, Order: nothing})),
		"projects":       element(views.ProjectsPart(views.ProjectsProps{Active: "alpha", Now: now, List: list, Order: order, Rows: rows})),
		"project": element(views.ProjectPart(views.ProjectProps{
			Project: domain.Project{Name: "alpha"}, Pipeline: alpha, Events: caused, Now: now,
			Charts: domain.Charts{Days: days(0, 2, 0, 7, 1), Stages: []domain.StageTime{
				{Stage: "2_current", Title: "Current", Median: 30 * time.Hour, Visits: 5},
				{Stage: "3_qa", Title: "QA"},
				{Stage: "4_merge", Title: "Merge", Median: 14 * time.Minute, Visits: 1},
			}},
		})),
		"project_from_git": element(views.ProjectPart(views.ProjectProps{
			Project: domain.Project{Name: "alpha"}, Pipeline: alpha, Now: now, Charts: domain.Charts{
				Days: fromGit(days(3, 2, 0, 7, 1), 3, 2, 0, 4), ToDone: domain.StageTime{Median: 46 * time.Hour, Visits: 12},
				Past: domain.Past{ID: "x", Since: now.AddDate(0, 0, -183), Live: now.AddDate(0, 0, -1)},
			},
		})),
		"events": views.Around(views.Events(eventsPage, []string{"alpha"}), element(views.EventsPart(eventsPage))),
	} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			if err := component.Render(context.Background(), &got); err != nil {
				t.Fatal(err)
			}
			compare(t, filepath.Join("testdata", name+".html"), readable(got.Bytes()))
		})
	}
}

// element returns a part as it is on its page.
func element(p views.Part) templ.Component { return p.Element("v1", p.Content) }

// readable puts each element on a new line, so that differences are visible, and removes the hashes of files
// and the types of events.
func readable(html []byte) []byte {
	html = regexp.MustCompile(static.Prefix+`([a-z0-9.-]+)\.[0-9a-f]{12}\.`).ReplaceAll(html, []byte(static.Prefix+"$1.HASH."))
	html = append(regexp.MustCompile(`>\s*<`).ReplaceAll(html, []byte(">\n<")), '\n')
	var choices []byte
	for _, kind := range domain.EventKinds {
		if kind.Choice != "" {
			choices = fmt.Appendf(choices, "<option value=\"%s\">%s</option>\n", kind.Type, kind.Choice)
		}
	}
	return bytes.Replace(html, choices, []byte("<option>TYPES</option>\n"), 1)
}

func compare(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs %s\nIf that is as it should be: go test ./views -update", path, firstDifference(got, want))
	}
}

// firstDifference says where got first differs from want.
func firstDifference(got, want []byte) string {
	is, was := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(is), len(was)) {
		if is[i] != was[i] {
			return fmt.Sprintf("in line %d:\n got %s\nwant %s", i+1, is[i], was[i])
		}
	}
	return fmt.Sprintf("in its length: %d lines, not %d", len(is), len(was))
}

func TestMain(m *testing.M) {
	time.Local = time.UTC // exact times are in the gateway's zone
	os.Exit(m.Run())
}

func TestTheNumberOfAStoryIsShownOnce(t *testing.T) {
	p := domain.ProjectPipeline{Project: "alpha", Reachable: true, Stages: []domain.Stage{{Name: "1_backlog"}, {Name: "2_current", Items: []domain.Item{
		{StoryID: "10_story_login", StoryName: "Log in", Since: now}, {StoryID: "11_story_pay", StoryName: "11_story_pay", Since: now},
	}}, {Name: "3_done"}}}
	var b strings.Builder
	if err := views.OverviewPart(views.OverviewProps{Order: views.NewTrackOrder([]domain.ProjectPipeline{p}, domain.Alerts{}, nil), Now: now}).Content.Render(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	if html := b.String(); !strings.Contains(html, ">10</span>") || strings.Contains(html, ">11</span>") {
		t.Errorf("a name goes with its number, an id without: %s", html)
	}
}
