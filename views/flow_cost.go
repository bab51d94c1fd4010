package views

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"switchyard/internal/domain"
	"switchyard/internal/flow"
)

// costPicture is what pictures of costs show: the days since the first call, and the stories finished in them.
type costPicture struct {
	flowAxis
	days    []domain.CostShare
	average domain.Micros
	stories []domain.CostShare
	step    int   // how many of them a dot stands for
	low     int64 // the money at the foot of their picture, at most a tenth of the dearest's
	dearest int64
}

func (p FlowProps) costPicture() costPicture {
	c := costPicture{days: p.Cost.Days, low: math.MaxInt64, dearest: 10 * costLow}
	for p.Cost.Before == 0 && len(c.days) > 1 && c.days[0].Calls == 0 {
		c.days = c.days[1:]
	}
	c.flowAxis = flowAxis{len(c.days), p.Now}
	c.average = p.Cost.Total.USD / domain.Micros(len(c.days))
	c.stories = p.Cost.Finished.Stories
	for _, s := range c.stories {
		c.low, c.dearest = min(c.low, int64(s.USD)), max(c.dearest, int64(s.USD))
	}
	c.low, c.step = max(costLow, min(c.low, c.dearest/10)), len(c.stories)/(flowPoints+1)+1
	return c
}

// costLow is a cent.
const costLow, costHeight = 10_000, 120

// y is the height of an amount on a logarithmic scale, in pixels.
func (c costPicture) y(usd int64) float64 {
	share := math.Log(float64(max(c.low, usd))/float64(c.low)) / math.Log(float64(c.dearest)/float64(c.low))
	return costHeight - 8 - (costHeight-24)*share
}

// costName is the name of a story beside its dot.
type costName struct {
	x, y float64
	text string
}

// names are those of up to three of the dearest unusually expensive stories, without overlaps.
func (p FlowProps) names(c costPicture) (names []costName) {
	for _, s := range p.Cost.Stories {
		i := slices.IndexFunc(c.stories, func(f domain.CostShare) bool { return f.Key() == s.Key() })
		if i < 0 || !isDear(p.Cost.Finished, c.stories[i].USD) {
			continue
		}
		text := visible(domain.Cut(cmp.Or(s.Name, s.StoryID), 24))
		name := costName{c.at(c.stories[i].Finished), c.y(int64(c.stories[i].USD)), text}
		near := func(n costName) bool { return math.Abs(n.x-name.x) < 60 && math.Abs(n.y-name.y) < 12 }
		if len(names) < 3 && !slices.ContainsFunc(names, near) {
			names = append(names, name)
		}
	}
	return names
}

// ticks are round amounts of money, a power of ten apart.
func (c costPicture) ticks() (list []flowTick) {
	for usd := int64(costLow); usd <= c.dearest; usd *= 10 {
		if usd < c.low {
			continue
		}
		list = append(list, flowTick{strings.TrimSuffix(domain.Micros(usd).Dollars(), ".00"), c.y(usd)})
	}
	return list
}

// costBars are the days' money, or tokens if nothing has a price, those over budget separately, and the highest one.
func (p FlowProps) costBars(days []domain.CostShare) (daily, over []int, most int) {
	most = 1
	priced := slices.ContainsFunc(days, func(d domain.CostShare) bool { return d.USD > 0 })
	for _, d := range days {
		n := int(d.Tokens.Sum())
		if priced {
			n = int(d.USD)
		}
		most = max(most, n)
		if p.overDay(d) {
			daily, over = append(daily, noBar), append(over, n)
		} else {
			daily, over = append(daily, n), append(over, noBar)
		}
	}
	return daily, over, most
}

// overDay reports whether a day is over its budget. It applies to a single project, and to days in its own zone.
func (p FlowProps) overDay(d domain.CostShare) bool {
	b := p.Cost.Budgets
	return b.Day > 0 && d.USD > b.Day && len(p.Query.Projects) == 1 && b.Zone.String() == p.Query.Zone.String()
}

// daysOver says how many days are over budget, "" for none.
func (p FlowProps) daysOver(days []domain.CostShare) string {
	n := howMany(days, p.overDay)
	if n == 0 {
		return ""
	}
	return " On " + domain.Count(n, "day", "days") + " it passed its " + p.Cost.Budgets.Day.Dollars() + "."
}

// storiesOver says how many stories are over budget, in two parts, the first of which is bold; "" for none.
func (p FlowProps) storiesOver() (strong, rest string) {
	budget := p.Cost.Budgets.Story
	over := howMany(p.Cost.Stories, func(s domain.CostShare) bool { return s.USD > budget })
	open := howMany(p.Cost.Stories, func(s domain.CostShare) bool { return s.USD > budget && s.Finished.IsZero() })
	if budget == 0 || over == 0 {
		return "", ""
	}
	strong = domain.Count(over, "story costs", "stories cost") + " more than " + budget.Dollars()
	switch {
	case over == len(p.Cost.Stories) && p.Cost.More > 0:
		return "At least " + strong, "."
	case open == 0:
		return strong, "."
	case over == 1:
		return strong, ", and it is not finished."
	}
	return strong, ", and " + domain.Count(open, "of them is", "of them are") + " not finished."
}

