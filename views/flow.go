package views

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/flow"
)

type FlowProps struct {
	Report *domain.FlowReport
	Cost   *domain.CostReport
	Query  domain.FlowQuery
	Chosen bool     // the reader chose a number of items
	Names  []string // of all projects
	Now    time.Time
	// Owners are who works on stories, and Asked the open questions about stories.
	Owners *domain.Owners
	Asked  map[domain.StoryKey]domain.Question
}

// address returns the address of the page, or of its CSV, for the query.
func (p FlowProps) address(path string) string {
	unless := func(usual, n int) string {
		if n == usual {
			return ""
		}
		return strconv.Itoa(n)
	}
	q := p.Query
	pairs := []string{
		"ahead", unless(domain.FlowAhead, q.Ahead), "days", unless(domain.FlowDays, q.Days), "items", unless(0, q.Items),
	}
	for _, name := range q.Projects {
		pairs = append(pairs, "project", name)
	}
	return withQuery(path, append(pairs, "tz", zoneName(p.Now))...)
}

func (p FlowProps) withDays(days int) string {
	p.Query.Days = days
	return p.address(FlowURL)
}

func (p FlowProps) projects() string {
	switch n := len(p.Query.Projects); {
	case n == 0:
		return "All projects"
	case n == 1:
		return domain.Cut(p.Query.Projects[0], 40)
	default:
		return thousands(n) + " of " + domain.Count(len(p.Names), "project", "projects")
	}
}

func (p FlowProps) finished() int { return len(p.Report.Stories) + p.Report.More }

func (p FlowProps) facts() []fact {
	r := p.Report
	within := "in " + domain.Count(min(p.Query.Days, max(1, len(r.Days))), "day", "days")
	list := []fact{{name: "Finished", value: thousands(p.finished()), beside: within}}
	if at := r.Percentiles; at != nil {
		list = append(list, fact{name: "Half within", value: p.within(0)}, fact{name: "85 % within", value: p.within(2)})
	}
	list = append(list, fact{name: "In work", value: thousands(len(r.Ageing))})
	if over := olderThan(p.Report, 85); r.Percentiles != nil {
		list = append(list, fact{name: "Older than 85 %", value: thousands(over)})
	}
	if p.Cost != nil && p.Cost.Finished.At != nil {
		list = append(list, fact{name: "85 % cost up to", value: costAt(p.Cost.Finished, 2), beside: "list price"})
	}
	return list
}

func days(n int) string { return thousands(n) + " d" }

const day = 24 * time.Hour

// daysOr returns a number of days, or the hours that it took if under a day.
func daysOr(n int, took time.Duration) string {
	if took > 0 && took < day {
		return age(took)
	}
	return days(n)
}

func took(s domain.FlowStory) string { return daysOr(s.Days, s.Finished.Sub(s.Started)) }

func (p FlowProps) ageText(a domain.FlowAge) string {
	if a.Start.IsZero() {
		return days(a.Days)
	}
	return daysOr(a.Days, p.Now.Sub(a.Start))
}

// within is how long stories took at most, at a level of flow.Levels.
func (p FlowProps) within(level int) string {
	at, stories := p.Report.Percentiles[level], p.Report.Stories
	if at > 1 || p.Report.More > 0 {
		return days(at)
	}
	durations := domain.Map(stories, func(s domain.FlowStory) time.Duration { return s.Finished.Sub(s.Started) })
	slices.Sort(durations)
	return daysOr(at, durations[(len(durations)*flow.Levels[level]+99)/100-1])
}

// olderThan is how many stories in work exceed a percentile.
func olderThan(r *domain.FlowReport, level int) int {
	return howMany(r.Ageing, func(age domain.FlowAge) bool { return age.Over >= level })
}

// toForecast says how close there are to being enough stories for a forecast; today's do not count until it is over.
func (p FlowProps) toForecast() string {
	text := thousands(p.Report.Finished) + " of 10 finished stories, up to yesterday"
	if today := p.finished() - p.Report.Finished; today > 0 {
		text += "; " + domain.Count(today, "that was finished today counts", "that were finished today count") + " tomorrow"
	}
	return text
}

