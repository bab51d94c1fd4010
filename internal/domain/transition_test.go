package domain_test

import (
	"fmt"
	"testing"
	"time"

	"switchyard/internal/domain"
)

// charts returns the finished stories of the last day and the median of 2_b in minutes, as charts have them at minute
// 100.
func (j *journey) charts() (finished int, median time.Duration) {
	c := j.project.Charts(domain.NewWorkflow("", []domain.Stage{{Name: "1_a"}, {Name: "2_b"}, {Name: "3_c"}}), minute(100))
	return c.Days[domain.ChartDays-1].Finished, c.Stages[0].Median
}

func TestAMoveCountsOnceWhoeverTellsOfItFirst(t *testing.T) {
	for name, do := range map[string]func(j *journey){
		"the event": func(j *journey) {
			j.event(1, "move 1_a 2_b")
			j.event(31, "move 2_b 3_c")
			j.shows(32, "3_c", 31, false)
		},
		"the pipeline": func(j *journey) {
			j.event(1, "move 1_a 2_b")
			j.shows(35, "3_c", 34, false)
			j.eventLate(31, 36, "move 2_b 3_c")
		},
		"the pipeline alone": func(j *journey) { j.event(1, "move 1_a 2_b"); j.shows(32, "3_c", 31, false) },
		"it went back meanwhile": func(j *journey) {
			j.event(1, "move 1_a 2_b")
			j.shows(50, "1_a", 49, false)
			j.eventLate(31, 51, "move 2_b 3_c")
			j.eventLate(49, 51, "move 3_c 1_a")
		},
	} {
		j := newJourney(t)
		do(j)
		want := 1
		if name == "it went back meanwhile" { // it is open again
			want = 0
		}
		if finished, median := j.charts(); finished != want || median != 30*time.Minute {
			t.Errorf("%s: %d finished, %v in 2_b", name, finished, median)
		}
	}
}

func TestFinishedStoriesAreCountedHoweverManyThereAre(t *testing.T) {
	now := time.Now()
	var transitions []any
	for i := range 12_000 {
		transitions = append(transitions, fmt.Sprint(i, " 4_merge 5_done"), now.Add(-time.Duration(12_000-i)*3*time.Minute)) // in 25 days
	}
	c := visitsOf(t, transitions...).Charts(domain.NewWorkflow("", stages(usual)), now)
	total := c.Before
	for _, day := range c.Days {
		total += day.Finished
	}
	if total != 12_000 || c.Days[5].Finished < 400 || c.Days[5].Finished > 500 { // a day may have 23 hours
		t.Errorf("%d finished, %v", total, c.Days)
	}
}
