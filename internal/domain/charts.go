package domain

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// ChartDays is how many days charts cover, including today.
const ChartDays = 14

// Charts show the progress of a project's stories in the last ChartDays days. They are shared and must not be changed.
type Charts struct {
	Days   []DayCount  // ChartDays of them, today last
	Before int         // how many stories were finished in the same number of days before these
	Stages []StageTime // of the stages of work, in their order
	ToDone StageTime   // from entering the first stage of work until finished; without a name
	Past   Past        // of the project, if it is one

	visits [][]time.Duration // the times from which Stages were computed, in whole seconds, sorted
	toDone []time.Duration
}

// StartOfDay returns the beginning of the day of a time, in its zone.
func StartOfDay(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, t.Location())
}

type DayCount struct {
	Day      time.Time // the beginning of the day
	Finished int
	FromGit  int // how many of them only git knows
}

// StageTime is how long stories were in a stage that they have left.
type StageTime struct {
	Stage  string // its name
	Title  string // for people
	Median time.Duration
	Visits int // the number of visits; the median is 0 if there are none
}

// Charts returns charts of the last ChartDays days in now's time zone.
func (p *ProjectVisits) Charts(workflow Workflow, now time.Time) Charts {
	start := time.Date(now.Year(), now.Month(), now.Day()-ChartDays+1, 0, 0, 0, 0, now.Location())
	c := Charts{Days: make([]DayCount, ChartDays), Past: p.Past}
	for i := range c.Days {
		// Days may have 23 hours.
		c.Days[i].Day = time.Date(start.Year(), start.Month(), start.Day()+i, 0, 0, 0, 0, start.Location())
	}
	earlier := start.AddDate(0, 0, -ChartDays).UnixMilli()
	for story := range p.Follow(workflow, earlier) {
		switch at := time.UnixMilli(story.Finished); {
		case story.Finished < earlier:
		case at.Before(start):
			c.Before++
		default:
			day := len(c.Days) - 1
			for c.Days[day].Day.After(at) {
				day--
			}
			c.Days[day].Finished++
			if at.Before(p.Past.Live) {
				c.Days[day].FromGit++
			}
			if story.Started < story.Finished { // otherwise it was never worked on
				c.toDone = append(c.toDone, seconds(story.Finished-story.Started))
			}
		}
	}
	c.ToDone = stageTime("", c.toDone)
	visits := make([][]time.Duration, len(p.stages))
	p.eachTransition(start, func(v storyVisit) { visits[v.stage] = append(visits[v.stage], seconds(v.to-v.from)) })
	for _, stage := range workflow.Stages[workflow.From:workflow.To] {
		var took []time.Duration
		if i := slices.Index(p.stages, stage.Name); i >= 0 {
			took = visits[i]
		}
		t := stageTime(stage.Name, took)
		t.Title = stage.Title()
		c.Stages, c.visits = append(c.Stages, t), append(c.visits, took)
	}
	return c
}

func seconds(ms int64) time.Duration { return max(0, time.Duration(ms/1000)*time.Second) }

func stageTime(stage string, took []time.Duration) StageTime {
	t := StageTime{Stage: stage, Visits: len(took)}
	if n := len(took); n > 0 {
		slices.Sort(took)
		t.Median = (took[(n-1)/2] + took[n/2]) / 2
	}
	return t
}

const (
	// maxSummed is how many values a median over all projects is computed from. If there are more, the same share of
	// each project's values is used.
	maxSummed = 10_000
	// maxSummedStages is how many stages a sum distinguishes: those that most stories have left.
	maxSummedStages = 5
)

// SumCharts returns the charts of several projects together. Stages with the same title are merged under that title.
func SumCharts(charts []Charts) Charts {
	var sum Charts
	toDone := make([][]time.Duration, 0, len(charts))
	stages := map[string]*summedStage{} // by title
	for _, c := range charts {
		if sum.Days == nil {
			sum.Days = slices.Clone(c.Days)
		} else {
			for i := range c.Days {
				sum.Days[i].Finished += c.Days[i].Finished
				sum.Days[i].FromGit += c.Days[i].FromGit
			}
		}
		sum.Before += c.Before
		toDone = append(toDone, c.toDone)
		for i, took := range c.visits {
			if len(took) == 0 {
				continue
			}
			title := c.Stages[i].Title
			stage := stages[title]
			if stage == nil {
				stage = &summedStage{title: title}
				stages[title] = stage
			}
			stage.took = append(stage.took, took)
			stage.visits += len(took)
			stage.positions += i * len(took)
		}
	}
	sum.ToDone = medianOfAll("", toDone)
	most := slices.SortedFunc(maps.Values(stages), func(a, b *summedStage) int {
		return cmp.Or(cmp.Compare(b.visits, a.visits), cmp.Compare(a.title, b.title))
	})
	most = most[:min(len(most), maxSummedStages)]
	slices.SortFunc(most, func(a, b *summedStage) int {
		return cmp.Or(cmp.Compare(a.position(), b.position()), cmp.Compare(a.title, b.title))
	})
	for _, stage := range most {
		sum.Stages = append(sum.Stages, medianOfAll(stage.title, stage.took))
	}
	return sum
}

type summedStage struct {
	title     string
	took      [][]time.Duration
	visits    int
	positions int // the sum of its indexes among each project's stages, once for each visit
}

func (s *summedStage) position() float64 { return float64(s.positions) / float64(s.visits) }

func medianOfAll(stage string, lists [][]time.Duration) StageTime {
	n := 0
	for _, list := range lists {
		n += len(list)
	}
	every := 1 + n/maxSummed
	all := make([]time.Duration, 0, n/every+len(lists))
	for i, list := range lists {
		for at := i % every; at < len(list); at += every {
			all = append(all, list[at])
		}
	}
	t := stageTime(stage, all)
	t.Visits = n
	return t
}
