package domain

import (
	"cmp"
	"maps"
	"slices"
)

const (
	// maxSummed is how many values a median over all projects is computed from. Where there are more, the same share of each
	// project's values is used.
	maxSummed = 10_000
	// maxSummedStages is how many stages a sum distinguishes: those that most stories have left.
	maxSummedStages = 5
)

// SumCharts returns the charts of all these projects together. Stages with the same title count as one, named by it.
func SumCharts(charts []Charts) Charts {
	var sum Charts
	toDone := make([][]int32, 0, len(charts))
	stages := summedStages{byName: map[string]*summedStage{}, byTitle: map[string]*summedStage{}}
	for _, c := range charts {
		if sum.Days == nil {
			sum.Days = slices.Clone(c.Days)
		} else {
			for i := range c.Days {
				sum.Days[i].Finished += c.Days[i].Finished
			}
		}
		sum.Before += c.Before
		toDone = append(toDone, c.toDone)
		for i, took := range c.stays {
			if len(took) == 0 {
				continue
			}
			stage := stages.of(c.Stages[i].Stage)
			stage.took, stage.stays, stage.places = append(stage.took, took), stage.stays+len(took), stage.places+i*len(took)
		}
	}
	sum.ToDone = medianOfAll("", toDone)
	most := slices.SortedFunc(maps.Values(stages.byTitle), func(a, b *summedStage) int {
		return cmp.Or(cmp.Compare(b.stays, a.stays), cmp.Compare(a.title, b.title))
	})
	most = most[:min(len(most), maxSummedStages)]
	slices.SortFunc(most, func(a, b *summedStage) int {
		return cmp.Or(cmp.Compare(a.place(), b.place()), cmp.Compare(a.title, b.title))
	})
	for _, stage := range most {
		sum.Stages = append(sum.Stages, medianOfAll(stage.title, stage.took))
	}
	return sum
}

// summedStage is a stage of several projects.
type summedStage struct {
	title  string
	took   [][]int32
	stays  int
	places int // the sum of its places among the stages of each, once for each stay
}

// summedStages finds a stage without making its title each time.
type summedStages struct{ byName, byTitle map[string]*summedStage }

func (s summedStages) of(name string) *summedStage {
	stage := s.byName[name]
	if stage == nil {
		title := StageTitle(name)
		if stage = s.byTitle[title]; stage == nil {
			stage = &summedStage{title: title}
			s.byTitle[title] = stage
		}
		s.byName[name] = stage
	}
	return stage
}

// place is its position among the stages, on average.
func (s *summedStage) place() float64 { return float64(s.places) / float64(s.stays) }

// medianOfAll is the median over lists that are sorted.
func medianOfAll(stage string, lists [][]int32) StageTime {
	n := 0
	for _, list := range lists {
		n += len(list)
	}
	every := 1 + n/maxSummed
	all := make([]int32, 0, n/every+len(lists))
	for i, list := range lists {
		for at := i % every; at < len(list); at += every {
			all = append(all, list[at])
		}
	}
	t := stageTime(stage, all)
	t.Stays = n
	return t
}
