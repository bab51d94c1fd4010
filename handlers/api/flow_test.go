package api_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"switchyard/internal/gatewaytest"
)

// flowReply is what the tests look at.
type flowReply struct {
	More    int
	Stories []struct {
		Project   string
		StoryID   string `json:"story_id"`
		StoryName string `json:"story_name"`
		Days      int
	}
	Percentiles *map[string]int
	Throughput  []struct {
		Day      string
		Finished int
	}
	InWork []struct {
		Day    string
		Stages map[string]int
	} `json:"work_in_progress"`
	Ageing []struct {
		Project string
		StoryID string `json:"story_id"`
		Stage   string
		Days    int
		Over    *string
	}
	Forecast *struct {
		Days    int
		HowMany map[string]*int `json:"how_many"`
		Items   int
		When    map[string]*int
	}
	Graded *struct {
		Made     int
		CameTrue int `json:"came_true"`
		At       int
	}
}

const flowStages = `["1_backlog","2_current","3_qa","5_done","6_archived"]`

// flowBoard is a project server whose stories are in the given stages.
func flowBoard(t *testing.T, stories map[string]string) string {
	t.Helper()
	var names []string
	if err := json.Unmarshal([]byte(flowStages), &names); err != nil {
		t.Fatal(err)
	}
	var stages []string
	for _, name := range names {
		items := []string{}
		for story, stage := range stories {
			if stage == name {
				items = append(items, fmt.Sprintf(`{"story_id":%q,"story_name":%q,"blocked":null,"merge_failure":null,"since_ms":%d}`, story, story, time.Now().Add(-3*24*time.Hour).UnixMilli()))
			}
		}
		stages = append(stages, fmt.Sprintf(`{"name":%q,"items":[%s]}`, name, strings.Join(items, ",")))
	}
	return gatewaytest.ProjectServer(t, gatewaytest.Says(`{"project":"x","stages":[`+strings.Join(stages, ",")+`]}`))
}

// noonZone returns a zone where it is about noon, so that no test runs past midnight.
func noonZone(t *testing.T) (name string, zone *time.Location) {
	t.Helper()
	name = fmt.Sprintf("Etc/GMT%+d", time.Now().UTC().Hour()-12) // these names have the sign turned round
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return name, zone
}

func levelsText(at map[string]*int) string {
	return fmt.Sprint(*at["p50"], *at["p70"], *at["p85"], *at["p95"])
}

