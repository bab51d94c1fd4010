package domain_test

import (
	"slices"
	"testing"
	"time"

	"switchyard/internal/domain"
)

// charts returns the finished stories of the last day and the median of 2_b in minutes, as charts have them at minute 100.
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
	old := historyOf(t, "1 1_backlog 2_current", at(10), "1 2_current 3_qa", at(500), "2 1_backlog 5_done", at(400), "1 3_qa 5_done", at(600))
	saved := old.AppendMoves([]byte("before"), at(600), 2)
	var again domain.StageHistory
	rest, err := again.RestoreMoves(append(saved, "after"...)[len("before"):])
	if err != nil || string(rest) != "after" || again.Len() != 2 {
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

func TestFinishedStoriesAreCountedHoweverManyThereAre(t *testing.T) {
	now := time.Now()
	var moves []any
	for i := range 12_000 {
		moves = append(moves, "story 4_merge 5_done", now.Add(-time.Duration(12_000-i)*3*time.Minute)) // in 25 days
	}
	old := historyOf(t, moves...)
	saved := old.AppendMoves(nil, now, 100)
	var again domain.StageHistory
	if _, err := again.RestoreMoves(saved); err != nil || again.Len() != 100 || len(saved) > 3000 {
		t.Fatalf("%d moves in %d bytes, %v", again.Len(), len(saved), err)
	}
	if n := old.Len(); n > 4000 {
		t.Errorf("%d moves are in memory", n)
	}
	for _, h := range []*domain.StageHistory{old, &again} {
		c := h.Charts(stages(usual), now)
		total := c.Before
		for _, day := range c.Days {
			total += day.Finished
		}
		if total != 12_000 || c.Days[5].Finished < 400 || c.Days[5].Finished > 500 { // a day may have 23 hours
			t.Errorf("%d finished, %v", total, c.Days)
		}
	}
	again.Forget(now.AddDate(0, 0, 100))
	if saved := again.AppendMoves(nil, now, 100); len(saved) > 100 {
		t.Errorf("%d bytes are left of what no chart needs", len(saved))
	}
}
