package domain

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
	AttentionBot         AttentionKind = "bot"           // the chat bot has failed
	AttentionAgentLost   AttentionKind = "agent_lost"    // an agent has fallen silent
	AttentionFeedGap     AttentionKind = "feed_gap"      // events of a project were lost
	AttentionSignIn      AttentionKind = "sign_in"       // the stored sign-in has expired
)

// StuckAfter is how long a story may be in one stage of work before it needs somebody.
const StuckAfter = 24 * time.Hour

// GapAttention is how long a gap in a feed needs somebody: then whoever cares has seen it.
const GapAttention = 24 * time.Hour

// Attention is something that needs somebody. Story is set where it is about one.
type Attention struct {
	Kind    AttentionKind
	Project string // "" where it is about none
	Agent   string // the label of the agent that it is about
	Story   *Item
	Stage   string // of the story
	Reason  string // "" where the kind says it all
	SinceMS int64  // when the story came into its stage, the project last answered, and so on; 0 is never
}

// FindAttention returns what needs somebody in these pipelines: what stands still before what is merely slow, the oldest
// first. A story counts once, and not any more when it is done.
func FindAttention(pipelines []ProjectPipeline, now time.Time) []Attention {
	var found []Attention
	stuck := now.Add(-StuckAfter).UnixMilli()
	for _, p := range pipelines {
		if p.Error == NoAnswerYet {
			continue // its answer is on the way, or will be known to fail
		}
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
	SortAttention(found)
	return found
}

// SortAttention puts what stands still before what is merely slow or past, the oldest first.
func SortAttention(list []Attention) {
	slices.SortStableFunc(list, func(a, b Attention) int {
		return cmp.Or(cmp.Compare(a.Kind.rank(), b.Kind.rank()), cmp.Compare(a.SinceMS, b.SinceMS))
	})
}

var attentionOrder = []AttentionKind{
	AttentionUnreachable, AttentionBlocked, AttentionMerge, AttentionBot, AttentionSignIn, AttentionAgentLost, AttentionStuck, AttentionFeedGap,
}

// Stops reports whether something stands still; other kinds ask for caution.
func (k AttentionKind) Stops() bool {
	return k == AttentionUnreachable || k == AttentionBlocked || k == AttentionBot
}

func (k AttentionKind) rank() int { return slices.Index(attentionOrder, k) }

// Text says what is wrong, in words and in one line.
func (a Attention) Text() string {
	var text string
	switch a.Kind {
	case AttentionUnreachable:
		text = "project " + a.Project + " is unreachable"
	case AttentionBlocked:
		text = a.story() + " is blocked"
	case AttentionMerge:
		text = "merge failed of " + a.story()
	case AttentionStuck:
		text = a.story() + " has been in " + StageTitle(a.Stage) + " for more than a day"
	case AttentionBot:
		text = "the chat bot has failed"
	case AttentionAgentLost:
		text = "agent " + a.Agent + " is lost"
		if a.Project != "" {
			text += ", assigned to " + a.Project
		}
	case AttentionFeedGap:
		text = "events of " + a.Project + " are missing"
	case AttentionSignIn:
		text = "the sign-in has expired"
	}
	if a.Reason != "" {
		text += ": " + a.Reason
	}
	return text
}

func (a Attention) story() string { return "story " + a.Story.StoryID + " of " + a.Project }
