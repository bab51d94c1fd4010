package flow_test

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"switchyard/internal/flow"
)

// lighthouse is a history of 31 days that LetPeopleWork publishes with the forecasts of its program Lighthouse.
var lighthouse = []int{2, 0, 0, 5, 1, 3, 2, 4, 0, 0, 1, 1, 2, 4, 0, 0, 0, 1, 0, 1, 2, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0}

func TestForecastsArePublishedOnes(t *testing.T) {
	for days, want := range map[int][4]int{10: {10, 8, 6, 4}, 30: {31, 27, 23, 19}} {
		if got := flow.HowMany(lighthouse, days); got != want {
			t.Errorf("within %d days: %v, want %v", days, got, want)
		}
	}
	for items, want := range map[int][4]int{35: {34, 38, 43, 49}, 28: {27, 31, 35, 41}} {
		if got := flow.When(lighthouse, items); got != want {
			t.Errorf("%d items: %v days, want %v", items, got, want)
		}
	}
	if got := flow.Chance(lighthouse, 28, 30); math.Abs(got-0.664) > 0.0005 {
		t.Errorf("28 items within 30 days: %.4f, want 0.664", got)
	}
}

// TestADayOnWhichABoardWasMovedCostsNoMore: it does not raise what is promised either.
func TestADayOnWhichABoardWasMovedCostsNoMore(t *testing.T) {
	sample := append([]int{200_000, 100_000}, slices.Repeat([]int{1, 0, 2}, 59)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := flow.HowMany(sample, 180)
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
		t.Errorf("a forecast takes %d MiB", used>>20)
	}
	if usual := flow.HowMany(sample[2:], 180); got[3] < usual[3] || got[3] > 2*usual[3]+5825 {
		t.Errorf("%v with the moves, %v without", got, usual)
	}
}

// TestForecastsAreWhatDrawingWouldGive compares them with 200,000 draws.
func TestForecastsAreWhatDrawingWouldGive(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	sample := []int{0, 3, 1, 0, 7, 2, 2, 0, 1, 4, 0, 0}
	const draws = 200_000
	reached := map[int]int{}
	at := flow.HowMany(sample, 9)
	looked := map[int]bool{}
	for _, n := range at {
		looked[n], looked[n+1] = true, true
	}
	for range draws {
		sum := 0
		for range 9 {
			sum += sample[random.IntN(len(sample))]
		}
		for n := range looked {
			if sum >= n {
				reached[n]++
			}
		}
	}
	for i, n := range at {
		if share := float64(reached[n]) / draws; share < float64(flow.Levels[i])/100-0.005 {
			t.Errorf("%d or more came in %.3f of the draws, not in %d %%", n, share, flow.Levels[i])
		}
		if share := float64(reached[n+1]) / draws; share >= float64(flow.Levels[i])/100+0.005 {
			t.Errorf("%d or more could be promised at %d %%: they came in %.3f of the draws", n+1, flow.Levels[i], share)
		}
	}
}

func TestWhatNeverEndsHasNoDate(t *testing.T) {
	if got := flow.When(make([]int, 20), 1); got != [4]int{} {
		t.Errorf("nothing was ever finished: %v", got)
	}
	once := make([]int, 30)
	once[3] = 1
	if got := flow.When(once, 11); got[0] == 0 || got[0] < 300 || got[3] != 0 {
		t.Errorf("one in 30 days: %v", got)
	}
}

func TestPercentilesAreByNearestRank(t *testing.T) {
	var values []int
	for n := range 20 {
		values = append(values, 20-n)
	}
	if got, ok := flow.Percentiles(values); !ok || got != [4]int{10, 14, 17, 19} {
		t.Errorf("%v, %t", got, ok)
	}
	if _, ok := flow.Percentiles(values[:9]); ok {
		t.Error("nine values have percentiles")
	}
}

func TestDaysFollowTheCalendar(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	before := flow.Day(time.Date(2026, 10, 24, 23, 59, 0, 0, zone))
	after := flow.Day(time.Date(2026, 10, 26, 0, 0, 0, 0, zone)) // summer time ended between
	if after-before != 2 || flow.DayName(after) != "2026-10-26" {
		t.Errorf("%d days, %s", after-before, flow.DayName(after))
	}
}

