package domain_test

import (
	"slices"
	"testing"
	"time"

	"switchyard/internal/domain"
)

// finishedBy are the finished stories of the last day and the median of 2_b in minutes, as charts have them at minute 100.
func (j *journey) charts() (finished int, median time.Duration) {
	c := j.history.Charts([]domain.Stage{{Name: "1_a"}, {Name: "2_b"}, {Name: "3_c"}}, minute(100))
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
		"the pipeline, and it went back meanwhile": func(j *journey) {
			j.event(1, "move 1_a 2_b")
			j.shows(50, "1_a", 49, false)
			j.eventLate(31, 51, "move 2_b 3_c")
			j.eventLate(49, 51, "move 3_c 1_a")
		},
	} {
		j := &journey{t: t, stays: map[int64]domain.Stay{}}
		do(j)
		if finished, median := j.charts(); finished != 1 || median != 30*time.Minute {
			t.Errorf("%s: %d finished, %v in 2_b", name, finished, median)
		}
	}
}

func TestMovesComeBackAsTheyWereSaved(t *testing.T) {
	now := time.Now()
	at := func(minutes int) time.Time { return now.Add(time.Duration(minutes-1000) * time.Minute) }
	old := flowOf(t, "1 1_backlog 2_current", at(10), "1 2_current 3_qa", at(500), "2 1_backlog 5_done", at(400), "1 3_qa 5_done", at(600))
	saved := old.AppendMoves([]byte("before"), at(100), at(600))
	var again domain.StageHistory
	rest, err := again.RestoreMoves(append(saved, "after"...)[len("before"):])
	if err != nil || string(rest) != "after" || again.Len() != 2 || old.Moves(at(100), at(600)) != 2 {
		t.Fatalf("%d moves, then %q, %v", again.Len(), rest, err)
	}
	again.Restore(domain.Stay{StoryID: "1", Stage: "3_qa", Next: "5_done", From: at(500), To: at(600)})
	want, got := old.Charts(stages(usual), now), again.Charts(stages(usual), now)
	if finished(got) != finished(want) || !slices.Equal(got.Stages, want.Stages) {
		t.Errorf("charts %v, want %v", got, want)
	}
	for n := range len(saved) - len("before") {
		if _, err := new(domain.StageHistory).RestoreMoves(saved[len("before") : len("before")+n]); err == nil {
			t.Errorf("a beginning of %d bytes is taken", n)
		}
	}
}
