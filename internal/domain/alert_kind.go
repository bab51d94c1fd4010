package domain

import (
	"net/url"
	"strconv"
	"strings"
)

type AlertKind string

const (
	AlertBlocked     AlertKind = "blocked"       // a story is blocked
	AlertMerge       AlertKind = "merge_failed"  // a story's merge failed
	AlertConflicts   AlertKind = "conflicts"     // what was made for a story in work conflicts with the project's branch
	AlertUnmerged    AlertKind = "unmerged"      // a story is done, but what was made for it is not merged
	AlertStuck       AlertKind = "stuck"         // a story has been in one stage of work for longer than is usual there
	AlertUnreachable AlertKind = "unreachable"   // a project server cannot be reached
	AlertAgentLost   AlertKind = "agent_lost"    // an agent has fallen silent
	AlertAgentFailed AlertKind = "agent_failed"  // an agent's command keeps failing
	AlertBot         AlertKind = "bot_failed"    // the chat bot has failed
	AlertClockAhead  AlertKind = "clock_ahead"   // a project's feed has timestamps far ahead of the gateway's clock
	AlertStore       AlertKind = "store_failed"  // the last write to the store failed
	AlertQuestion    AlertKind = "question"      // somebody asks and waits for an answer
	AlertWaiting     AlertKind = "waiting"       // a coding agent waits for a person, and no open question says so
	AlertFault       AlertKind = "board_fault"   // files of a board cannot be read, or have one id
	AlertBudget      AlertKind = "over_budget"   // a story, or a project today, costs more than people want
	AlertTarget      AlertKind = "target_failed" // messages do not reach a target of notifications
)

// alertKinds are the kinds, most serious first, with their words, SignalStop where work has stopped, and their texts.
var alertKinds = []struct {
	kind   AlertKind
	word   string
	signal Signal
	text   func(Alert) string // without the reason
}{
	{AlertQuestion, "asks", SignalCaution, func(a Alert) string { return a.Agent + " asks" + a.about() }},
	{AlertWaiting, "waits", SignalCaution, func(a Alert) string { return a.Agent + " waits for somebody" + a.about() }},
	{AlertStore, "store failed", SignalStop, func(Alert) string { return "the last write to the database failed" }},
	{AlertUnreachable, "unreachable", SignalStop, func(a Alert) string {
		return "project " + a.Project + " is unreachable"
	}},
	{AlertBlocked, "blocked", SignalStop, func(a Alert) string { return a.story() + " is blocked" }},
	{AlertMerge, "merge failed", SignalCaution, func(a Alert) string { return "merge failed of " + a.story() }},
	{AlertConflicts, "conflicts", SignalCaution, func(a Alert) string {
		return a.story() + " conflicts with " + a.Base
	}},
	{AlertUnmerged, "not merged", SignalCaution, func(a Alert) string {
		return a.story() + " is done, and not on " + a.Base
	}},
	{AlertBot, "bot failed", SignalStop, func(Alert) string { return "the chat bot has failed" }},
	{AlertTarget, "notifications failed", SignalCaution, func(a Alert) string {
		return "notifications do not reach " + a.Agent
	}},
	{AlertAgentFailed, "agent failed", SignalCaution, func(a Alert) string {
		return "the command of agent " + a.Agent + " keeps failing" + a.assigned()
	}},
	{AlertAgentLost, "agent lost", SignalCaution, func(a Alert) string {
		text := "agent " + a.Agent + " is lost" + a.assigned()
		if a.Reason != "" {
			text += ", and holds story " + a.Reason
		}
		return text
	}},
	{AlertFault, "board fault", SignalCaution, func(a Alert) string { return "board of " + a.Project }},
	{AlertClockAhead, "clock ahead", SignalCaution, func(a Alert) string {
		return "the clock of project " + a.Project + " is more than a day ahead"
	}},
	{AlertBudget, "over budget", SignalCaution, func(a Alert) string {
		if a.Story == nil {
			return "project " + a.Project + " is over its budget of the day"
		}
		return a.story() + " is over its budget"
	}},
	{AlertStuck, "stuck", SignalCaution, func(a Alert) string {
		return a.story() + " has been in " + a.StageTitle + " for longer than is usual there"
	}},
}

// StoryAlerts are the kinds that stories on boards have, most serious first.
var StoryAlerts = []AlertKind{AlertBlocked, AlertMerge, AlertConflicts, AlertUnmerged, AlertStuck, AlertBudget}

// Signal returns SignalStop if alerts of this kind mean that work has stopped; others ask for caution.
func (k AlertKind) Signal() Signal { return alertKinds[k.rank()].signal }

// AlertKinds returns all kinds, most serious first.
func AlertKinds() (kinds []AlertKind) {
	for _, k := range alertKinds {
		kinds = append(kinds, k.kind)
	}
	return kinds
}

func (k AlertKind) Word() string { return alertKinds[k.rank()].word }

func (k AlertKind) rank() int {
	for rank := range alertKinds {
		if alertKinds[rank].kind == k {
			return rank
		}
	}
	panic("unknown kind of alert: " + string(k))
}

// Key identifies the alert for as long as it lasts, even if its text changes.
func (a Alert) Key() string {
	if a.Kind == AlertQuestion {
		return string(a.Kind) + "/" + strconv.FormatInt(a.Question, 10)
	}
	parts := []string{string(a.Kind)}
	for _, part := range []string{a.Project, a.AgentID, a.Session, a.Target, a.Fault, a.storyID()} {
		if part != "" {
			parts = append(parts, url.PathEscape(part))
		}
	}
	return strings.Join(parts, "/")
}

func KindOfKey(key string) AlertKind {
	kind, _, _ := strings.Cut(key, "/")
	return AlertKind(kind)
}

func (a Alert) Link() string {
	switch {
	case a.Kind == AlertBot:
		return "/bot-config"
	case a.Kind == AlertStore:
		return "/"
	case a.Kind == AlertTarget:
		return "/notifications"
	case a.Kind == AlertQuestion:
		return "/questions#question-" + strconv.FormatInt(a.Question, 10)
	case a.AgentID != "", a.Session != "":
		return "/agents"
	case a.Story != nil:
		return "/projects/" + url.PathEscape(a.Project) + "/stories/" + url.PathEscape(a.Story.StoryID)
	}
	return "/projects/" + url.PathEscape(a.Project)
}

// Text returns a description in one line, which does not change while the problem stays the same.
func (a Alert) Text() string {
	text := alertKinds[a.Kind.rank()].text(a)
	if a.Reason != "" {
		text += ": " + a.Reason
	}
	return text
}

func (a Alert) about() string {
	switch {
	case a.Story != nil:
		return " about " + a.story()
	case a.Project != "":
		return " in " + a.Project
	}
	return ""
}

func (a Alert) assigned() string {
	if a.Project == "" {
		return ""
	}
	return ", assigned to " + a.Project
}

func (a Alert) story() string { return "story " + a.Story.StoryID + " of " + a.Project }

func (a Alert) storyID() string {
	if a.Story == nil {
		return ""
	}
	return a.Story.StoryID
}
