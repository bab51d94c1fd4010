package domain

import (
	"cmp"
	"slices"
	"time"
)

type AlertKind string

const (
	AlertBlocked     AlertKind = "blocked"      // a story is blocked
	AlertMerge       AlertKind = "merge_failed" // a story's merge failed
	AlertStuck       AlertKind = "stuck"        // a story has been in one stage of work for longer than is usual there
	AlertUnreachable AlertKind = "unreachable"  // a project server cannot be reached
	AlertAgentLost   AlertKind = "agent_lost"   // an agent has fallen silent
	AlertAgentFailed AlertKind = "agent_failed" // an agent's command keeps failing
	AlertBot         AlertKind = "bot_failed"   // the chat bot has failed
	AlertClockAhead  AlertKind = "clock_ahead"  // a project's feed has timestamps far ahead of the gateway's clock
	AlertStore       AlertKind = "store_failed" // the last write to the store failed
)

// Alert is something that needs attention. Story is set if it is about one.
type Alert struct {
	Kind    AlertKind
	Project string // "" if it is about none
	Agent   string // the label of the agent that it is about
	AgentID string
	Story   *Item
	Stage   string    // of the story
	Reason  string    // "" if the kind says it all
	Since   time.Time // when the problem began
	// Acknowledged is nil unless somebody has acknowledged the alert.
	Acknowledged *Acknowledgement
}

// MaxAlerts is how many alerts are shown at once.
const MaxAlerts = 200

// Alerts are all alerts, sorted: those that are not acknowledged before the others, kinds that stop work before those
// that ask for caution, oldest first.
type Alerts struct {
	Items []Alert // at most MaxAlerts
	More  int     // how many there are besides Items, which the fields below include
	// Open is how many are not acknowledged, and ByProject how many of these each project has.
	Open      int
	ByProject map[string]int
	// Stuck are the ids of each project's stuck stories, of all of them, sorted.
	Stuck map[string][]string
	// OpenStuck counts the stuck stories that are not acknowledged, of each project that has any, the longest first.
	OpenStuck []StuckStories
	// Acknowledged are the keys of all that are acknowledged.
	Acknowledged map[string]bool
}

type StuckStories struct {
	Project string
	Count   int
	Since   time.Time // when the first of them entered its stage
}

// NewAlerts sorts and counts a list of alerts. It keeps the list.
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

// limitsHold is how long computed stuck limits are valid while nothing changes.
const limitsHold = time.Hour

// FindAlerts returns what needs attention in the pipelines, in no particular order. There is at most one alert for a
// story, and none when it is done.
func FindAlerts(pipelines []ProjectPipeline, limit StuckLimit, now time.Time) []Alert {
	found, _ := FindAlertsUntil(pipelines, limit, now)
	return found
}

// FindAlertsUntil returns what FindAlerts does, and until when that is valid if nothing but the time changes.
func FindAlertsUntil(pipelines []ProjectPipeline, limit StuckLimit, now time.Time) (found []Alert, until time.Time) {
	until = now.Add(limitsHold)
	for k := range pipelines {
		p := &pipelines[k]
		if p.Error == NoAnswerYet {
			continue // the first fetch has not ended yet
		}
		if !p.Reachable {
			found = append(found, Alert{Kind: AlertUnreachable, Project: p.Project, Reason: p.Error, Since: p.FailedSince})
			continue
		}
		summary := p.Summary()
		for i, stage := range p.Stages[:summary.Open] {
			for j := range stage.Items {
				item := &stage.Items[j]
				a := Alert{Project: p.Project, Story: item, Stage: stage.Name}
				switch {
				case item.Blocked != "":
					a.Kind, a.Reason, a.Since = AlertBlocked, item.Blocked, item.TroubleSince()
				case item.MergeFailure != "":
					a.Kind, a.Reason, a.Since = AlertMerge, item.MergeFailure, item.TroubleSince()
				case i >= summary.From && i < summary.To:
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

// alertKinds are the kinds, most serious first, with their words and SignalStop where work has stopped.
var alertKinds = []struct {
	kind   AlertKind
	word   string
	signal Signal
}{
	{AlertStore, "store failed", SignalStop},
	{AlertUnreachable, "unreachable", SignalStop},
	{AlertBlocked, "blocked", SignalStop},
	{AlertMerge, "merge failed", SignalCaution},
	{AlertBot, "bot failed", SignalStop},
	{AlertAgentFailed, "agent failed", SignalCaution},
	{AlertAgentLost, "agent lost", SignalCaution},
	{AlertClockAhead, "clock ahead", SignalCaution},
	{AlertStuck, "stuck", SignalCaution},
}

// Signal returns SignalStop if alerts of this kind mean that work has stopped; others ask for caution.
func (k AlertKind) Signal() Signal { return alertKinds[k.rank()].signal }

func (k AlertKind) Word() string { return alertKinds[k.rank()].word }

func (k AlertKind) rank() int {
	for rank := range alertKinds {
		if alertKinds[rank].kind == k {
			return rank
		}
	}
	panic("unknown kind of alert: " + string(k))
}

// Acknowledgement records that somebody is taking care of an alert. It ends with the alert, or when the alert's text
// changes.
type Acknowledgement struct {
	Key     string // of the alert
	Project string // that the alert is about, "" for none
	Text    string // of the alert at that time
	By      string
	At      time.Time
	Until   time.Time // zero: until the alert ends
	Since   time.Time // when the alert began; zero if unknown
}

// Ends reports whether alert is no longer the one that was acknowledged: its text differs, or its story has been
// blocked or has failed to merge again.
func (a Acknowledgement) Ends(alert Alert) bool {
	again := (alert.Kind == AlertBlocked || alert.Kind == AlertMerge) && !a.Since.IsZero() && alert.Since.After(a.Since)
	return again || alert.Text() != a.Text
}

// ParseAcknowledgedFor parses the duration of an acknowledgement. It returns Invalid for an unknown one.
func ParseAcknowledgedFor(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, Errorf(Invalid, "for: must be a duration, such as 4h or 1h30m")
	}
	return d, nil
}
