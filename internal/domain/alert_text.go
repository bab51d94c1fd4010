package domain

import (
	"net/url"
	"strings"
)

// Key identifies the alert for as long as it lasts, even if its text changes.
func (a Alert) Key() string {
	parts := []string{string(a.Kind)}
	for _, part := range []string{a.Project, a.AgentID, a.storyID()} {
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
	case a.AgentID != "":
		return "/agents"
	case a.Story != nil:
		return "/projects/" + url.PathEscape(a.Project) + "/stories/" + url.PathEscape(a.Story.StoryID)
	}
	return "/projects/" + url.PathEscape(a.Project)
}

// Text returns a description in one line, which does not change while the problem stays the same.
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
		text = a.story() + " has been in " + StageTitle(a.Stage) + " for longer than is usual there"
	case AlertBot:
		text = "the chat bot has failed"
	case AlertAgentLost, AlertAgentFailed:
		text = "agent " + a.Agent + " is lost"
		if a.Kind == AlertAgentFailed {
			text = "the command of agent " + a.Agent + " keeps failing"
		}
		if a.Project != "" {
			text += ", assigned to " + a.Project
		}
	case AlertClockAhead:
		text = "the clock of project " + a.Project + " is more than a day ahead"
	case AlertStore:
		text = "the last write to the database failed"
	}
	if a.Reason != "" {
		text += ": " + a.Reason
	}
	return text
}

func (a Alert) story() string { return "story " + a.Story.StoryID + " of " + a.Project }

func (a Alert) storyID() string {
	if a.Story == nil {
		return ""
	}
	return a.Story.StoryID
}
