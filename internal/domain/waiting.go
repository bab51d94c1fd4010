package domain

import (
	"cmp"
	"slices"
	"time"
)

type WaitingStory struct {
	Project string
	Stage   *Stage
	Item    *Item
	Age     time.Duration // in this stage
	Limit   time.Duration // how long it may be there before it counts as stuck
}

// Times returns how many times its limit the story has been in its stage.
func (w WaitingStory) Times() float64 { return float64(w.Age) / float64(w.Limit) }

// WaitingLongest returns all stories in work, by their ages as multiples of the limits of their stages, the greatest
// first.
func WaitingLongest(pipelines []ProjectPipeline, now time.Time) []WaitingStory {
	var all []WaitingStory
	for i := range pipelines {
		p := &pipelines[i]
		summary := p.Summary()
		for at := summary.From; at < summary.To; at++ {
			stage, limit := &p.Stages[at], p.limit(at)
			for j := range stage.Items {
				item := &stage.Items[j]
				if since := item.Since; since.UnixMilli() > 0 {
					all = append(all, WaitingStory{p.Project, stage, item, max(0, now.Sub(since)), limit})
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b WaitingStory) int { return cmp.Compare(b.Times(), a.Times()) })
	return all
}
