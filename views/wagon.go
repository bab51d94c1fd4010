package views

import (
	"cmp"
	"fmt"

	"switchyard/internal/domain"
)

// wagon is a story on a track.
type wagon struct {
	domain.Item
	signal  Signal
	state   string               // in words, "" for no trouble
	overdue domain.AlertKind     // trouble that comes from time alone, "" for none
	asks    string               // "asks" or "waits" if the agent working on it waits for a person
	agent   string               // the label of the agent working on it
	says    string               // the last line of its output
	session *domain.AgentSession // the one working on it, nil for none or if asks says it
}

// order returns the wagon's rank: what waits for a person and trouble first, then stories that agents work on.
func (w wagon) order() int {
	if w.asks != "" {
		return -1
	}
	if order := w.signal.order(); order < SignalNone.order() || w.agent != "" {
		return order
	}
	return SignalNone.order() + 1
}

func (w wagon) word() string {
	kind, _ := w.Trouble()
	switch kind = cmp.Or(kind, w.overdue); {
	case w.asks != "":
		return w.asks
	case kind != "":
		return kind.Word()
	case w.agent != "":
		return "works"
	}
	return ""
}

// note is the second line of a wagon: what is wrong with the story, or who works on it, and how many criteria are met.
func (w wagon) note() string {
	note := "nobody works on it"
	switch {
	case w.asks != "" && w.agent != "":
		note = w.agent + " " + w.asks
	case w.asks != "":
		note = w.asks
	case w.state != "":
		note = domain.Cut(w.state, 90)
	case w.agent != "":
		note = w.agent + " works"
	}
	if c := w.Criteria; c != nil && c.Total > 0 {
		note += fmt.Sprintf(" · %d of %d criteria", c.Done, c.Total)
	}
	if at := w.Work; at != nil && at.Added+at.Removed > 0 {
		note += " · +" + thousands(at.Added) + " −" + thousands(at.Removed)
	}
	return visible(note)
}

// words says what a wagon's colour and position show, to precede its age.
func (w wagon) words() string {
	asks := ""
	if w.asks != "" {
		asks = upper(w.asks) + "; "
	}
	in := "in this stage for "
	if w.SinceAtLeast {
		in += "over "
	}
	switch {
	case w.Blocked != "" || w.MergeFailure != "":
		return asks + domain.Cut(w.state, 90) + "; for "
	case w.state != "":
		return asks + domain.Cut(w.state, 90) + "; " + in
	}
	return asks + in
}
