package yard

import (
	"cmp"
	"slices"
	"time"
)

// AttentionKind says what is wrong.
type AttentionKind string

const (
	AttentionUnreachable AttentionKind = "unreachable"   // a project server does not answer
	AttentionBlocked     AttentionKind = "blocked"       // a story is blocked
	AttentionMerge       AttentionKind = "merge_failure" // a story's merge failed
	AttentionStuck       AttentionKind = "stuck"         // a story has been in one stage for longer than StuckAfter
)

// StuckAfter is how long a story may be in one stage of work before it needs somebody.
const StuckAfter = 24 * time.Hour

// Attention is something that needs somebody. Story is set where it is about one.
type Attention struct {
	Kind    AttentionKind
	Project string
	Story   *Item
	Stage   string // of the story
	Reason  string // "" where the kind says it all
	SinceMS int64  // when the story came into its stage, or the project last answered; 0 is never
}

// FindAttention returns what needs somebody in these pipelines: what stands still before what is merely slow, the oldest
// first. A story counts once, and not any more when it is done.
func FindAttention(pipelines []ProjectPipeline, now time.Time) []Attention {
	var found []Attention
	stuck := Millis(now.Add(-StuckAfter))
	for _, p := range pipelines {
		if !p.Reachable {
			found = append(found, Attention{Kind: AttentionUnreachable, Project: p.Project, Reason: p.Error, SinceMS: p.LastSeenMS})
			continue
		}
		from, to := WorkStages(p.Stages)
		for i, stage := range p.Stages[:to] {
			for j := range stage.Items {
				item := &stage.Items[j]
				a := Attention{Project: p.Project, Story: item, Stage: stage.Name, SinceMS: item.SinceMS}
				switch {
				case item.Blocked != nil:
					a.Kind, a.Reason = AttentionBlocked, *item.Blocked
				case item.MergeFailure != nil:
					a.Kind, a.Reason = AttentionMerge, *item.MergeFailure
				case i >= from && item.SinceMS < stuck:
					a.Kind = AttentionStuck
				default:
					continue
				}
				found = append(found, a)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b Attention) int {
		return cmp.Or(cmp.Compare(a.Kind.rank(), b.Kind.rank()), cmp.Compare(a.SinceMS, b.SinceMS))
	})
	return found
}

func (k AttentionKind) rank() int {
	return slices.Index([]AttentionKind{AttentionUnreachable, AttentionBlocked, AttentionMerge, AttentionStuck}, k)
}
