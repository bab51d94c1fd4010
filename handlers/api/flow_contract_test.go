package api_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"switchyard/internal/gatewaytest"
	"switchyard/internal/waittest"
)

// flowOracle computes the answer for some projects from their moves, as the contract words it and as slowly as that takes.
type flowOracle struct {
	zone               *time.Location
	days, ahead, items int
	boards             map[string]map[string]string // by project and story: the stage in which it is; since three days
	moves              map[string]map[string][]flowMove
}

type flowMove struct {
	from, to string
	at       time.Time
}

// place is the index of a stage: 0 waits, 1 and 2 are work, 3 is done, 4 is later.
func place(stage string) int {
	var names []string
	_ = json.Unmarshal([]byte(flowStages), &names)
	return slices.Index(names, stage)
}

// dayOf numbers the calendar days of the zone; today is 0, yesterday -1.
func (o *flowOracle) dayOf(at time.Time) int {
	date := func(t time.Time) time.Time {
		day, _ := time.Parse(time.DateOnly, t.In(o.zone).Format(time.DateOnly))
		return day
	}
	return int(date(at).Sub(date(time.Now())).Hours()) / 24
}

func rank(sorted []int, percent int) int {
	for i, n := range sorted {
		if 100*(i+1) >= percent*len(sorted) {
			return n
		}
	}
	return 0
}

func levelsOf(value func(percent int) any) map[string]any {
	return map[string]any{"p50": value(50), "p70": value(70), "p85": value(85), "p95": value(95)}
}

// sums is the distribution of what is finished in some days like those of the sample.
func sums(sample []int, days int) map[int]float64 {
	now := map[int]float64{0: 1}
	for range days {
		next := map[int]float64{}
		for sum, p := range now {
			for _, n := range sample {
				next[sum+n] += p / float64(len(sample))
			}
		}
		now = next
	}
	return now
}

func atLeast(chances map[int]float64, n int) (p float64) {
	for sum, q := range chances {
		if sum >= n {
			p += q
		}
	}
	return p
}

// promised is the largest number that is reached or passed with a chance.
func promised(sample []int, days, percent int) int {
	chances := sums(sample, days)
	n := 0
	for atLeast(chances, n+1) >= float64(percent)/100-1e-9 {
		n++
	}
	return n
}

func total(list []int) (sum int) {
	for _, n := range list {
		sum += n
	}
	return sum
}

type flowDone struct {
	project, story string
	start, done    time.Time
	days           int
}

