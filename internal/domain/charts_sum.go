package domain

import (
	"cmp"
	"maps"
	"slices"
)

const (
	// maxSummed is how many values a median over all projects is computed from. If there are more, the same share of each
	// project's values is used.
	maxSummed = 10_000
	// maxSummedStages is how many stages, those that most stories have left, a sum distinguishes.
	maxSummedStages = 5
)

// SumCharts returns the charts of several projects together. Stages with the same title are merged under that title.
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
		for i, took := range c.visits {
			if len(took) == 0 {
				continue
			}
			stage := stages.named(c.Stages[i].Stage)
			stage.took = append(stage.took, took)
			stage.visits += len(took)
			stage.positions += i * len(took)
		}
	}
	sum.ToDone = medianOfAll("", toDone)
	most := slices.SortedFunc(maps.Values(stages.byTitle), func(a, b *summedStage) int {
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

// summedStage is a stage of several projects.
type summedStage struct {
	title     string
	took      [][]int32
	visits    int
	positions int // the sum of its indexes among each project's stages, once for each visit
}

// summedStages caches stages by name, so that their titles are computed only once.
type summedStages struct{ byName, byTitle map[string]*summedStage }

func (s summedStages) named(name string) *summedStage {
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

// position returns the stage's average index.
func (s *summedStage) position() float64 { return float64(s.positions) / float64(s.visits) }

// medianOfAll returns the median over sorted lists.
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
	t.Visits = n
	return t
}
