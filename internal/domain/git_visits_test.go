package domain_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"switchyard/internal/domain"
)

// git replaces what is known from git by moves such as "-300 2_b; -200 2_b 3_c", each with its minute.
func (j *journey) git(moves string) {
	j.t.Helper()
	var list []domain.Move
	for text := range strings.SplitSeq(moves, "; ") {
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		var at int
		if _, err := fmt.Sscan(words[0], &at); err != nil {
			j.t.Fatal(err)
		}
		m := domain.Move{StoryID: "s", To: words[len(words)-1], At: minute(at)}
		if len(words) == 3 {
			m.From = words[1]
		}
		list = append(list, m)
	}
	j.merge(list)
	merged := j.visits
	if j.merge(list); !reflect.DeepEqual(j.visits, merged) {
		j.t.Errorf("merging the same history again makes\n%+v of\n%+v", j.visits, merged)
	}
}

func (j *journey) merge(moves []domain.Move) {
	j.t.Helper()
	counts := domain.VisitCounts{Project: "p"}
	for _, c := range j.counts {
		counts = c
	}
	byStory := domain.MovesByStory(moves, journeyStart.AddDate(-1, 0, 0), journeyStart.AddDate(1, 0, 0))
	key := domain.StoryKey{Project: "p", ID: "s"}
	merged := counts.MergeMoves(key, j.visits, byStory["s"])
	for i, v := range merged {
		if i > 0 && (v.Number <= merged[i-1].Number || v.To.IsZero() != (i == len(merged)-1 && v.To.IsZero())) ||
			!v.To.IsZero() && v.From.After(v.To) || v.Project != "p" || v.StoryID != "s" {
			j.t.Errorf("visit %d of %+v", i, merged)
		}
	}
	j.counts, j.visits = []domain.VisitCounts{counts}, merged
	j.project = domain.NewProjectVisits(nil, nil).With(merged)
}

