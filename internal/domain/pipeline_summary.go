package domain

import "time"

// PipelineSummary is a summary of a pipeline for lists of many projects.
type PipelineSummary struct {
	From, To        int       // the range of WorkStages
	Open            int       // the number of OpenStages
	Working         int       // the number of stories in the range
	Blocked, Failed int       // the numbers of blocked stories in open stages, and of others whose merge has failed
	Moved           time.Time // when the last story entered its stage
}

// Summarize returns the summary of stages.
func Summarize(stages []Stage) PipelineSummary {
	var s PipelineSummary
	s.From, s.To = WorkStages(stages)
	s.Open = OpenStages(stages)
	for i := range stages {
		items := stages[i].Items
		if i >= s.From && i < s.To {
			s.Working += len(items)
		}
		for j := range items {
			item := &items[j]
			if item.Since.After(s.Moved) {
				s.Moved = item.Since
			}
			switch {
			case i >= s.Open:
			case item.Blocked != "":
				s.Blocked++
			case item.MergeFailure != "":
				s.Failed++
			}
		}
	}
	return s
}

// Summary returns the summary of Stages.
func (p *ProjectPipeline) Summary() PipelineSummary {
	if p.Summarized != nil {
		return *p.Summarized
	}
	return Summarize(p.Stages)
}
