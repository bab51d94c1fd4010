package domain_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/internal/domain"
)

// journey is what happens to one story, by minutes.
type journey struct {
	t       testing.TB
	counts  []domain.VisitCounts
	visits  []domain.Visit // as stored
	project *domain.ProjectVisits
}

func newJourney(t testing.TB) *journey {
	return &journey{t: t, project: domain.NewProjectVisits(nil, nil)}
}

// apply stores what a book of the newest visits makes of something.
func (j *journey) apply(change func(*domain.VisitBook)) {
	book := domain.NewVisitBook(j.visits[max(0, len(j.visits)-domain.NewestVisits):], j.counts)
	change(book)
	changed, counts := book.Changed()
	if counts != nil {
		j.counts = counts
	}
	for _, v := range changed {
		j.visits = append(slices.DeleteFunc(j.visits, func(known domain.Visit) bool { return known.Number == v.Number }), v)
	}
	slices.SortFunc(j.visits, func(a, b domain.Visit) int { return cmp.Compare(a.Number, b.Number) })
	j.project = j.project.With(changed)
}

var journeyStart = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func minute(n int) time.Time { return journeyStart.Add(time.Duration(n) * time.Minute) }

// event adds an event that the gateway receives at once: "move 1_a 2_b", "block" or "fail".
func (j *journey) event(at int, what string) { j.eventLate(at, at, what) }

// eventLate adds an event that happened at at and is received at known.
func (j *journey) eventLate(at, known int, what string) {
	j.t.Helper()
	words, record := strings.Fields(what), ""
	switch words[0] {
	case "move":
		record = fmt.Sprintf(`{"type":"stage_transition","from_stage":%q,"to_stage":%q`, words[1], words[2])
	case "block":
		record = `{"type":"story_blocked"`
	case "fail":
		record = `{"type":"merge_failure"`
	}
	r, err := domain.ParseRecord(json.RawMessage(record + fmt.Sprintf(`,"story_id":"s","timestamp_ms":%d}`, minute(at).UnixMilli())))
	if err != nil {
		j.t.Fatal(err)
	}
	j.apply(func(b *domain.VisitBook) { b.Add(domain.Event{Project: "p", ReceivedAt: minute(known), Record: r}) })
}

// shows observes a pipeline with the story in a stage since since; "" means that it is not on the board.
func (j *journey) shows(at int, stage string, since int, blocked bool) bool {
	stages := []domain.Stage{{Name: "1_a"}, {Name: "2_b"}, {Name: "3_c"}}
	for i := range stages {
		if stages[i].Name == stage {
			item := domain.Item{StoryID: "s", Since: minute(since)}
			if blocked {
				item.Blocked = "a reason"
			}
			stages[i].Items = []domain.Item{item}
		}
	}
	seen, settled := j.project.Differing(&domain.PipelineAnswer{Stages: stages}, minute(at), len(stages)*100)
	j.apply(func(b *domain.VisitBook) {
		contradicted := b.Observe([]domain.Observation{{Project: "p", Seen: seen, Asked: minute(at), Now: minute(at)}})
		settled = len(contradicted) == 0 && settled
	})
	return settled
}