func (o *flowOracle) answer() map[string]any {
	var finished []flowDone
	perDay, wip, first := map[int]int{}, map[int]map[string]int{}, 1
	starts, ageing, open := map[string]time.Time{}, []map[string]any{}, 0
	for d := 1 - o.days; d <= 0; d++ {
		wip[d] = map[string]int{}
	}
	for project, stories := range o.moves {
		for story, moves := range stories {
			var start, done time.Time
			for i, m := range moves {
				first = min(first, o.dayOf(m.at))
				if start.IsZero() && place(m.to) > 0 {
					start = m.at
				}
				switch {
				case place(m.to) == 3 && place(m.from) < 3:
					done = m.at
				case place(m.to) < 3:
					done = time.Time{}
				}
				until := 1
				if i+1 < len(moves) {
					until = o.dayOf(moves[i+1].at)
				} else if o.boards[project][story] == "" {
					until = 0 // it has left the board
				}
				for d := max(1-o.days, o.dayOf(m.at)); d < until; d++ {
					wip[d][m.to]++
				}
			}
			if start.IsZero() {
				start = moves[0].at
			}
			starts[project+"/"+story] = start
			if !done.IsZero() {
				perDay[o.dayOf(done)]++
				if o.dayOf(done) > -o.days {
					finished = append(finished, flowDone{project, story, start, done, o.dayOf(done) - o.dayOf(start) + 1})
				}
			}
		}
	}
	slices.SortFunc(finished, func(a, b flowDone) int { return b.done.Compare(a.done) })
	var took []int
	list := []map[string]any{}
	for _, s := range finished {
		took = append(took, s.days)
		list = append(list, map[string]any{"project": s.project, "story_id": s.story, "story_name": s.story, "started_ms": s.start.UnixMilli(), "finished_ms": s.done.UnixMilli(), "days": s.days})
	}
	slices.Sort(took)
	answer := map[string]any{"more": 0, "stories": list, "percentiles": nil, "forecast": nil, "graded": nil}
	if len(took) >= 10 {
		answer["percentiles"] = levelsOf(func(percent int) any { return rank(took, percent) })
	}
	for project, board := range o.boards {
		for story, stage := range board {
			if place(stage) < 3 {
				open++
			}
			start, known := starts[project+"/"+story]
			if !known {
				start = time.Now().Add(-3 * 24 * time.Hour)
				for d := max(1-o.days, o.dayOf(start)); d <= 0; d++ {
					wip[d][stage]++
				}
			}
			if place(stage) != 1 && place(stage) != 2 {
				continue
			}
			age := map[string]any{"project": project, "story_id": story, "stage": stage, "days": 1 - o.dayOf(start), "over": nil}
			for _, percent := range []int{50, 70, 85, 95} {
				if len(took) >= 10 && 1-o.dayOf(start) > rank(took, percent) {
					age["over"] = fmt.Sprint("p", percent)
				}
			}
			ageing = append(ageing, age)
		}
	}
	sort.Slice(ageing, func(i, j int) bool { return flowAgeKey(ageing[i]) < flowAgeKey(ageing[j]) })
	answer["ageing"] = ageing
	var throughput, stages []map[string]any
	for d := 1 - o.days; d <= 0; d++ {
		day := time.Now().In(o.zone).AddDate(0, 0, d).Format(time.DateOnly)
		throughput = append(throughput, map[string]any{"day": day, "finished": perDay[d]})
		stages = append(stages, map[string]any{"day": day, "stages": wip[d]})
	}
	answer["throughput"], answer["work_in_progress"] = throughput, stages
	past := func(from, to int) (list []int) {
		for d := max(first, from); d <= to; d++ {
			list = append(list, perDay[d])
		}
		return list
	}
	enough := func(sample []int) bool { return len(sample) >= 10 && total(sample) >= 10 }
	if o.items == 0 {
		o.items = min(max(1, open), 1000)
	}
	if sample := past(1-o.days, -1); enough(sample) {
		answer["forecast"] = map[string]any{
			"days": o.ahead, "items": o.items, "how_many": levelsOf(func(percent int) any { return promised(sample, o.ahead, percent) }),
			"when": levelsOf(func(percent int) any {
				for day, chances := 1, sums(sample, 1); day <= 365; day++ {
					if atLeast(chances, o.items) >= float64(percent)/100-1e-9 {
						return day
					}
					next := map[int]float64{}
					for sum, p := range chances {
						for _, n := range sample {
							next[min(sum+n, o.items)] += p / float64(len(sample))
						}
					}
					chances = next
				}
				return nil
			}),
		}
	}
	made, came := 0, 0
	for d := 1 - o.days; d < -14; d++ { // the 14 whole days d+1 … d+14 are before today
		if sample := past(d+1-o.days, d); enough(sample) {
			made++
			if total(past(d+1, d+14)) >= promised(sample, 14, 85) {
				came++
			}
		}
	}
	if made > 0 {
		answer["graded"] = map[string]any{"made": made, "came_true": came, "at": 85}
	}
	return answer
}

// flowAgeKey puts the oldest first, and those of one day in an order that does not matter here.
func flowAgeKey(age map[string]any) string {
	return fmt.Sprintf("%09d %v %v", 100_000-age["days"].(int), age["project"], age["story_id"])
}

// flowPast invents what happened to stories in 200 days: they go on, back, past stages and out of the board.
func flowPast(random *rand.Rand, o *flowOracle, project string, stories int) (records []string) {
	var stages []string
	_ = json.Unmarshal([]byte(flowStages), &stages)
	o.moves[project], o.boards[project] = map[string][]flowMove{}, map[string]string{"untold": "2_current", "idea": "1_backlog"}
	type told struct {
		at   time.Time
		text string
	}
	var all []told
	for n := range stories {
		story := fmt.Sprint(project, "_", n)
		at := time.Now().Add(-time.Duration(random.IntN(200*24*3600)) * time.Second)
		for from := random.IntN(2); ; {
			to := min(4, from+1+random.IntN(2))
			if random.IntN(4) == 0 {
				to = random.IntN(5)
			}
			if to == from || at.After(time.Now().Add(-time.Minute)) {
				break
			}
			m := flowMove{stages[from], stages[to], at.Truncate(time.Millisecond)}
			o.moves[project][story] = append(o.moves[project][story], m)
			all = append(all, told{m.at, fmt.Sprintf(`{"type":"stage_transition","story_id":%q,"story_name":%[1]q,"from_stage":%q,"to_stage":%q,"timestamp_ms":%d}`,
				story, m.from, m.to, m.at.UnixMilli())})
			from, at = to, at.Add(time.Duration(random.IntN(9*24*3600*1000))*time.Millisecond)
		}
		if moves := o.moves[project][story]; len(moves) > 0 && random.IntN(6) > 0 {
			o.boards[project][story] = moves[len(moves)-1].to
		} else if len(moves) == 0 {
			delete(o.moves[project], story)
		}
	}
	slices.SortFunc(all, func(a, b told) int { return a.at.Compare(b.at) })
	for _, one := range all {
		records = append(records, one.text)
	}
	return records
}