// TestFlowOfASmallProject is calculated by hand: 12 stories took 1 to 12 days, one was finished yesterday, one came back, one
// went past the done stage.
func TestFlowOfASmallProject(t *testing.T) {
	s := newSite(t)
	s.Add("alpha", flowBoard(t, map[string]string{"open": "2_current", "back": "3_qa", "idea": "1_backlog"}))
	s.Add("empty", flowBoard(t, nil))
	tz, zone := noonZone(t)
	noon := time.Now().In(zone).Add(-time.Hour)
	move := func(story, from, to string, daysAgo int) string {
		return fmt.Sprintf(`{"type":"stage_transition","story_id":%q,"story_name":"Story %s","from_stage":%q,"to_stage":%q,"timestamp_ms":%d}`,
			story, story, from, to, noon.AddDate(0, 0, -daysAgo).UnixMilli())
	}
	for n := range 12 { // story n is finished n+1 days ago and took n+1 days
		id := fmt.Sprintf("%d_s", n)
		s.Record("alpha", move(id, "1_backlog", "2_current", 2*n+1), move(id, "2_current", "5_done", n+1))
	}
	s.Record("alpha", move("open", "1_backlog", "2_current", 13))
	s.Record("alpha", move("back", "1_backlog", "2_current", 9), move("back", "2_current", "5_done", 8), move("back", "5_done", "3_qa", 7))
	s.Record("alpha", move("past", "1_backlog", "2_current", 5), move("past", "2_current", "6_archived", 4))
	s.Get("/api/gateway/pipeline")

	var got flowReply
	ask := func(query string) {
		t.Helper()
		got = flowReply{}
		if !strings.Contains(query, "tz=") {
			query += "&tz=" + url.QueryEscape(tz)
		}
		answer := s.Get("/api/gateway/flow"+query).WantStatus(t, http.StatusOK)
		if err := json.Unmarshal([]byte(answer.Text), &got); err != nil {
			t.Fatal(err)
		}
	}
	ask("?project=alpha&project=alpha&days=30")
	if len(got.Stories) != 12 || got.More != 0 || got.Stories[0].StoryID != "0_s" || got.Stories[0].Days != 1 || got.Stories[11].Days != 12 {
		t.Errorf("stories: %+v", got.Stories)
	}
	if p := got.Percentiles; p == nil || fmt.Sprint(*p) != "map[p50:6 p70:9 p85:11 p95:12]" {
		t.Errorf("percentiles: %v", p)
	}
	if len(got.Throughput) != 30 || got.Throughput[29].Day != noon.Format(time.DateOnly) || got.Throughput[29].Finished != 0 || got.Throughput[28].Finished != 1 {
		t.Errorf("throughput: %+v", got.Throughput)
	}
	if today := got.InWork[29].Stages; today["2_current"] != 1 || today["3_qa"] != 1 {
		t.Errorf("in work today: %v", today)
	}
	// At the end of the sixth day before, 5 to 11 were finished, 3, 4 and open were in work, and so was back.
	if then := got.InWork[29-6].Stages; then["2_current"] != 3 || then["3_qa"] != 1 {
		t.Errorf("in work six days ago: %v", then)
	}
	if len(got.Ageing) != 2 || got.Ageing[0].StoryID != "open" || got.Ageing[0].Days != 14 || got.Ageing[0].Over == nil || *got.Ageing[0].Over != "p95" ||
		got.Ageing[1].StoryID != "back" || got.Ageing[1].Days != 10 || *got.Ageing[1].Over != "p70" {
		t.Errorf("ageing: %+v", got.Ageing)
	}
	// The sample: 23 days, since the first move, on 12 of which one was finished. So what 14 days bring is binomial with 12/23 a day:
	// 7 or more 66.7 %, 6 83.3 %, 5 93.4 %, 4 98.0 %. Three are there after 5 days with 54.1 %, 6 69.6 %, 7 80.8 %, 8 88.2 %, 9 93.0 %,
	// 10 95.9 %. No day of the window with two weeks behind it had seen ten finished ones.
	if f := got.Forecast; f == nil || f.Days != 14 || f.Items != 3 || levelsText(f.HowMany) != "7 6 5 4" || levelsText(f.When) != "5 7 8 10" || got.Graded != nil {
		t.Errorf("forecast: %+v, graded %+v", f, got.Graded)
	}
	ask("?project=alpha&days=7")
	if len(got.Stories) != 6 || got.Percentiles != nil || got.Forecast != nil {
		t.Errorf("in 7 days: %d stories, %v, %v", len(got.Stories), got.Percentiles, got.Forecast)
	}
	ask("?project=empty")
	if len(got.Stories) != 0 || got.Forecast != nil || got.Graded != nil || len(got.Throughput) != 90 {
		t.Errorf("a project without stories: %+v", got)
	}
	s.Get("/flow?project=alpha&days=30&items=2&ahead=3&tz="+url.QueryEscape(tz)).WantText(t, "in 3 days", "2 by", "Half of 12 stories took 6 d or less")
	s.Get("/projects/alpha?days=30&tz="+url.QueryEscape(tz)).WantText(t, "Half of what is finished took <b>6 d</b>", "/flow?days=30&amp;project=alpha")
	// In Kiritimati, 14 hours ahead, noon is the next day.
	ask("?tz=Pacific/Kiritimati&items=2&ahead=3")
	if got.Forecast == nil || got.Forecast.Items != 2 || got.Forecast.Days != 3 {
		t.Errorf("forecast: %+v", got.Forecast)
	}

	for query, want := range map[string]int{
		"?days=6": 400, "?days=181": 400, "?days=x": 400, "?ahead=0": 400, "?ahead=181": 400, "?items=0": 400, "?items=1001": 400,
		"?tz=Mars/Olympus": 400, "?tz=Local": 400, "?tz=../etc/passwd": 400, "?project=alpha&project=none": 404, "?days=180&ahead=180&items=1000": 200,
	} {
		s.Get("/api/gateway/flow"+query).WantStatus(t, want)
		if page := s.Get("/flow" + query); page.StatusCode != want {
			t.Errorf("/flow%s: %d, want %d", query, page.StatusCode, want)
		}
		if page := s.Get("/projects/alpha" + query); want != 404 && page.StatusCode != want {
			t.Errorf("/projects/alpha%s: %d, want %d", query, page.StatusCode, want)
		}
	}

	csv := s.Get("/flow.csv?project=alpha&tz="+url.QueryEscape(tz)).WantStatus(t, http.StatusOK)
	lines := strings.Split(strings.TrimSpace(csv.Text), "\n")
	want := fmt.Sprintf("alpha,0_s,Story 0_s,%s,%s,1", noon.AddDate(0, 0, -1).Format(time.RFC3339), noon.AddDate(0, 0, -1).Format(time.RFC3339))
	if lines[0] != "project,story_id,story_name,started,finished,days" || len(lines) != 13 || lines[1] != want {
		t.Errorf("CSV:\n%s\nwant\n%s", csv.Text, want)
	}
	s.Get("/flow?project=alpha&tz="+url.QueryEscape(tz)).WantText(t, "<h1>Flow</h1>", "Half of 12 stories took 6 d or less")

	// What has just happened counts at once.
	s.Record("alpha", move("open", "2_current", "5_done", 0))
	ask("?project=alpha")
	if len(got.Stories) != 13 || got.Stories[0].StoryID != "open" || got.Stories[0].Days != 14 {
		t.Errorf("after one more: %+v", got.Stories)
	}
}

