package domain

import (
	"cmp"
	"slices"
	"time"
)

// AlertKind says what is wrong.
type AlertKind string

const (
	AlertBlocked     AlertKind = "blocked"      // a story is blocked
	AlertMerge       AlertKind = "merge_failed" // a story's merge failed
	AlertStuck       AlertKind = "stuck"        // a story has been in one stage of work for longer than is usual there
	AlertUnreachable AlertKind = "unreachable"  // a project server does not answer
	AlertAgentLost   AlertKind = "agent_lost"   // an agent has fallen silent
	AlertAgentFailed AlertKind = "agent_failed" // an agent's command keeps failing
	AlertBot         AlertKind = "bot_failed"   // the chat bot has failed
	AlertClockAhead  AlertKind = "clock_ahead"  // a project's feed holds stamps far ahead of the gateway's clock
	AlertStore       AlertKind = "store_failed" // the last write to the store failed
)

// Alert is something that needs attention. Story is set where it is about one.
type Alert struct {
	Kind    AlertKind
	Project string // "" where it is about none
	Agent   string // the label of the agent that it is about
	AgentID string
	Story   *Item
	Stage   string    // of the story
	Reason  string    // "" where the kind says it all
	Since   time.Time // when the trouble began
	// Acknowledged is nil while nobody has taken note of it.
	Acknowledged *Acknowledgement
}

// MaxAlerts is how many alerts are shown at once.
const MaxAlerts = 200

// Alerts are what needs attention: first what is not acknowledged, in it what stands still before what is merely slow, the
// oldest first.
type Alerts struct {
	Items []Alert // at most MaxAlerts
	More  int     // how many others there are
	// Open is how many are not acknowledged, and ByProject how many of these there are of each project; in both all count.
	Open      int
	ByProject map[string]int
	// Stuck are the ids of each project's stuck stories, of all of them, sorted.
	Stuck map[string][]string
	// OpenStuck counts the stuck stories that are not acknowledged, of each project that has any, the longest first.
	OpenStuck []StuckStories
	// Acknowledged are the keys of all that are acknowledged.
	Acknowledged map[string]bool
}

// StuckStories are some of a project.
type StuckStories struct {
	Project string
	Count   int
	Since   time.Time // when the first of them came into its stage
}

// NewAlerts sorts and counts a list, which it takes over.
func NewAlerts(list []Alert) Alerts {
	SortAlerts(list)
	a := Alerts{Items: list, ByProject: map[string]int{}, Stuck: map[string][]string{}, Acknowledged: map[string]bool{}}
	for _, alert := range list {
		if alert.Kind == AlertStuck {
			a.Stuck[alert.Project] = append(a.Stuck[alert.Project], alert.Story.StoryID)
		}
		if alert.Acknowledged == nil {
			a.Open++
			a.ByProject[alert.Project]++
		} else {
			a.Acknowledged[alert.Key()] = true
		}
	}
	for _, ids := range a.Stuck {
		slices.Sort(ids)
	}
	a.OpenStuck = openStuck(list)
	if len(list) > MaxAlerts {
		a.Items, a.More = slices.Clone(list[:MaxAlerts]), len(list)-MaxAlerts
	}
	return a
}

func openStuck(list []Alert) (found []StuckStories) {
	index := map[string]int{}
	for _, alert := range list {
		if alert.Kind != AlertStuck || alert.Acknowledged != nil {
			continue
		}
		i, known := index[alert.Project]
		if !known {
			i, index[alert.Project] = len(found), len(found)
			found = append(found, StuckStories{Project: alert.Project, Since: alert.Story.Since})
		}
		found[i].Count++
		if since := alert.Story.Since; since.Before(found[i].Since) {
			found[i].Since = since
		}
	}
	slices.SortStableFunc(found, func(a, b StuckStories) int { return a.Since.Compare(b.Since) })
	return found
}

// StuckLimit returns how long a story may stay in a stage of work before it needs attention.
type StuckLimit func(project, stage string) time.Duration

// limitsHold is how long stuck limits are used again while nothing has changed.
const limitsHold = time.Hour

// FindAlerts returns what needs attention in these pipelines, in no particular order. A story counts once, and no longer
// when it is done.
func FindAlerts(pipelines []ProjectPipeline, limit StuckLimit, now time.Time) []Alert {
	found, _ := FindAlertsUntil(pipelines, limit, now)
	return found
}

// FindAlertsUntil returns what FindAlerts does, and until when that is true if nothing but the time changes.
func FindAlertsUntil(pipelines []ProjectPipeline, limit StuckLimit, now time.Time) (found []Alert, until time.Time) {
	until = now.Add(limitsHold)
	for k := range pipelines {
		p := &pipelines[k]
		if p.Error == NoAnswerYet {
			continue // its answer is on the way, or will be known to fail
		}
		if !p.Reachable {
			found = append(found, Alert{Kind: AlertUnreachable, Project: p.Project, Reason: p.Error, Since: p.FailedSince})
			continue
		}
		summary := p.Summary()
		for i, stage := range p.Stages[:summary.To] {
			for j := range stage.Items {
				item := &stage.Items[j]
				a := Alert{Project: p.Project, Story: item, Stage: stage.Name}
				switch {
				case item.Blocked != "":
					a.Kind, a.Reason, a.Since = AlertBlocked, item.Blocked, item.TroubleSince()
				case item.MergeFailure != "":
					a.Kind, a.Reason, a.Since = AlertMerge, item.MergeFailure, item.TroubleSince()
				case i >= summary.From:
					a.Kind, a.Since = AlertStuck, item.Since.Add(limit(p.Project, stage.Name))
					if !a.Since.Before(now) {
						until = earlier(until, a.Since)
						continue
					}
				default:
					continue
				}
				found = append(found, a)
			}
		}
	}
	return found, until
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// SortAlerts puts what is not acknowledged first, what stands still before what is merely slow, the oldest first.
func SortAlerts(list []Alert) {
	slices.SortStableFunc(list, func(a, b Alert) int {
		return cmp.Or(
			cmp.Compare(acknowledged(a), acknowledged(b)), cmp.Compare(a.Kind.rank(), b.Kind.rank()), a.Since.Compare(b.Since),
		)
	})
}

func acknowledged(a Alert) int {
	if a.Acknowledged != nil {
		return 1
	}
	return 0
}

// alertKinds are the kinds in the order of their weight, with their words and whether something stands still.
var alertKinds = []struct {
	kind  AlertKind
	word  string
	stops bool
}{
	{AlertStore, "store failed", true},
	{AlertUnreachable, "unreachable", true},
	{AlertBlocked, "blocked", true},
	{AlertMerge, "merge failed", false},
	{AlertBot, "bot failed", true},
	{AlertAgentFailed, "agent failed", false},
	{AlertAgentLost, "agent lost", false},
	{AlertClockAhead, "clock ahead", false},
	{AlertStuck, "stuck", false},
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