// dayZone returns a zone whose clocks changed in the last 200 days and where it is neither about midnight.
func dayZone(t *testing.T) *time.Location {
	t.Helper()
	for _, name := range []string{"Europe/Berlin", "America/New_York", "Australia/Sydney"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		if hour := time.Now().In(zone).Hour(); hour > 0 && hour < 23 {
			return zone
		}
	}
	panic("it is midnight everywhere")
}

// TestFlowIsWhatTheMovesSay compares answers with those of an oracle that knows the moves only, for invented projects: all of
// them and some, in windows of all lengths, in a zone whose clocks changed.
func TestFlowIsWhatTheMovesSay(t *testing.T) {
	seeds := uint64(3)
	if testing.Short() {
		seeds = 1
	}
	forecasts, grades := 0, 0
	for seed := range seeds {
		random := rand.New(rand.NewPCG(32, seed))
		all := &flowOracle{zone: dayZone(t), boards: map[string]map[string]string{}, moves: map[string]map[string][]flowMove{}}
		s := newSite(t)
		for project, stories := range map[string]int{"busy": 150, "slow": 30, "few": 8} {
			s.Record(project, flowPast(rand.New(rand.NewPCG(seed, uint64(stories))), all, project, stories)...)
			s.Add(project, flowBoard(t, all.boards[project]))
		}
		for range 10 {
			o := *all
			o.days, o.ahead, o.items = 7+random.IntN(174), 1+random.IntN(30), random.IntN(60)
			query := fmt.Sprintf("?days=%d&ahead=%d&tz=%s", o.days, o.ahead, url.QueryEscape(o.zone.String()))
			if o.items > 0 {
				query += fmt.Sprint("&items=", o.items)
			}
			if chosen := random.Perm(4)[:2]; !slices.Contains(chosen, 3) { // else all of them
				o.boards, o.moves = map[string]map[string]string{}, map[string]map[string][]flowMove{}
				for _, i := range append(chosen, chosen[0]) {
					name := []string{"busy", "slow", "few"}[i]
					o.boards[name], o.moves[name] = all.boards[name], all.moves[name]
					query += "&project=" + name
				}
			}
			text, _ := json.Marshal(o.answer())
			var want, got map[string]any
			_ = json.Unmarshal(text, &want)
			waittest.Until(t, "the boards are known", func() bool {
				s.Get("/api/gateway/pipeline")
				got = nil
				s.Get("/api/gateway/flow"+query).WantStatus(t, 200).Decode(t, &got)
				list, _ := got["ageing"].([]any)
				slices.SortFunc(list, func(a, b any) int {
					return cmp.Compare(ageKey(a), ageKey(b))
				})
				return reflect.DeepEqual(got["work_in_progress"], want["work_in_progress"])
			})
			if want["forecast"] != nil {
				forecasts++
			}
			if want["graded"] != nil {
				grades++
			}
			for _, key := range slices.Sorted(maps.Keys(want)) {
				if !reflect.DeepEqual(got[key], want[key]) {
					t.Errorf("seed %d, %s: %s is\n%s\nwant\n%s", seed, query, key, short(got[key]), short(want[key]))
				}
			}
		}
	}
	if forecasts == 0 || grades == 0 {
		t.Errorf("%d forecasts and %d grades were compared", forecasts, grades)
	}
}

func ageKey(age any) string {
	a := age.(map[string]any)
	return flowAgeKey(map[string]any{"days": int(a["days"].(float64)), "project": a["project"], "story_id": a["story_id"]})
}

func short(v any) string {
	text, _ := json.Marshal(v)
	return strings.ReplaceAll(string(text), "},{", "},\n{")
}

// TestAProjectThatIsNamedTwiceCountsOnce on the page, too, and an empty field of its form is as good as none.
func TestAProjectThatIsNamedTwiceCountsOnce(t *testing.T) {
	s := newSite(t)
	s.Add("alpha", flowBoard(t, nil))
	s.Add("beta", flowBoard(t, nil))
	s.Answered()
	s.Get("/flow?project=beta&project=beta").WantStatus(t, 200).WantText(t, "beta ▾").WantNoText(t, "2 of 2 projects", "project=beta&amp;project=beta&amp;tz")
	for _, path := range []string{"/flow", "/flow.csv", "/projects/alpha"} {
		s.Get(path+"?days=&ahead=&items=&tz=").WantStatus(t, 200)
	}
	s.Get("/flow?"+strings.Repeat("project=alpha&", 9_000)+"tz=UTC").WantStatus(t, 200).WantText(t, `href="/flow.csv?project=alpha&amp;tz=`)
	s.Get("/flow?"+strings.Repeat("project=nobody&", 9_000)).WantStatus(t, 404)
}

