// Package flow computes how long work takes and when it will be finished, from what was finished in the past, as
// docs/design/forecast.md says. It is arithmetic only: it must know nothing of stories, stores or pages.
package flow

import (
	"maps"
	"math"
	"math/cmplx"
	"slices"
	"sort"
	"time"
)

// Levels are the percentiles that are shown, and the chances of forecasts, in percent.
var Levels = [4]int{50, 70, 85, 95}

// Enough is the least number of finished stories, and of days, that numbers are computed from.
const Enough = 10

// Percentiles returns the Levels of some values by nearest rank, false for under Enough values.
func Percentiles(values []int) (at [4]int, ok bool) {
	if len(values) < Enough {
		return at, false
	}
	sorted := slices.Sorted(slices.Values(values))
	for i, level := range Levels {
		at[i] = sorted[(level*len(sorted)+99)/100-1]
	}
	return at, true
}

// Day returns the number of the calendar day of t in its zone. Consecutive days have consecutive numbers.
func Day(t time.Time) int {
	year, month, day := t.Date()
	return int(time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix() / (24 * 60 * 60))
}

// DayName returns the date of a day: 2026-11-23.
func DayName(day int) string {
	return time.Unix(int64(day)*24*60*60, 0).UTC().Format(time.DateOnly)
}

// Begins returns when a day begins in a zone: at midnight or, if clocks skip that or show it twice, at the first moment
// of the day.
func Begins(day int, zone *time.Location) time.Time {
	date := time.Unix(int64(day)*24*60*60, 0).UTC()
	at := time.Date(date.Year(), date.Month(), date.Day(), 0, 0, 0, 0, zone)
	if Day(at) == day && Day(at.Add(-1)) < day {
		return at
	}
	early := at.Add(-26 * time.Hour) // Samoa once left out a day
	after := sort.Search(int(2*26*time.Hour/time.Second), func(seconds int) bool {
		return Day(early.Add(time.Duration(seconds)*time.Second)) >= day
	})
	return early.Add(time.Duration(after) * time.Second)
}

// negligible is the chance below which an outcome at either end of a distribution is left out.
const negligible = 1e-12

// chances is a distribution: chances[i] is the chance of first+i.
type chances struct {
	first int
	of    []float64
}

var certainlyNone = chances{of: []float64{1}}

// daily is the distribution of what is finished on a day, drawn from a sample. Its values are few: most days are alike.
type daily struct {
	values []int
	of     []float64
}

func newDaily(sample []int) daily {
	counts := map[int]int{}
	for _, n := range sample {
		counts[n]++
	}
	d := daily{values: slices.Sorted(maps.Keys(counts))} // in order: the same sums on every machine
	for _, n := range d.values {
		d.of = append(d.of, float64(counts[n])/float64(len(sample)))
	}
	return d
}

// plus returns the distribution after one more day. Anything above most counts as most.
func (c chances) plus(d daily, most int) chances {
	last := min(c.first+len(c.of)-1+d.values[len(d.values)-1], most)
	next := chances{first: min(c.first+d.values[0], most)}
	next.of = make([]float64, last-next.first+1)
	for k, value := range d.values {
		p, at := d.of[k], c.first+value-next.first
		for i, q := range c.of {
			next.of[min(at+i, len(next.of)-1)] += p * q
		}
	}
	return next.cut()
}

// cut leaves out what is negligible at both ends.
func (c chances) cut() chances {
	from, to := 0, len(c.of)
	for sum := c.of[from]; sum < negligible && from < to-1; sum += c.of[from] {
		from++
	}
	for sum := c.of[to-1]; sum < negligible && to > from+1; sum += c.of[to-1] {
		to--
	}
	return chances{c.first + from, c.of[from:to]}
}

// rounding is how far a chance may be off, as sums of fractions are.
const rounding = 1e-9

// reached returns the largest number that is reached or passed with a chance of level percent.
func (c chances) reached(level int) int {
	sum, need := 0.0, float64(level)/100-rounding
	for i := len(c.of) - 1; i >= 0; i-- {
		if sum += c.of[i]; sum >= need {
			return c.first + i
		}
	}
	return c.first
}

// widest is the largest number of finished items up to which sums are told apart. A day counts as at most its share of
// these.
const widest = 1<<20 - 1