// TestAStoryWithAnOddIDIsReached from its point, in the CSV no spreadsheet takes a name for a formula, and no answer is broken by
// either.
func TestAStoryWithAnOddIDIsReached(t *testing.T) {
	s := newSite(t)
	s.Add("a/b?c", flowBoard(t, nil))
	for i, id := range []string{"=cmd|' /C calc'!A0", "a/../b", "<script>", "50%/?#", "\u202eevil", "ж\"x\",y", "@x", "-1+1", "+1"} {
		name, _ := json.Marshal(id)
		at := time.Now().Add(-time.Duration(i+1) * time.Hour)
		s.Record("a/b?c", fmt.Sprintf(`{"type":"stage_transition","story_id":%s,"story_name":%[1]s,"from_stage":"2_current","to_stage":"5_done","timestamp_ms":%d}`, name, at.UnixMilli()))
	}
	s.Get("/api/gateway/pipeline")
	rows, err := csv.NewReader(strings.NewReader(s.Get("/flow.csv").WantStatus(t, http.StatusOK).Text)).ReadAll()
	if err != nil || len(rows) != 10 {
		t.Fatal(len(rows), err)
	}
	for _, row := range rows {
		for _, cell := range row {
			if strings.ContainsAny(cell[:1], "=+-@") {
				t.Errorf("the cell %q is a formula", cell)
			}
		}
	}
	page := s.Get("/flow").WantStatus(t, http.StatusOK)
	points := regexp.MustCompile(`href="(/flow/\d+)"`).FindAllStringSubmatch(page.Text, -1)
	if len(points) != 9 || strings.Contains(page.Text, "<script>\"") {
		t.Errorf("%d points", len(points))
	}
	for _, point := range points {
		answer := s.Get(point[1]).WantStatus(t, http.StatusFound)
		if to := answer.Header.Get("Location"); !strings.HasPrefix(to, "/projects/a%2Fb%3Fc/stories/") || strings.Contains(to, "..") && !strings.Contains(to, "..%2F") {
			t.Errorf("%s leads to %s", point[1], to)
		} else {
			s.Get(to).WantStatus(t, http.StatusOK)
		}
	}
	for _, none := range []string{"/flow/0", "/flow/-1", "/flow/x", "/flow/99999999999999999999", "/flow/4711"} {
		s.Get(none).WantStatus(t, http.StatusNotFound)
	}
}
