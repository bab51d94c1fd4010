package domain

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

type Target struct {
	ID    string
	Owner string // the account that owns the device, "" for an administrator's target
	Name  string
	URL   Secret
	// Secret signs webhooks, and until FormerUntil so does Former. Both are "" for other kinds.
	Secret, Former Secret
	FormerUntil    time.Time
	Rules          TargetRules
	Enabled        bool
	CreatedAt      time.Time
	// Revision increases when people change the target.
	Revision int64
	Progress TargetProgress
}

// Failing reports whether the last attempt to send a message failed, and there will be another.
func (t *Target) Failing() bool { return t.Enabled && !t.Progress.FailingAt.IsZero() }

// TargetRules say what a target gets, and when. Their JSON form is the API's.
type TargetRules struct {
	Events   []EventType    `json:"events"`
	Alerts   []AlertKind    `json:"alerts"`
	Projects []string       `json:"projects"` // nil for all
	Digest   DigestInterval `json:"digest"`
	DigestAt string         `json:"digest_at"` // HH:MM, for a daily one
	Quiet    *Quiet         `json:"quiet"`     // nil for never
	TimeZone string         `json:"time_zone"` // an IANA name
}

// DigestInterval is how often a target gets everything in one message.
type DigestInterval string

const (
	NoDigest     DigestInterval = "none"
	HourlyDigest DigestInterval = "hourly"
	DailyDigest  DigestInterval = "daily"
)

// Quiet are hours in which a target gets nothing, by the clock of its zone; they may end on the next day.
type Quiet struct {
	From string   `json:"from"` // HH:MM
	To   string   `json:"to"`
	Days []string `json:"days,omitempty"` // the days on which they begin, mon to sun; every day without any
}

// Limits of what a target may be.
const (
	MaxTargets      = 1000
	MaxTargetURL    = 4000
	maxTargetEvents = 100
	maxTargetNames  = 1000
)

var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// Check returns Invalid with the name of the field that is wrong.
func (r *TargetRules) Check() error {
	if len(r.Events) > maxTargetEvents || len(r.Projects) > maxTargetNames {
		return Errorf(Invalid, "events, projects: must be at most %d and %d", maxTargetEvents, maxTargetNames)
	}
	for _, kind := range r.Events {
		if kind == "" || utf8.RuneCountInString(string(kind)) > MaxFilter {
			return Errorf(Invalid, "events: each must have 1 to %d characters", MaxFilter)
		}
	}
	for _, kind := range r.Alerts {
		if !slices.Contains(AlertKinds(), kind) {
			return Errorf(Invalid, "alerts: there is no kind %q", Truncate(string(kind), MaxFilter))
		}
	}
	for _, name := range r.Projects {
		if err := CheckProjectName(name); err != nil {
			return Errorf(Invalid, "projects: %s", MessageOf(err))
		}
	}
	if !slices.Contains([]DigestInterval{NoDigest, HourlyDigest, DailyDigest}, r.Digest) {
		return Errorf(Invalid, "digest: must be none, hourly or daily")
	}
	if _, ok := clockMinutes(r.DigestAt); !ok {
		return Errorf(Invalid, "digest_at: must be a time such as 08:00")
	}
	if _, known := ParseZone(r.TimeZone); !known {
		return Errorf(Invalid, "time_zone: must be the name of a time zone, such as Europe/Vienna")
	}
	return r.Quiet.check()
}

// ParseZone returns the time zone of a name such as Europe/Vienna. The machine's own has no name.
func ParseZone(name string) (zone *time.Location, known bool) {
	zone, err := time.LoadLocation(name)
	return zone, err == nil && name != "" && name != "Local"
}

func (q *Quiet) check() error {
	if q == nil {
		return nil
	}
	from, fromOK := clockMinutes(q.From)
	to, toOK := clockMinutes(q.To)
	if !fromOK || !toOK || from == to {
		return Errorf(Invalid, "quiet: from and to must be two times, such as 22:00 and 07:00")
	}
	for _, day := range q.Days {
		if !slices.Contains(weekdays, day) {
			return Errorf(Invalid, "quiet: days must be among mon, tue, wed, thu, fri, sat, sun")
		}
	}
	return nil
}

