package domain

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Alert is something that needs attention; Story is set if it concerns one.
type Alert struct {
	Kind       AlertKind
	Project    string // "" for none
	Agent      string // the label of the agent, or the name of the target, that it is about
	AgentID    string
	Session    string // the id of the coding agent's session that it is about, "" for none
	Question   int64  // the id of the question that it is, 0 for none
	Target     string // the id of the target that it is about, "" for none
	Fault      string // the kind of faults that it is about, "" for none
	Story      *Item
	Stage      string    // of the story
	StageTitle string    // likewise, for people
	Base       string    // what its work is compared with: the branch of the project's own work tree
	Reason     string    // "" if the kind says it all
	Since      time.Time // when the problem began
	Stops      bool      // until it is acknowledged, whoever would get a new story of the project gets none
	// Blocked is since when the story of an open question has been blocked; zero if it is not. Asked says of such a
	// block that there is an open question about its story: people see both as one.
	Blocked time.Time
	Asked   bool
	// Acknowledged is nil unless somebody has acknowledged the alert.
	Acknowledged *Acknowledgement
}

const MaxAlerts = 200

// Alerts are all alerts, sorted: those not acknowledged first, kinds that stop work before those that ask for caution,
// oldest first.
type Alerts struct {
	Items []Alert // at most MaxAlerts
	More  int     // how many there are besides Items, which the fields below include
	// Open is how many are not acknowledged, and ByProject how many of these each project has.
	Open      int
	ByProject map[string]int
	// Rows is how many of the open ones people see, counting a question and the block of its story as one, and ByKind
	// how many of these each kind has.
	Rows   int
	ByKind map[AlertKind]int
	// Asking are the stories whose agents wait for a person: AlertQuestion or AlertWaiting.
	Asking map[StoryKey]AlertKind
	// Overdue are the troubles of each project's stories that come from time alone.
	Overdue map[string]Overdue
	// OpenStuck counts the stuck stories that are not acknowledged, for each project that has any, the longest first.
	OpenStuck []StuckStories
	// Acknowledged are the keys of all that are acknowledged.
	Acknowledged map[string]bool
}

type StuckStories struct {
	Project string
	Count   int
	Since   time.Time // when the first of them entered its stage
	AtLeast bool      // or earlier
}

// NewAlerts sorts and counts a list of alerts. It keeps the list.
func NewAlerts(list []Alert) Alerts {
	slices.SortStableFunc(list, func(a, b Alert) int {
		return cmp.Or(
			cmp.Compare(acknowledged(a), acknowledged(b)), cmp.Compare(a.Kind.rank(), b.Kind.rank()), a.Since.Compare(b.Since),
		)
	})
	a := Alerts{
		Items: list, ByProject: map[string]int{}, ByKind: map[AlertKind]int{}, Overdue: newOverdue(list),
		Acknowledged: map[string]bool{}, Asking: join(list),
	}
	stuck := map[string]StuckStories{}
	for _, alert := range list {
		if alert.Acknowledged != nil {
			a.Acknowledged[alert.Key()] = true
			continue
		}
		a.Open++
		a.ByProject[alert.Project]++
		if !alert.Asked {
			a.Rows++
			a.ByKind[alert.Kind]++
		}
		if alert.Kind == AlertStuck {
			s, first := stuck[alert.Project], alert.Story
			if s.Count == 0 || first.Since.Before(s.Since) {
				s.Since, s.AtLeast = first.Since, first.SinceAtLeast
			}
			stuck[alert.Project] = StuckStories{alert.Project, s.Count + 1, s.Since, s.AtLeast}
		}
	}
	a.OpenStuck = slices.SortedFunc(maps.Values(stuck), func(a, b StuckStories) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Project, b.Project))
	})
	if len(list) > MaxAlerts {
		a.Items, a.More = slices.Clone(list[:MaxAlerts]), len(list)-MaxAlerts
	}
	return a
}