// TestProjectsWithoutABoardHaveAFlow: the servers of some have only events, those of others have not answered since the start.
func TestProjectsWithoutABoardHaveAFlow(t *testing.T) {
	s := newSite(t)
	s.Add("events", gatewaytest.ProjectServer(t, http.NotFound, func(mux *http.ServeMux) { mux.HandleFunc("/api/events", gatewaytest.Says("[]")) }))
	s.Add("down", gatewaytest.ProjectServer(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusServiceUnavailable) }))
	tz, zone := noonZone(t)
	now := time.Now().In(zone)
	for project, stages := range map[string][]string{"events": {"To do", "Doing", "Done"}, "down": {"1_backlog", "2_current", "5_done", "6_archived"}} {
		move := func(story string, from, daysAgo int) {
			s.Record(project, fmt.Sprintf(`{"type":"stage_transition","story_id":%q,"story_name":"","from_stage":%q,"to_stage":%q,"timestamp_ms":%d}`,
				story, stages[from], stages[from+1], now.AddDate(0, 0, -daysAgo).UnixMilli()))
		}
		for n := range 12 {
			story := fmt.Sprint(n)
			move(story, 0, 20+n)
			move(story, 1, 2+n)
			if n < len(stages)-3 {
				move(story, 2, 1)
			}
		}
		move("open", 0, 6)
		var r flowReply
		s.Get("/api/gateway/flow?project="+project+"&tz="+url.QueryEscape(tz)).WantStatus(t, 200).Decode(t, &r)
		if len(r.Stories) != 12 || r.Stories[0].Days != 19 || r.Percentiles == nil || r.Forecast == nil || r.Forecast.Items != 1 {
			t.Errorf("%s: %d stories, %v, %+v", project, len(r.Stories), r.Percentiles, r.Forecast)
		}
		if len(r.Ageing) != 1 || r.Ageing[0].StoryID != "open" || r.Ageing[0].Stage != stages[1] || r.Ageing[0].Days != 7 {
			t.Errorf("%s: in work %+v", project, r.Ageing)
		}
		if today := r.InWork[len(r.InWork)-1].Stages; today[stages[1]] != 1 || today[stages[2]] != 15-len(stages) {
			t.Errorf("%s: today %v", project, today)
		}
		s.Get("/flow?project="+project).WantStatus(t, 200).WantText(t, ">open<")
	}
}

// TestTheNewestAreListedAndTheCSVHasAll: it is sent as it is made, since it may be long.
func TestTheNewestAreListedAndTheCSVHasAll(t *testing.T) {
	s := newSite(t)
	s.Add("alpha", flowBoard(t, nil))
	s.Answered()
	const stories = 5_100
	began := time.Now().Add(-40 * 24 * time.Hour)
	var records []string
	for n := range stories {
		records = append(records, fmt.Sprintf(`{"type":"stage_transition","story_id":"%d","story_name":"Story %[1]d","from_stage":"2_current","to_stage":"5_done","timestamp_ms":%d}`,
			n, began.UnixMilli()+int64(n)*600_000))
	}
	for some := range slices.Chunk(records, 500) {
		s.Record("alpha", some...)
	}
	var r flowReply
	s.Get("/api/gateway/flow?tz=UTC").WantStatus(t, 200).Decode(t, &r)
	finished := 0
	for _, d := range r.Throughput {
		finished += d.Finished
	}
	if len(r.Stories) != 5_000 || r.More != 100 || finished != stories || r.Stories[0].StoryID != "5099" || r.Stories[4_999].StoryName != "Story 100" {
		t.Errorf("%d are listed, %d more, %d in all", len(r.Stories), r.More, finished)
	}
	csv := s.Get("/flow.csv?tz=UTC").WantStatus(t, 200)
	lines := strings.Split(strings.TrimSpace(csv.Text), "\n")
	if len(lines) != 1+stories || csv.ContentLength != -1 {
		t.Fatalf("%d lines, content length %d", len(lines), csv.ContentLength)
	}
	for n := range stories {
		if want := fmt.Sprintf("alpha,%d,Story %[1]d,", stories-1-n); !strings.HasPrefix(lines[1+n], want) {
			t.Fatalf("line %d: %s, want %s", n, lines[1+n], want)
		}
	}
}