// over returns the distribution of what is finished in some days: the power of the daily one under convolution, which
// is the power of its Fourier transform.
func (d daily) over(days int) chances {
	most := widest / days
	last := min(most, d.values[len(d.values)-1]) * days
	size := 1
	for size <= last {
		size *= 2
	}
	waves := make([]complex128, size)
	for i, value := range d.values {
		waves[min(most, value)] += complex(d.of[i], 0)
	}
	transform(waves)
	for i, w := range waves {
		power := complex(1, 0)
		for n := days; n > 0; n /= 2 {
			if n%2 == 1 {
				power *= w
			}
			w *= w
		}
		waves[i] = cmplx.Conj(power)
	}
	transform(waves) // of the conjugates: the inverse, except for the size and the conjugation of a real result
	sum := chances{of: make([]float64, last+1)}
	for i := range sum.of {
		if p := real(waves[i]) / float64(size); p > negligible/1000 {
			sum.of[i] = p
		}
	}
	return sum.cut()
}

// transform replaces values, a power of two in number, by their discrete Fourier transform (Cooley and Tukey).
func transform(values []complex128) {
	n := len(values)
	for i, j := 1, 0; i < n; i++ {
		bit := n / 2
		for ; j&bit != 0; bit /= 2 {
			j ^= bit
		}
		if j ^= bit; i < j {
			values[i], values[j] = values[j], values[i]
		}
	}
	turns := make([]complex128, n/2)
	for i := range turns {
		turns[i] = cmplx.Rect(1, -2*math.Pi*float64(i)/float64(n))
	}
	for half := 1; half < n; half *= 2 {
		step := n / (2 * half)
		for start := 0; start < n; start += 2 * half {
			for i := range half {
				low, high := values[start+i], values[start+half+i]*turns[i*step]
				values[start+i], values[start+half+i] = low+high, low-high
			}
		}
	}
}

// HowMany returns how many items at least are finished within some days, with the chances Levels, if each day is like
// one of the sample; so the numbers fall.
func HowMany(sample []int, days int) (at [4]int) {
	sum := newDaily(sample).over(days)
	for i, level := range Levels {
		at[i] = sum.reached(level)
	}
	return at
}

// Horizon is the number of days beyond which a forecast says that it does not know.
const Horizon = 365

// When returns after how many days that many items are finished, with the chances Levels; 0 if that is beyond Horizon.
func When(sample []int, items int) (at [4]int) {
	d, sum, found := newDaily(sample), certainlyNone, 0
	if d.values[len(d.values)-1] == 0 {
		return at
	}
	for day := 1; day <= Horizon && found < len(Levels); day++ {
		sum = sum.plus(d, items)
		chance := 0.0
		if sum.first+len(sum.of)-1 >= items {
			chance = sum.of[len(sum.of)-1]
		}
		for found < len(Levels) && chance >= float64(Levels[found])/100-rounding {
			at[found] = day
			found++
		}
	}
	return at
}

func CanForecast(sample []int) bool {
	finished := 0
	for _, n := range sample {
		finished += n
	}
	return len(sample) >= Enough && finished >= Enough
}

// GradedDays is how many days ahead the forecasts look that are compared with what happened.
const GradedDays = 14

// Outcome is a forecast for GradedDays with 85 %, beside what happened.
type Outcome struct {
	Day      int // the last day that it was made from, an index
	Promised int
	Came     int
}

// Grade makes such a forecast for each of the last window days of a past that has GradedDays behind it and enough days
// before, from the days up to and including it, at most window of them. past is what was finished on each day, oldest
// first, today excluded. kept keeps a day's forecast; it is called with the day's index in past and the function that
// makes it.
func Grade(past []int, window int, kept func(day int, make func() int) int) (graded []Outcome) {
	for day := max(0, len(past)+1-window); day+GradedDays < len(past); day++ {
		sample := past[max(0, day+1-window) : day+1]
		if !CanForecast(sample) {
			continue
		}
		g := Outcome{Day: day, Promised: kept(day, func() int { return newDaily(sample).over(GradedDays).reached(85) })}
		for _, n := range past[day+1 : day+1+GradedDays] {
			g.Came += n
		}
		graded = append(graded, g)
	}
	return graded
}