func (p FlowProps) ageLead() string {
	switch old, older := olderThan(p.Report, 95), olderThan(p.Report, 85); {
	case p.Report.Percentiles == nil:
		return "Too few stories are finished to say which age is unusual."
	case old > 0:
		return domain.Count(old, "story is", "stories are") + " older than 95 % of what you finish."
	case older > 0:
		return domain.Count(older, "story is", "stories are") + " older than 85 % of what you finish."
	default:
		return "None is older than 85 % of what you finish."
	}
}

// ageRest says how many of the unusually old stories stand still, "" for none.
func (p FlowProps) ageRest() string {
	old := olderThan(p.Report, 85)
	held := howMany(p.Report.Ageing, func(age domain.FlowAge) bool { return age.Over >= 85 && p.mark(age).why != "" })
	switch {
	case held == 0:
		return ""
	case held == old && old == 1:
		return "It waits for somebody."
	case held == old:
		return "All of them wait for somebody."
	}
	return domain.Count(held, "of them waits", "of them wait") + " for somebody."
}

// The marks on the track of ages, in percent of its width: the percentiles 50, 85 and 95.
var agePosts = [3]float64{34, 58, 76}

// agePlace is an age's position on a track that is linear between its marks, so that one old story squashes nobody.
func agePlace(age int, at *[4]int) float64 {
	if at == nil {
		return math.Min(90, 10+8*math.Log2(float64(max(1, age))))
	}
	from, place := 0.0, 0.0
	for i, post := range []int{at[0], at[2], at[3]} {
		if age <= post && float64(post) > from {
			return place + (agePosts[i]-place)*(float64(age)-from)/(float64(post)-from)
		}
		from, place = float64(post), agePosts[i]
	}
	return math.Min(94, place+6*math.Log2(float64(age)/math.Max(1, from)+1))
}

// when is the date of a forecast: "18 Dec", with the year if it is not this one.
func (p FlowProps) when(level int) string {
	days := p.Report.When[level]
	if days == 0 {
		return "over a year"
	}
	return dateText(p.Now.AddDate(0, 0, days), p.Now)
}

func gradeLead(r *domain.FlowReport) string {
	made, came := len(r.Graded), r.CameTrue()
	return fmt.Sprintf("Of %s at 85 %%, %d came true: %d %%.", domain.Count(made, "forecast", "forecasts"), came,
		(100*came+made/2)/made)
}

// unreliable is the share of forecasts that came true, in percent, below which they were too optimistic.
const unreliable = 75

// gradeRest says how the forecasts went wrong, "" if they did not.
func gradeRest(r *domain.FlowReport) string {
	graded := r.Graded
	var longest, run []domain.FlowGrade
	for i, g := range graded {
		if g.Came >= g.Promised {
			run = nil
			continue
		}
		if run = graded[i-len(run) : i+1]; len(run) > len(longest) {
			longest = run
		}
	}
	switch {
	case 100*r.CameTrue() < unreliable*len(graded):
		return "That is less than promised: take the 95 % column until it is right again."
	case len(longest) >= 5:
		first, last := longest[0].Day, longest[len(longest)-1].Day
		return fmt.Sprintf("From %s to %s all %s fell short.", flowDate(first), flowDate(last), thousands(len(longest)))
	}
	return ""
}

// flowMark is the mark of a story in work on its track.
type flowMark struct {
	signal Signal
	letter string // "?" for a question, otherwise for who works on it
	why    string // what holds it up
}

func (p FlowProps) mark(age domain.FlowAge) flowMark {
	var m flowMark
	m.signal, m.why = storyState(*age.Item, domain.Overdue{})
	asked, asks := p.Asked[domain.StoryKey{Project: age.Project, ID: age.Item.StoryID}]
	switch agent := p.Owners.Of(age.Project, age.Item.StoryID).Name; {
	case asks:
		m.signal, m.letter = SignalNone, "?"
		m.why = visible(domain.Cut(asked.By, 40)) + " asks: " + visible(domain.Cut(asked.Prompt, 120))
	case m.signal == SignalNone && agent != "":
		m.letter = initials(agent)
	}
	return m
}