// stageOf is the stage of work that a story is in, "" for none.
func (p FlowProps) stageOf(s domain.CostShare) string {
	for _, a := range p.Report.Ageing {
		if a.Project == s.Project && a.Item.StoryID == s.StoryID {
			return stageKey(a.Stage.Title())
		}
	}
	return ""
}

// lastTen says what the last ten finished stories cost, "" if there are no others.
func (p FlowProps) lastTen() string {
	var costs []int
	for _, s := range p.Cost.Finished.Stories[:min(flow.Enough, len(p.Cost.Finished.Stories))] {
		costs = append(costs, int(s.USD))
	}
	at, _ := flow.Percentiles(costs)
	if p.Cost.Finished.Count <= flow.Enough {
		return ""
	}
	return " Of the last ten half cost " + domain.Micros(at[0]).Dollars() + " or less."
}

// costLead is the finding about costs, in three parts, the second of which is bold.
func (p FlowProps) costLead(days int) (lead, strong, rest string) {
	c := p.Cost
	within := " in " + domain.Count(days, "day", "days")
	spent := c.Total.USD.Dollars() + within + p.thanBefore() + "."
	switch {
	case c.Total.Unpriced == c.Total.Calls:
		return "", tokens(c.Total.Tokens.Sum()) + " tokens" + within + ", no price known.",
			" Of them " + tokens(c.Total.Tokens.CacheRead) + " came from the cache."
	case c.Finished.At == nil:
		return "", spent, ""
	}
	lead = fmt.Sprintf("Half of the %s stories finished cost %s or less, ", thousands(c.Finished.Count),
		costAt(c.Finished, 0))
	return lead, "85 % " + costAt(c.Finished, 2) + " or less.", " All in all " + spent
}

// thanBefore compares the costs with those of as many days before, "" if these are unknown.
func (p FlowProps) thanBefore() string {
	if p.Cost.Before == 0 {
		return ""
	}
	than := "as much as"
	switch change := int(math.Round(100*float64(p.Cost.Total.USD)/float64(p.Cost.Before))) - 100; {
	case change >= 900:
		than = thousands(change/100+1) + " times as much as"
	case change > 0:
		than = thousands(change) + " % more than"
	case change < 0:
		than = thousands(-change) + " % less than"
	}
	return ", " + than + " in the " + domain.Count(p.Query.Days, "day", "days") + " before"
}

// toUsualCost says how many finished stories there are, of those needed to say what one costs.
func (p FlowProps) toUsualCost() string {
	return fmt.Sprintf("%s finished; with %d it says what one usually costs.",
		domain.Count(p.Cost.Finished.Count, "story is", "stories are"), flow.Enough)
}

// costAt is a percentile of what finished stories cost.
func costAt(f domain.FinishedCost, level int) string {
	return domain.Micros(f.At[level]).Dollars()
}

// tokens are counts of tokens in words: 38.2 M.
func tokens(n int64) string {
	switch {
	case n >= 1_000_000:
		return fmt.Sprintf("%.1f M", float64(n)/1_000_000)
	case n >= 10_000:
		return fmt.Sprintf("%d k", n/1000)
	}
	return thousands(int(n))
}

// isDear reports whether a story is known to cost more than 85 % of the finished ones.
func isDear(f domain.FinishedCost, usd domain.Micros) bool {
	return f.At != nil && int64(usd) > int64(f.At[2])
}

// costOver says how a story's cost compares, and whether that is too much.
func costOver(c *domain.CostReport, usd domain.Micros) (text string, over bool) {
	switch {
	case c.Budgets.Story > 0 && usd > c.Budgets.Story:
		return "over " + c.Budgets.Story.Dollars(), true
	case c.Finished.At == nil:
		return "", false
	case isDear(c.Finished, usd):
		return "over 85 %", true
	}
	return "within 85 %", false
}

// callsAndSessions counts what a story's cost is made of.
func callsAndSessions(calls int64, sessions int) string {
	text := domain.Count(calls, "call", "calls")
	if sessions > 0 {
		text += ", " + domain.Count(sessions, "session", "sessions")
	}
	return text
}

type costPart struct {
	class, name string
	domain.CostSum
}

func (p FlowProps) costParts() []costPart {
	c, open := p.Cost, p.Cost.Total
	open.USD -= c.Done.USD + c.Without.USD
	return []costPart{
		{"band-0", "finished stories", c.Done},
		{"band-2", "other stories", open},
		{"band-3", "without a story", c.Without},
	}
}

// share is a part of the total in percent.
func (p FlowProps) share(usd domain.Micros) float64 {
	return 100 * float64(usd) / math.Max(1, float64(p.Cost.Total.USD))
}

// onTrack is the position of a story's cost on flowTrack, relative to the dearest one if none are finished.
func (p FlowProps) onTrack(usd domain.Micros) int {
	if p.Cost.Finished.At != nil {
		return int(usd)
	}
	return int(1024 * usd / max(1, p.Cost.Stories[0].USD))
}

// prices is what switchyard.toml lacks.
func prices(models []domain.CostShare) string {
	text := "[prices]"
	for _, m := range models {
		if m.Unpriced > 0 {
			text += fmt.Sprintf("\n%q = {input = …, output = …,\n  cache_read = …, cache_creation = …}", m.Name)
		}
	}
	return text
}