// join joins open questions and the blocks of their stories, and returns the stories whose agents wait for a person.
func join(list []Alert) map[StoryKey]AlertKind {
	asking, questions := map[StoryKey]AlertKind{}, map[StoryKey]*Alert{}
	for i := range list { // questions come first
		a := &list[i]
		if a.Story == nil || a.Acknowledged != nil {
			continue
		}
		key := StoryKey{a.Project, a.Story.StoryID}
		switch a.Kind {
		case AlertQuestion:
			if questions[key] == nil {
				questions[key] = a
			}
			asking[key] = a.Kind
		case AlertWaiting:
			if questions[key] == nil {
				asking[key] = a.Kind
			}
		case AlertBlocked:
			if q := questions[key]; q != nil {
				a.Asked, q.Blocked = true, a.Since
			}
		}
	}
	return asking
}

// ShownSince returns since when, or before, people see it lasting: for a stuck story its time in the stage, as
// everywhere else, and not the time over the limit.
func (a Alert) ShownSince() (at time.Time, atLeast bool) {
	if a.Kind == AlertStuck {
		return a.Story.Since, a.Story.SinceAtLeast
	}
	return a.Since, false
}

// limitsLifetime is how long computed stuck limits are valid while nothing changes.
const limitsLifetime = time.Hour

// FindAlerts returns what needs attention in a pipeline, in no particular order, and until when that is valid if only
// the time changes. Besides what is wrong with its work there is at most one alert per story, and none once it is done.
func FindAlerts(p *ProjectPipeline, now time.Time) (found []Alert, until time.Time) {
	until = now.Add(limitsLifetime)
	summary := p.Summary()
	found = make([]Alert, 0, summary.Blocked+summary.Failed) // and those of stuck stories
	for i, stage := range p.Stages[:summary.Open] {
		title := stage.Title()
		isWork, most := i >= summary.From && i < summary.To, time.Duration(0)
		if isWork {
			most = p.limit(i)
		}
		for j := range stage.Items {
			item := &stage.Items[j]
			a := Alert{Project: p.Project, Story: item, Stage: stage.Name, StageTitle: title}
			a.Kind, a.Reason = item.Trouble()
			switch {
			case a.Kind != "":
				a.Since = item.TroubleSince()
			case isWork:
				a.Kind, a.Since = AlertStuck, item.Since.Add(most)
				if !a.Since.Before(now) {
					if a.Since.Before(until) {
						until = a.Since
					}
					continue
				}
			default:
				continue
			}
			found = append(found, a)
		}
	}
	late, from := overdueWork(p, now)
	if from.Before(until) {
		until = from
	}
	return append(append(found, late...), faultAlerts(p)...), until
}

// faultAlerts returns an alert for each kind of fault that a board has.
func faultAlerts(p *ProjectPipeline) (found []Alert) {
	for _, kind := range []string{FaultUnreadable, FaultDuplicate} {
		a, more := Alert{Kind: AlertFault, Project: p.Project, Fault: kind}, -1
		for _, f := range p.Faults {
			if f.Kind != kind {
				continue
			}
			if more++; more == 0 {
				a.Reason, a.Since = f.Text, f.Since
			}
			if f.Since.Before(a.Since) {
				a.Since = f.Since
			}
		}
		if more > 0 {
			a.Reason += ", and " + strconv.Itoa(more) + " more"
		}
		if more >= 0 {
			found = append(found, a)
		}
	}
	return found
}

func acknowledged(a Alert) int {
	if a.Acknowledged != nil {
		return 1
	}
	return 0
}

// Acknowledgement records that somebody is taking care of an alert. It ends with the alert, or when the alert's text
// changes.
type Acknowledgement struct {
	Key     string // of the alert
	Project string // that the alert is about, "" for none
	Text    string // the alert's at that time
	By      string
	At      time.Time
	Until   time.Time // zero: until the alert ends
	Since   time.Time // when the alert began; zero if unknown
}

// EndedBy reports whether alert is no longer the one that was acknowledged: its text differs, its story has been
// blocked or has failed to merge again, or it is about another day. An amount over budget keeps growing.
func (a Acknowledgement) EndedBy(alert Alert) bool {
	later := !a.Since.IsZero() && alert.Since.After(a.Since)
	switch alert.Kind {
	case AlertBudget:
		return later && alert.Story == nil
	case AlertBlocked, AlertMerge:
		return later || alert.Text() != a.Text
	}
	return alert.Text() != a.Text
}

// ParseAcknowledgedFor parses the duration of an acknowledgement. It returns Invalid for an unknown one.
func ParseAcknowledgedFor(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, Errorf(Invalid, "for: must be a duration, such as 4h or 1h30m")
	}
	return d, nil
}