func TestVisitsComeFromTheStreamElseGitElseThePipeline(t *testing.T) {
	const past = "-900 1_a; -600 1_a 2_b"
	for _, test := range []struct {
		name string
		do   func(j *journey)
		want string // at minute 1000
	}{
		{"a story that is on the board", func(j *journey) { j.shows(0, "2_b", -5, false); j.git(past) }, "1_a -900--600, 2_b -600-?"},
		{"a story that is gone", func(j *journey) { j.git(past) }, "1_a -900--600, 2_b -600--600"},
		{"one that has left the board", func(j *journey) { j.shows(0, "2_b", -5, false); j.shows(3, "", 0, false); j.git(past) }, "1_a -900--600, 2_b -600-3"},
		{"a move that is not committed", func(j *journey) { j.shows(0, "3_c", -5, false); j.git(past) }, "1_a -900--600, 2_b -600--5, 3_c -5-?"},
		{"a file that is older than its commit", func(j *journey) { j.shows(0, "2_b", -2000, false); j.git(past) }, "1_a -900--600, 2_b -600-?"},
		{"its block stays", func(j *journey) { j.shows(0, "2_b", -5, true); j.shows(10, "2_b", -5, false); j.git(past) }, "1_a -900--600, 2_b -600-? blocked 15"},
		{"what came before the stream", func(j *journey) { j.event(5, "move 2_b 3_c"); j.git(past) }, "1_a -900--600, 2_b -600-5, 3_c 5-?"},
		{"the same move within an hour", func(j *journey) { j.event(5, "move 1_a 2_b"); j.git("-900 1_a; 60 1_a 2_b") }, "1_a -900-5, 2_b 5-?"},
		{"the same move, committed before the stream tells of it", func(j *journey) { j.event(5, "move 1_a 2_b"); j.git("-900 1_a; -50 1_a 2_b") }, "1_a -900-5, 2_b 5-?"},
		{"the same move, committed long before it was merged", func(j *journey) { j.event(5, "move 1_a 2_b"); j.git("-900 1_a; -300 1_a 2_b") }, "1_a -900-5, 2_b 5-?"},
		{"one of the moves into a stage", func(j *journey) {
			j.event(5, "move 1_a 2_b")
			j.git("-900 1_a; -800 1_a 2_b; -700 2_b 1_a; 3 1_a 2_b")
		}, "1_a -900--800, 2_b -800--700, 1_a -700-5, 2_b 5-?"},
		{"a move that is not committed, into a stage that git knows", func(j *journey) {
			j.event(5, "move 1_a 2_b")
			j.git("-900 1_a; -800 1_a 2_b; -700 2_b 1_a")
		}, "1_a -900--800, 2_b -800--700, 1_a -700-5, 2_b 5-?"},
		{"an event of what git has told long before", func(j *journey) {
			j.shows(0, "2_b", -5, false)
			j.git("-900 1_a; -300 1_a 2_b")
			j.eventLate(-30, 1, "move 1_a 2_b")
		}, "1_a -900--30, 2_b -30-?"},
		{"a late commit", func(j *journey) { j.event(5, "move 1_a 2_b"); j.git("-900 1_a; 400 1_a 2_b") }, "1_a -900-5, 2_b 5-?"},
		{"one commit for several moves", func(j *journey) {
			j.event(5, "move 1_a 2_b")
			j.event(9, "move 2_b 3_c")
			j.git("-900 1_a; 20 1_a 3_c")
		}, "1_a -900-5, 2_b 5-9, 3_c 9-?"},
		{"while the gateway was away", func(j *journey) {
			j.event(5, "move 1_a 2_b")
			j.shows(900, "1_a", 890, false)
			j.git("-900 1_a; 6 1_a 2_b; 300 2_b 3_c; 700 3_c 1_a")
		}, "1_a -900-5, 2_b 5-300, 3_c 300-700, 1_a 700-?"},
		{"between two moves of the stream", func(j *journey) {
			j.event(5, "move 1_a 2_b")
			j.event(800, "move 3_c 1_a")
			j.git("-900 1_a; 300 2_b 3_c")
		}, "1_a -900-5, 2_b 5-300, 3_c 300-800, 1_a 800-?"},
		{"an event after git", func(j *journey) { j.shows(0, "2_b", -5, false); j.git(past); j.event(20, "move 2_b 3_c") }, "1_a -900--600, 2_b -600-20, 3_c 20-?"},
		{"an event of what git has told already", func(j *journey) {
			j.shows(0, "2_b", -5, false)
			j.git("-900 1_a; -20 1_a 2_b")
			j.eventLate(-30, 1, "move 1_a 2_b")
		}, "1_a -900--30, 2_b -30-?"},
		{"a file that is touched after git", func(j *journey) { j.shows(0, "2_b", -5, false); j.git(past); j.shows(10, "2_b", 9, false) }, "1_a -900--600, 2_b -600-?"},
		{"a second history", func(j *journey) {
			j.shows(0, "2_b", -5, false)
			j.git(past)
			j.event(20, "move 2_b 3_c")
			j.git("-800 2_b")
		}, "2_b -800-20, 3_c 20-?"},
		{"a history that has gone", func(j *journey) { j.shows(0, "2_b", -5, false); j.git(past); j.git("") }, "2_b -5-?"},
		{"a history that has gone, with the stream", func(j *journey) { j.event(5, "move 1_a 2_b"); j.git(past); j.git("") }, "1_a ?-5, 2_b 5-?"},
		{"moves that do not join", func(j *journey) { j.shows(0, "3_c", -5, false); j.git("-900 1_a; -600 2_b 3_c") }, "1_a -900--600, 2_b ?--600, 3_c -600-?"},
		{"moves that run back", func(j *journey) { j.git("-600 1_a 2_b; -900 1_a") }, "1_a -900--600, 2_b -600--600"},
		{"a stage that no move can have", func(j *journey) { j.git("-900 1_a; -600 1_a " + strings.Repeat("x", 501)) }, "1_a -900--900"},
	} {
		t.Run(test.name, func(t *testing.T) {
			j := newJourney(t)
			test.do(j)
			if got := j.text(1000); got != test.want {
				t.Errorf("\n got %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestNoHistoryMakesNonsense: whatever git, the stream and pipelines say in whichever order, visits stay in order,
// which merge checks.
func TestNoHistoryMakesNonsense(t *testing.T) {
	stages := []string{"1_a", "2_b", "3_c"}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		stage := func() string { return stages[r.IntN(3)] }
		j := newJourney(t)
		for at := 0; at < 2000; at += 1 + r.IntN(200) {
			switch r.IntN(4) {
			case 0:
				j.event(at, "move "+stage()+" "+stage())
			case 1:
				j.shows(at, stage(), at-r.IntN(300), r.IntN(2) == 0)
			case 2:
				j.shows(at, "", 0, false)
			case 3:
				var moves []domain.Move
				for range r.IntN(8) {
					m := domain.Move{StoryID: "s", To: stage(), At: minute(r.IntN(at + 1))}
					if r.IntN(3) > 0 {
						m.From = stage()
					}
					moves = append(moves, m)
				}
				j.merge(moves)
			}
			if t.Failed() {
				t.Fatalf("seed %d, minute %d", seed, at)
			}
		}
	}
}

func TestMovesOfAHostileHistoryAreBounded(t *testing.T) {
	now := time.Now()
	var moves []domain.Move
	for i := range 10_000 {
		moves = append(moves, domain.Move{StoryID: "s", From: "1_a", To: fmt.Sprintf("%d_b", i), At: now.Add(time.Duration(i) * time.Minute)})
	}
	moves = append(moves,
		domain.Move{StoryID: strings.Repeat("x", 501), To: "1_a", At: now}, domain.Move{StoryID: "\x00", To: "1_a", At: now},
		domain.Move{StoryID: "t", At: now}, domain.Move{To: "1_a", At: now}, domain.Move{StoryID: "t", To: "1_a", At: now.AddDate(-2, 0, 0)})
	byStory := domain.MovesByStory(moves, now.AddDate(-1, 0, 0), now)
	if len(byStory) != 1 || len(byStory["s"]) > domain.MergedVisits || byStory["s"][0].At.After(now) {
		t.Errorf("%d stories with %d moves", len(byStory), len(byStory["s"]))
	}
	counts := domain.VisitCounts{Project: "p"}
	if visits := counts.MergeMoves(domain.StoryKey{Project: "p", ID: "s"}, nil, byStory["s"]); len(visits) > domain.MergedVisits || len(counts.Stages) > 100 {
		t.Errorf("%d visits, %d stages", len(visits), len(counts.Stages))
	}
}
