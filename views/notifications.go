package views

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchyard/internal/domain"
)

// Addresses of the forms that belong to a target.
func TargetURL(id string) string { return NotificationsURL + "/" + url.PathEscape(id) }

func targetDoURL(id, what string) string { return TargetURL(id) + "/" + what }

// DigestURL returns the address of a digest's page.
func DigestURL(id string) string { return NotificationsURL + "/digests/" + url.PathEscape(id) }

// NotificationsProps are the data of the Notifications page.
type NotificationsProps struct {
	Targets  []TargetRow
	Log      string // the id of the target whose whole log is shown
	Form     *TargetForm
	Given    GivenToken // the secret of a webhook, shown once
	Projects []string   // to choose from
	Zone     string     // the gateway's time zone
	Now      time.Time
}

// TargetRow is a target with what happened to its messages.
type TargetRow struct {
	domain.Target
	Shown      string // its address without secrets
	Hours      []domain.DeliveryHour
	Waiting    int // messages, while it fails
	WaitsMore  bool
	Deliveries []domain.Delivery // newest first
	LastDigest *domain.DigestRecord
}

func (p NotificationsProps) address() string { return withQuery(NotificationsURL, "log", p.Log) }

func (p NotificationsProps) facts() []fact {
	sent, waiting, at, day := 0, 0, 0, dayOfTime(p.Now)
	for _, t := range p.Targets {
		for _, h := range t.Hours {
			if !h.Hour.Before(day) {
				sent += h.Sent
			}
		}
		if waiting += t.Waiting; t.Waiting > 0 {
			at++
		}
	}
	list := []fact{{name: "Delivered today", value: thousands(sent)}, {name: "Waiting", value: thousands(waiting)}}
	if at > 0 {
		list[1].beside = "for " + domain.Count(at, "target", "targets")
	}
	return list
}

func dayOfTime(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, t.Location())
}

// words is a text, some of it bold.
type words struct {
	text string
	bold bool
}

// targetSays is what a target gets, in one sentence.
func targetSays(r domain.TargetRules) (list []words) {
	plain := func(text string) { list = append(list, words{text, false}) }
	bold := func(text string) { list = append(list, words{text, true}) }
	enumerate := func(names []string, add func(string)) {
		for i, name := range names {
			switch {
			case i == 0:
			case i == len(names)-1:
				plain(" and ")
			default:
				plain(", ")
			}
			add(name)
		}
	}
	var kinds []string
	for _, kind := range r.Events {
		kinds = append(kinds, eventWord(kind))
	}
	for _, kind := range r.Alerts {
		kinds = append(kinds, alertWord(kind))
	}
	if len(kinds) == 0 {
		return []words{{"Nothing yet: no event and no alert is chosen.", false}}
	}
	kinds[0] = upper(kinds[0])
	enumerate(kinds, bold)
	plain(" of ")
	if names := r.Projects; names == nil {
		plain("all projects")
	} else {
		shown, rest := split(names, 3)
		shown = slices.Clone(shown)
		if len(rest) > 0 {
			shown = append(shown, strconv.Itoa(len(rest))+" more")
		}
		enumerate(shown, func(name string) { bold(domain.Cut(name, 60)) })
	}
	switch r.Digest {
	case domain.HourlyDigest:
		plain(", ")
		bold("once an hour")
		plain(", if anything did.")
	case domain.DailyDigest:
		plain(", ")
		bold("once a day")
		plain(" at " + r.DigestAt + ".")
	default:
		plain(", each as it begins.")
	}
	if q := r.Quiet; q != nil {
		text := " Quiet from " + q.From + " to " + q.To
		if len(q.Days) > 0 && len(q.Days) < 7 {
			text += " on nights of " + strings.Join(q.Days, ", ")
		}
		plain(text + "; what still stands then comes at " + q.To + ".")
	}
	if r.TimeZone != "" && (r.Quiet != nil || r.Digest == domain.DailyDigest) {
		plain(" (" + r.TimeZone + ")")
	}
	return list
}

func eventWord(kind domain.EventType) string {
	switch kind {
	case domain.StageTransition:
		return "moves"
	case domain.StoryBlocked:
		return "blocks"
	case domain.MergeFailure:
		return "failed merges"
	case domain.FeedGap:
		return "gaps"
	}
	return domain.Cut(string(kind), 60)
}

func alertWord(kind domain.AlertKind) string {
	switch {
	case kind == domain.AlertQuestion:
		return "questions"
	case !slices.Contains(domain.AlertKinds(), kind): // from a form that is refused
		return domain.Cut(string(kind), 60)
	}
	return kind.Word()
}

func alertWords(kinds []domain.AlertKind) string {
	words := make([]string, len(kinds))
	for i, kind := range kinds {
		words[i] = alertWord(kind)
	}
	return strings.Join(words, ", ")
}

// state says how a target is.
func (t TargetRow) state() (Signal, string) {
	p := t.Progress
	switch {
	case !t.Enabled && p.Gone:
		return SignalCaution, "Switched off by its receiver (410)"
	case !t.Enabled:
		return SignalNone, "Off"
	case !p.FailingAt.IsZero():
		return SignalStop, "Failing"
	case p.SentAt.IsZero():
		return SignalNone, "Nothing sent yet"
	}
	return SignalClear, "Delivered"
}

// mark is something on the axis of a day, in percent of it.
type mark struct {
	at, width  float64
	many, lost bool
	words      string
}

// quietHours returns the quiet parts of the day of now.
func (t TargetRow) quietHours(now time.Time) (list []mark) {
	const step = 15 * time.Minute
	day := dayOfTime(now)
	for i := range int(24 * time.Hour / step) {
		at := float64(i) * 100 * float64(step) / float64(24*time.Hour)
		width := 100 * float64(step) / float64(24*time.Hour)
		if !t.Rules.IsQuiet(day.Add(time.Duration(i) * step)) {
			continue
		}
		if n := len(list); n > 0 && list[n-1].at+list[n-1].width > at-0.01 {
			list[n-1].width += width
		} else {
			list = append(list, mark{at: at, width: width})
		}
	}
	return list
}

// marks are the hours of today in which messages were sent or refused.
func (t TargetRow) marks(now time.Time) (list []mark) {
	day := dayOfTime(now)
	for _, h := range t.Hours {
		at := 100 * float64(h.Hour.Sub(day)+30*time.Minute) / float64(24*time.Hour)
		if at < 0 || at > 100 {
			continue
		}
		hour := h.Hour.In(now.Location()).Format("15:04") + ": "
		if h.Sent > 0 {
			list = append(list, mark{at: at, many: h.Sent > 1, words: hour + thousands(h.Sent) + " sent"})
		}
		if h.Failed > 0 {
			list = append(list, mark{at: at, lost: true, words: hour + thousands(h.Failed) + " refused"})
		}
	}
	return list
}

// says is the day in words.
func (t TargetRow) says(now time.Time) string {
	list := []string{}
	for _, m := range t.marks(now) {
		list = append(list, m.words)
	}
	if len(list) == 0 {
		return "Today: nothing sent"
	}
	return "Today: " + strings.Join(list, ", ")
}

// nowAt is how much of the day is over, in percent.
func nowAt(now time.Time) float64 {
	return 100 * float64(now.Sub(dayOfTime(now))) / float64(24*time.Hour)
}