func clockMinutes(text string) (minutes int, ok bool) {
	t, err := time.Parse("15:04", text)
	return t.Hour()*60 + t.Minute(), err == nil && len(text) == len("15:04")
}

// Zone returns the target's time zone; the system reads it from a file.
func (r *TargetRules) Zone() *time.Location {
	zone, err := time.LoadLocation(r.TimeZone)
	if err != nil { // the zones of this machine lack it
		zone = time.UTC
	}
	return zone
}

// IsQuiet reports whether t, which is in the target's zone, is in its quiet hours.
func (r *TargetRules) IsQuiet(t time.Time) bool {
	if r.Quiet == nil {
		return false
	}
	from, _ := clockMinutes(r.Quiet.From)
	to, _ := clockMinutes(r.Quiet.To)
	now := t.Hour()*60 + t.Minute()
	begins := func(day time.Weekday) bool {
		return len(r.Quiet.Days) == 0 || slices.Contains(r.Quiet.Days, weekdays[day])
	}
	if from < to {
		return from <= now && now < to && begins(t.Weekday())
	}
	return now >= from && begins(t.Weekday()) || now < to && begins((t.Weekday()+6)%7)
}

// LastDigest returns when a digest was last due, at or before t, which is in the target's zone.
func (r *TargetRules) LastDigest(t time.Time) time.Time {
	if r.Digest == HourlyDigest {
		return t.Add(-time.Duration(t.Minute())*time.Minute - time.Duration(t.Second())*time.Second -
			time.Duration(t.Nanosecond()))
	}
	due := atClock(t, r.DigestAt, 0)
	if due.After(t) {
		due = atClock(t, r.DigestAt, -1)
	}
	return due
}

// atClock returns the time HH:MM on t's day, or that many days later.
func atClock(t time.Time, clock string, days int) time.Time {
	minutes, _ := clockMinutes(clock)
	return time.Date(t.Year(), t.Month(), t.Day()+days, minutes/60, minutes%60, 0, 0, t.Location())
}

// Span says in a word or two what a digest is about: the time that quiet hours held back, or that of its rules.
func (r *TargetRules) Span(held bool) string {
	switch {
	case r.Digest == NoDigest && r.Quiet == nil:
		return "What waited"
	case r.Digest == DailyDigest:
		return "The day"
	case r.Digest == HourlyDigest && (!held || r.Quiet == nil):
		return "The hour"
	case r.Quiet != nil && r.Quiet.From > r.Quiet.To: // HH:MM
		return "The night"
	}
	return "The quiet hours"
}

// TellsAt returns when a target is told what happens at t, which is in its zone: later if that waits for a digest or
// for the end of quiet hours, together with everything else waiting.
func (r *TargetRules) TellsAt(t time.Time) time.Time {
	switch r.Digest {
	case HourlyDigest:
		t = r.LastDigest(t).Add(time.Hour)
	case DailyDigest:
		t = r.LastDigest(t).AddDate(0, 0, 1)
	}
	if !r.IsQuiet(t) {
		return t
	}
	end := atClock(t, r.Quiet.To, 0)
	if !end.After(t) {
		end = atClock(t, r.Quiet.To, 1)
	}
	return end
}

// WantsEvent reports whether an event concerns the target; finishes reports whether one has finished its story.
func (r *TargetRules) WantsEvent(e Event, finishes func(Event) bool) bool {
	return r.WantsProject(e.Project) &&
		(slices.Contains(r.Events, e.Type) || slices.Contains(r.Events, Finished) && finishes(e))
}

// Wants reports whether an alert concerns the target t. One that is about no project concerns it whatever its projects
// are, but no target is told that it itself fails.
func (t *Target) Wants(a Alert) bool {
	return slices.Contains(t.Rules.Alerts, a.Kind) && (a.Project == "" || t.Rules.WantsProject(a.Project)) &&
		a.Target != t.ID
}

func (r *TargetRules) WantsProject(name string) bool {
	return r.Projects == nil || slices.Contains(r.Projects, name)
}

// CheckTargetName returns Invalid unless a target may have the name.
func CheckTargetName(name string) error {
	return CheckProjectName(strings.TrimSpace(name))
}