// text returns "stage from-to blocked" for each visit, in minutes.
func (j *journey) text(now int) string {
	clock := func(t time.Time) string {
		if t.IsZero() {
			return "?"
		}
		return fmt.Sprint(int(t.Sub(journeyStart).Minutes()))
	}
	var list []string
	for _, s := range j.visits {
		if s.Source == domain.Undone {
			continue
		}
		text := s.Stage + " " + clock(s.From) + "-" + clock(s.To)
		if blocked := s.BlockedFor(minute(now)); blocked > 0 {
			text += fmt.Sprintf(" blocked %d", int(blocked.Minutes()))
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

func TestVisitsComeFromEventsAndPipelines(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(j *journey)
		want string // at minute 100
	}{
		{"moves", func(j *journey) { j.event(1, "move 1_a 2_b"); j.event(5, "move 2_b 3_c") }, "1_a ?-1, 2_b 1-5, 3_c 5-?"},
		{"arrival without an event", func(j *journey) { j.shows(10, "1_a", 3, false); j.event(20, "move 1_a 2_b") }, "1_a 3-20, 2_b 20-?"},
		{"departure", func(j *journey) { j.event(1, "move 1_a 2_b"); j.shows(30, "", 0, false) }, "1_a ?-1, 2_b 1-30"},
		{"a block that a pipeline ends", func(j *journey) {
			j.event(1, "move 1_a 2_b")
			j.event(10, "block")
			j.event(12, "block") // another reason
			j.shows(15, "2_b", 1, true)
			j.shows(30, "2_b", 1, false)
			j.shows(40, "2_b", 1, false)
		}, "1_a ?-1, 2_b 1-? blocked 20"},
		{"a block that lasts over a move", func(j *journey) {
			j.event(1, "move 1_a 2_b")
			j.event(10, "block")
			j.event(40, "move 2_b 3_c")
		}, "1_a ?-1, 2_b 1-40 blocked 30, 3_c 40-? blocked 60"},
		{"blocked when first seen", func(j *journey) { j.shows(50, "2_b", 20, true) }, "2_b 20-? blocked 80"},
		{"a block without an event", func(j *journey) { j.shows(50, "2_b", 20, false); j.shows(60, "2_b", 20, true) }, "2_b 20-? blocked 40"},
		{"an edit and a restart do not make it younger", func(j *journey) {
			j.event(1, "move 1_a 2_b")
			j.shows(50, "2_b", 45, false)
			j.shows(60, "2_b", 59, false)
		}, "1_a ?-1, 2_b 1-?"},
		{"the pipeline is faster than the event", func(j *journey) {
			j.event(1, "move 1_a 2_b")
			j.shows(50, "3_c", 49, false)
			j.eventLate(48, 51, "move 2_b 3_c")
		}, "1_a ?-1, 2_b 1-48, 3_c 48-?"},
		{"the pipeline is faster than several events", func(j *journey) {
			j.event(1, "move 1_a 2_b")
			j.shows(50, "1_a", 49, false)
			j.eventLate(20, 51, "move 2_b 3_c")
			j.eventLate(49, 51, "move 3_c 1_a")
			j.shows(52, "1_a", 49, false)
		}, "1_a ?-1, 2_b 1-20, 3_c 20-49, 1_a 49-?"},
		{"a pipeline that was asked before the event changes nothing", func(j *journey) {
			j.event(1, "move 1_a 2_b")
			j.eventLate(30, 40, "move 2_b 3_c")
			if j.shows(35, "2_b", 1, false) {
				j.t.Error("an outdated pipeline counts")
			}
			if !j.shows(45, "3_c", 30, false) {
				j.t.Error("a new pipeline does not count")
			}
		}, "1_a ?-1, 2_b 1-30, 3_c 30-?"},
		{"blocked before its stage is known", func(j *journey) { j.event(10, "block"); j.shows(20, "2_b", 5, true) }, "2_b 5-? blocked 90"},
		{"a move that is undone", func(j *journey) {
			j.shows(10, "1_a", 3, true)
			j.event(50, "move 1_a 2_b")
			j.event(51, "move 2_b 1_a")
		}, "1_a 3-? blocked 97"},
		{"a move that is undone, as the pipeline shows it first", func(j *journey) {
			j.event(1, "move 1_a 2_b")
			j.event(50, "move 2_b 3_c")
			j.shows(51, "2_b", 51, false)
			j.eventLate(51, 52, "move 3_c 2_b")
			j.event(53, "move 2_b 1_a")
			j.event(54, "move 1_a 2_b") // and once more
		}, "1_a ?-1, 2_b 1-?"},
		{"a story that comes back is a visit", func(j *journey) {
			j.event(1, "move 1_a 2_b")
			j.event(50, "move 2_b 3_c")
			j.event(52, "move 3_c 2_b")
		}, "1_a ?-1, 2_b 1-50, 3_c 50-52, 2_b 52-?"},
		{"a move that nobody saw, of a file that kept its time", func(j *journey) {
			j.event(1, "move 1_a 2_b")
			j.event(30, "move 2_b 3_c")
			j.shows(50, "2_b", 1, false)
			j.shows(60, "2_b", 1, false)
		}, "1_a ?-1, 2_b 1-30, 3_c 30-50, 2_b 50-?"},
		{"a move is missing", func(j *journey) { j.event(1, "move 1_a 2_b"); j.event(9, "move 3_c 1_a") }, "1_a ?-1, 2_b 1-9, 3_c ?-9, 1_a 9-?"},
	} {
		t.Run(test.name, func(t *testing.T) {
			j := newJourney(t)
			test.do(j)
			if got := j.text(100); got != test.want {
				t.Errorf("\n got %s\nwant %s", got, test.want)
			}
			if want := strings.Count(test.want, ",") + 1; j.project.Count != want {
				t.Errorf("the project counts %d visits, want %d", j.project.Count, want)
			}
		})
	}
}

func TestStuckIsLongerThan85Of100(t *testing.T) {
	now := time.Now()
	passed := func(hours ...int) *domain.ProjectVisits {
		var visits []domain.Visit
		for i, n := range hours {
			to := now.Add(-time.Duration(i) * time.Minute)
			visits = append(visits, domain.Visit{
				StoryID: fmt.Sprint(i), Stage: "2_b", Next: "3_c", From: to.Add(-time.Duration(n) * time.Hour), To: to,
			})
		}
		return domain.NewProjectVisits(nil, nil).With(visits)
	}
	var twenty []int
	for n := range 20 {
		twenty = append(twenty, n+1)
	}
	for name, test := range map[string]struct {
		visits *domain.ProjectVisits
		want   time.Duration
	}{
		"nothing known":        {passed(), 24 * time.Hour},
		"nine":                 {passed(twenty[:9]...), 24 * time.Hour},
		"ten, by nearest rank": {passed(twenty[:10]...), 9 * time.Hour},
		"twenty":               {passed(twenty...), 17 * time.Hour},
		"never under 4 hours":  {passed(1, 1, 1, 1, 1, 1, 1, 1, 1, 1), 4 * time.Hour},
	} {
		if got := test.visits.StuckLimits([]domain.Stage{{Name: "2_b"}}, now)[0]; got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
	old := passed(twenty...)
	if got := old.StuckLimits([]domain.Stage{{Name: "2_b"}}, now.Add(91*24*time.Hour))[0]; got != 24*time.Hour {
		t.Errorf("after 91 days: %v", got)
	}
}
