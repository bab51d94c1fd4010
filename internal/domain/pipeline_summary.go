package domain

import "time"

// PipelineSummary is what lists of many projects need to know about a pipeline.
type PipelineSummary struct {
	From, To        int       // the stages in which stories are worked on, as WorkStages has them
	Working         int       // stories in these
	Blocked, Failed int       // stories before the end of these that are blocked, and others whose merge failed
	Moved           time.Time // when the last story came into its stage
}

// Summarize returns the summary of stages.
func Summarize(stages []Stage) PipelineSummary {
	var s PipelineSummary
	s.From, s.To = WorkStages(stages)
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
			case i >= s.To:
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
