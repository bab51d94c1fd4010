package views

import (
	"regexp"
	"slices"
	"strings"

	"switchyard/internal/domain"
)

// auditVerbs begin the sentence about a change; what was changed follows.
var auditVerbs = map[domain.Action]string{
	domain.ProjectAdded: "Added the project", domain.ProjectChanged: "Changed the project",
	domain.ProjectRemoved: "Removed the project", domain.ProjectRestored: "Restored the project",
	domain.ProjectSwitched: "Made active", domain.ProjectToolCalled: "Called a tool of",
	domain.StoryCreated: "Created", domain.StoryChanged: "Changed", domain.StoryClaimed: "Claimed",
	domain.StoryReleased: "Released", domain.ReviewMade: "Reviewed", domain.StoryMerged: "Merged",
	domain.QuestionWasAsked: "Asked about", domain.QuestionWasAnswered: "Answered about",
	domain.QuestionWasWithdrawn: "Withdrew a question about", domain.AlertAcknowledged: "Acknowledged",
	domain.AlertReopened: "Reopened", domain.JoinTokenCreated: "Made the join token",
	domain.JoinTokenRevoked: "Revoked the join token", domain.AgentJoined: "Joined as",
	domain.AgentAssigned: "Assigned", domain.AgentLabelled: "Renamed", domain.AgentRemoved: "Removed the agent",
	domain.BotConfigured: "Saved the bot configuration for", domain.BotTested: "Sent a test message over",
	domain.TeamTold: "Told the team about",
	domain.SignedIn: "Signed in at the", domain.SignedOut: "Signed out of the",
	domain.TargetCreated: "Made the target", domain.TargetChanged: "Changed the target",
	domain.TargetRemoved: "Removed the target", domain.TargetTested: "Tested the target",
	domain.TargetSecretChanged: "Changed the secret of", domain.TargetResent: "Sent again to",
	domain.TokenCreated: "Made the token", domain.TokenRevoked: "Revoked the token",
	domain.SessionBegan: "Logged in:", domain.SessionEnded: "Ended the session of",
}

// auditChange is a part of an entry's detail: a field with its value before and after, or a text without a field.
type auditChange struct{ field, before, after string }

var fieldName = regexp.MustCompile(`^[a-z][a-z0-9_ ]{0,30}$`)

// auditChanges splits the detail of an entry. before is "" if only one value is known.
func auditChanges(e domain.AuditEntry) (list []auditChange) {
	for part := range strings.SplitSeq(e.Detail, "; ") {
		c := auditChange{after: part}
		if name, value, found := strings.Cut(part, ": "); found && fieldName.MatchString(name) {
			c = auditChange{field: strings.ReplaceAll(name, "_", " "), after: value}
		}
		if before, after, found := strings.Cut(c.after, " → "); found {
			c.before, c.after = before, after
		}
		if part != "" {
			list = append(list, c)
		}
	}
	return list
}

// auditShown returns the changes that an entry's line shows: ids and rules are in what unfolds.
func auditShown(list []auditChange) (shown []auditChange, more int) {
	for _, c := range list {
		if c.field != "id" && c.field != "rules" {
			shown = append(shown, c)
		}
	}
	first, rest := split(shown, 2)
	return first, len(rest)
}

// verb begins the sentence about an entry. A change of a story is named after what it changed.
func (e AuditLine) verb() string {
	if e.Action == domain.StoryChanged {
		for _, c := range auditChanges(e.AuditEntry) {
			switch {
			case c.field == "stage" && c.before != c.after:
				return "Moved"
			case c.field == "blocked" && c.after == "none":
				return "Unblocked"
			case c.field == "blocked":
				return "Blocked"
			case c.field == "merge failure":
				return "Retried the merge of"
			}
		}
	}
	if verb, known := auditVerbs[e.Action]; known {
		if start, isAbout := strings.CutSuffix(verb, " about"); isAbout && e.Subject == "" {
			return strings.TrimSuffix(start, " a question") + " a question"
		}
		return verb
	}
	return actionWords(e.Action)
}

// AuditLine is an entry with the names of what it is about.
type AuditLine struct {
	domain.AuditEntry
	By      string // the name of who made the change
	Project string // of the story, "" for any other subject
	Story   domain.StoryRef
}

func sameAuthor(a, b AuditLine) bool { return a.Who == b.Who && a.Via == b.Via && a.Role == b.Role }

// isAlike reports whether two entries say the same about different things: agents' tokens each come from their agent.
func isAlike(a, b AuditLine) bool {
	isOwn := a.Action == domain.TokenCreated && a.Via == domain.ViaAgent && b.Via == domain.ViaAgent
	return a.verb() == b.verb() && (isOwn || sameAuthor(a, b))
}

// auditRuns groups neighbours that say the same about different things, if there are at least three.
func auditRuns(entries []AuditLine) (runs [][]AuditLine) {
	for len(entries) > 0 {
		first, n := entries[0], 1
		for n < len(entries) && isAlike(entries[n], first) {
			n++
		}
		if n < 3 {
			n = 1
		}
		runs, entries = append(runs, entries[:n]), entries[n:]
	}
	return runs
}

// auditTotals are the numbers of a day's entries; cut means that another page has more of them.
func auditTotals(entries []AuditLine, cut bool) string {
	text := domain.Count(len(entries), "change", "changes")
	if cut {
		return text + " on this page"
	}
	by := map[string]bool{}
	for _, e := range entries {
		by[e.Who] = true
	}
	return text + " by " + thousands(len(by))
}

func (p AuditProps) authors() []AuditAuthor {
	who := p.Filter.Who
	if who == "" || slices.ContainsFunc(p.Authors, func(a AuditAuthor) bool { return a.Who == who }) {
		return p.Authors
	}
	return append(slices.Clone(p.Authors), AuditAuthor{Who: who, Name: who})
}
