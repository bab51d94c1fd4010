package domain

import (
	"cmp"
	"slices"
	"time"
)

// AlertKind says what is wrong.
type AlertKind string

const (
	AlertUnreachable AlertKind = "unreachable"   // a project server does not answer
	AlertBlocked     AlertKind = "blocked"       // a story is blocked
	AlertMerge       AlertKind = "merge_failure" // a story's merge failed
	AlertStuck       AlertKind = "stuck"         // a story has been in one stage for longer than StuckAfter
	AlertBot         AlertKind = "bot"           // the chat bot has failed
	AlertAgentLost   AlertKind = "agent_lost"    // an agent has fallen silent
	AlertFeedGap     AlertKind = "feed_gap"      // events of a project were lost
	AlertSignIn      AlertKind = "sign_in"       // the stored sign-in has expired
)

// StuckAfter is how long a story may be in one stage of work before it needs somebody.
const StuckAfter = 24 * time.Hour

// GapAlertAge is how long a gap in a feed needs somebody: then whoever cares has seen it.
const GapAlertAge = 24 * time.Hour

// Alert is something that needs somebody. Story is set where it is about one.
type Alert struct {
	Kind    AlertKind
	Project string // "" where it is about none
	Agent   string // the label of the agent that it is about
	Story   *Item
	Stage   string // of the story
	Reason  string // "" where the kind says it all
	SinceMS int64  // when the story came into its stage, the project last answered, and so on; 0 is never
}

// FindAlerts returns what needs somebody in these pipelines: what stands still before what is merely slow, the oldest
// first. A story counts once, and not any more when it is done.
func FindAlerts(pipelines []ProjectPipeline, now time.Time) []Alert {
	var found []Alert
	stuck := now.Add(-StuckAfter).UnixMilli()
	for _, p := range pipelines {
		if p.Error == NoAnswerYet {
			continue // its answer is on the way, or will be known to fail
		}
		if !p.Reachable {
			found = append(found, Alert{Kind: AlertUnreachable, Project: p.Project, Reason: p.Error, SinceMS: p.LastSeenMS})
			continue
		}
		from, to := WorkStages(p.Stages)
		for i, stage := range p.Stages[:to] {
			for j := range stage.Items {
				item := &stage.Items[j]
				a := Alert{Project: p.Project, Story: item, Stage: stage.Name, SinceMS: item.SinceMS}
				switch {
				case item.Blocked != nil:
					a.Kind, a.Reason = AlertBlocked, *item.Blocked
				case item.MergeFailure != nil:
					a.Kind, a.Reason = AlertMerge, *item.MergeFailure
				case i >= from && item.SinceMS < stuck:
					a.Kind = AlertStuck
				default:
					continue
				}
				found = append(found, a)
			}
		}
	}
	SortAlerts(found)
	return found
}

// SortAlerts puts what stands still before what is merely slow or past, the oldest first.
func SortAlerts(list []Alert) {
	slices.SortStableFunc(list, func(a, b Alert) int {
		return cmp.Or(cmp.Compare(a.Kind.rank(), b.Kind.rank()), cmp.Compare(a.SinceMS, b.SinceMS))
	})
}

// alertKinds are the kinds in the order of their weight, in words, and whether something stands still.
var alertKinds = []struct {
	kind  AlertKind
	word  string
	stops bool
}{
	{AlertUnreachable, "unreachable", true},
	{AlertBlocked, "blocked", true},
	{AlertMerge, "merge failed", false},
	{AlertBot, "bot failed", true},
	{AlertSignIn, "sign-in expired", false},
	{AlertAgentLost, "agent lost", false},
	{AlertStuck, "stuck", false},
	{AlertFeedGap, "events lost", false},
}

// Stops reports whether something stands still; other kinds ask for caution.
func (k AlertKind) Stops() bool { return alertKinds[k.rank()].stops }

// Word is the kind in a word or two.
func (k AlertKind) Word() string { return alertKinds[k.rank()].word }

func (k AlertKind) rank() int {
	for rank := range alertKinds {
		if alertKinds[rank].kind == k {
			return rank
		}
	}
	panic("unknown kind of alert: " + string(k))
}

// Text says what is wrong, in words and in one line.
func (a Alert) Text() string {
	var text string
	switch a.Kind {
	case AlertUnreachable:
		text = "project " + a.Project + " is unreachable"
	case AlertBlocked:
		text = a.story() + " is blocked"
	case AlertMerge:
		text = "merge failed of " + a.story()
	case AlertStuck:
		text = a.story() + " has been in " + StageTitle(a.Stage) + " for more than a day"
	case AlertBot:
		text = "the chat bot has failed"
	case AlertAgentLost:
		text = "agent " + a.Agent + " is lost"
		if a.Project != "" {
			text += ", assigned to " + a.Project
		}
	case AlertFeedGap:
		text = "events of " + a.Project + " are missing"
	case AlertSignIn:
		text = "the sign-in has expired"
	}
	if a.Reason != "" {
		text += ": " + a.Reason
	}
	return text
}

func (a Alert) story() string { return "story " + a.Story.StoryID + " of " + a.Project }