// TestDaysBeginWhenTheirDateDoes, where clocks change at midnight or a day is left out, too.
func TestDaysBeginWhenTheirDateDoes(t *testing.T) {
	for _, c := range []struct{ zone, day, begins string }{
		{"UTC", "2026-03-29", "2026-03-29T00:00:00Z"},
		{"Europe/Berlin", "2026-03-29", "2026-03-28T23:00:00Z"},
		{"Europe/Berlin", "2026-03-30", "2026-03-29T22:00:00Z"},       // the day had 23 hours
		{"Africa/Cairo", "2026-04-24", "2026-04-23T22:00:00Z"},        // from midnight to 1:00
		{"Atlantic/Azores", "2026-10-25", "2026-10-25T00:00:00Z"},     // back from 1:00 to midnight
		{"America/Havana", "2026-03-08", "2026-03-08T05:00:00Z"},      // from midnight to 1:00
		{"America/Havana", "2026-11-01", "2026-11-01T04:00:00Z"},      // back from 1:00 to midnight
		{"America/Santiago", "2026-09-06", "2026-09-06T04:00:00Z"},    // from midnight to 1:00
		{"Pacific/Kiritimati", "2026-11-26", "2026-11-25T10:00:00Z"},  // 14 hours ahead
		{"Pacific/Apia", "2011-12-30", "2011-12-30T10:00:00Z"},        // there was none
		{"Pacific/Apia", "2011-12-31", "2011-12-30T10:00:00Z"},        // so the next one begins at once
		{"Antarctica/Troll", "2026-03-29", "2026-03-29T00:00:00Z"},    // changes by two hours
		{"Asia/Kathmandu", "2026-11-26", "2026-11-25T18:15:00Z"},      // 5:45 ahead
		{"America/Sao_Paulo", "2018-11-04", "2018-11-04T03:00:00Z"},   // from midnight to 1:00
		{"Australia/Lord_Howe", "2026-04-05", "2026-04-04T13:00:00Z"}, // changes by half an hour
		{"America/St_Johns", "2026-11-01", "2026-11-01T02:30:00Z"},    // 2:30 behind
		{"Africa/Casablanca", "2026-02-15", "2026-02-14T23:00:00Z"},   // a winter of its own
		{"Asia/Beirut", "2026-03-29", "2026-03-28T22:00:00Z"},         // from midnight to 1:00
	} {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		day, err := time.Parse(time.DateOnly, c.day)
		if err != nil {
			t.Fatal(err)
		}
		if got := flow.Begins(flow.Day(day), zone).UTC().Format(time.RFC3339); got != c.begins {
			t.Errorf("%s in %s begins at %s, want %s", c.day, c.zone, got, c.begins)
		}
	}
}

// grade returns how many forecasts of the last 30 days were made, and how many came true.
func grade(past []int) (made, came int) {
	for _, g := range flow.Grade(past, 30, notKept) {
		if made++; g.Came >= g.Promised {
			came++
		}
	}
	return made, came
}

// TestForecastsAreGraded: the forecast of a steady team always comes true, that of one that stops does not.
func TestForecastsAreGraded(t *testing.T) {
	steady := make([]int, 60)
	for i := range steady {
		steady[i] = 2
	}
	// Of 30 days with today, 15 have 14 whole days between them and today.
	if made, came := grade(steady); made != 15 || came != made {
		t.Errorf("%d of %d", came, made)
	}
	for i := 46; i < 60; i++ {
		steady[i] = 0
	}
	if made, came := grade(steady); made != 15 || came != 1 {
		t.Errorf("%d of %d", came, made)
	}
	if made, _ := grade(make([]int, 60)); made != 0 {
		t.Errorf("%d forecasts from nothing", made)
	}
}

func notKept(_ int, make func() int) int { return make() }

// BenchmarkGrade is the grading of 90 days of 590 stories each.
func BenchmarkGrade(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	past := make([]int, 180)
	for i := range past {
		if past[i] = 540 + random.IntN(100); i%7 > 4 { // weekends
			past[i] = random.IntN(3)
		}
	}
	for b.Loop() {
		flow.Grade(past, 90, notKept)
	}
}

// BenchmarkForecast makes both forecasts of such a team.
func BenchmarkForecast(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	sample := make([]int, 90)
	for i := range sample {
		sample[i] = 540 + random.IntN(100)
	}
	slow := make([]int, 90)
	for i := range slow {
		slow[i] = random.IntN(4)
	}
	for b.Loop() {
		flow.HowMany(sample, 180)
		flow.When(slow, 500)
	}
}
