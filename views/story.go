package views

import (
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/markdown"
)

// MaxReason is the longest reason or name that a form takes, in characters.
const MaxReason = 500

func storyName(s domain.Story) string {
	if strings.TrimSpace(s.Name) == "" {
		return s.ID
	}
	return s.Name
}

// What moves a story on; a page shows one of these as its primary action.
const (
	actMove   = "move"
	actClaim  = "claim"
	actPrompt = "prompt"
	actReview = "review"
	actMerge  = "merge"
)

// primary returns what moves the story on, "" if the page has it elsewhere: an answer, or what clears its trouble.
func (p StoryProps) primary(ctx context.Context) string {
	writable := mayWrite(ctx, p.Story)
	switch {
	case p.asks() || writable && (p.Story.Blocked != "" || p.Story.MergeFailure != ""):
		return ""
	case dueReview(p) != nil && may(ctx, domain.RoleOperator):
		return actReview
	case mergeable(ctx, p) != nil:
		return actMerge
	case writable && p.next() != nil:
		return actMove
	case p.isFinished() || p.Story.Stage == "":
		return ""
	case may(ctx, domain.RoleOperator) && p.Owner.Name == "":
		return actClaim
	}
	return actPrompt
}

// mayWrite reports whether the reader can change the story's file.
func mayWrite(ctx context.Context, s domain.Story) bool {
	return canWrite(s) && may(ctx, domain.RoleOperator)
}

func blockID(s domain.Story) string { return elementID("block", s.File.Version) }

func (p StoryProps) asks() bool {
	return slices.ContainsFunc(p.Asks, func(q QuestionProps) bool { return q.State == domain.QuestionOpen })
}

// blockIsQuestion reports whether an open question, shown above, says what blocks the story.
func (p StoryProps) blockIsQuestion() bool {
	return slices.ContainsFunc(p.Asks, func(q QuestionProps) bool {
		return q.State == domain.QuestionOpen && q.Prompt == p.Story.Blocked
	})
}

func (p StoryProps) Title() string { return domain.Cut(storyName(p.Story), 80) }

// canWrite reports whether the story's project server accepts changes to it.
func canWrite(s domain.Story) bool { return s.File != nil && s.File.Writable }

// mergeFailedSince returns when the story's merge last failed, zero if the stream does not say.
func mergeFailedSince(s domain.Story) time.Time {
	for _, e := range slices.Backward(s.History) {
		if e.Type == domain.MergeFailure {
			return eventTime(e.Event)
		}
	}
	return time.Time{}
}

func lastLines(detail string, most int) string {
	lines := strings.Split(strings.TrimRight(detail, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}

func countWord(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// storyHTML returns the story's text, and whether its check boxes are the story's tasks.
func storyHTML(s domain.Story) (html string, hasTasks bool) {
	if s.File == nil {
		return "", false
	}
	html, boxes := markdown.HTML(s.File.Body, "/api/gateway/projects/"+url.PathEscape(s.Project)+"/stories/"+
		url.PathEscape(s.ID)+"/picture?path=")
	same := func(box string, t domain.Task) bool { return box == t.Text }
	return html, len(boxes) > 0 && slices.EqualFunc(boxes, s.File.Tasks, same)
}

// storyPrompt returns the story as a task for an agent: what a person has seen on the page, and no more.
func storyPrompt(s domain.Story, html string) string {
	var b strings.Builder
	b.WriteString("Work on the story " + strconv.Quote(markdown.Visible(storyName(s))) + " (" + s.ID +
		") of the project " + s.Project + ".\n")
	if s.Stage != "" {
		b.WriteString("It is in the stage " + s.Stage + ".\n")
	}
	if s.Blocked != "" {
		b.WriteString("It is blocked: " + s.Blocked + "\n")
	}
	if s.MergeFailure != "" {
		b.WriteString("Its merge failed: " + s.MergeFailure + "\n")
	}
	if s.File == nil {
		return markdown.Visible(b.String())
	}
	b.WriteString("Its file is " + s.File.Path + " in the directory of work items.\n")
	const most = 4000 // characters; an agent can read the rest in the file
	body := strings.TrimSpace(markdown.Text(html))
	shown := domain.Truncate(body, most)
	if shown != "" {
		b.WriteString("\n" + shown + "\n")
	}
	if len(body) > len(shown) || s.File.BodyCut {
		b.WriteString("\n(The rest is in the file.)\n")
	}
	return markdown.Visible(b.String())
}

type field struct{ name, value string }

// shownElsewhere are the keys of front matter that a story's page shows elsewhere.
var shownElsewhere = []string{"name", "blocked", "blocked_reason", "merge_failure"}

func frontMatter(text json.RawMessage) []field {
	const most, longest = 30, 200
	var mapping map[string]json.RawMessage
	if json.Unmarshal(text, &mapping) != nil {
		return nil
	}
	var fields []field
	for name, value := range mapping {
		if words := fieldWords(value); words != "" && !slices.Contains(shownElsewhere, name) {
			fields = append(fields, field{domain.Cut(name, 40), domain.Cut(words, longest)})
		}
	}
	slices.SortFunc(fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
	return fields[:min(most, len(fields))]
}

// fieldWords returns a value as people write it: a string without quotes, a list of strings with commas.
func fieldWords(value json.RawMessage) string {
	var word string
	if json.Unmarshal(value, &word) == nil {
		return word // null is ""
	}
	var list []json.RawMessage
	if json.Unmarshal(value, &list) == nil {
		text := func(one json.RawMessage) string { return string(bytes.Trim(one, `"`)) }
		return strings.Join(domain.Map(list, text), ", ")
	}
	return string(value)
}

type entry struct {
	signal      Signal
	title, text string
	at          time.Time
	after       string // how long it was in the stage before
	by          string // who did it, and how; "" if not through the gateway
}

// author says who caused an event through the gateway or committed it, "" if unknown.
func author(e domain.PastEvent) string {
	how := map[domain.Channel]string{
		domain.ChannelConsole: " in the console", domain.ChannelAPI: " over the API", domain.ChannelMCP: " over MCP",
		domain.ChannelBot: " in chat", domain.ChannelGit: " in git",
	}[e.Via]
	if how == "" {
		return ""
	}
	return "by " + domain.Cut(e.By, 60) + how
}

func timeline(ctx context.Context, p StoryProps) []entry {
	s := p.Story
	var entries []entry
	moved := map[int64]bool{}
	for _, e := range s.History {
		kind, d := e.Type.Kind(), e.Details()
		reason, _ := lastLine(d.Reason)
		n := entry{
			signal: signal(kind.Signal), title: upper(domain.StageWordsOf(ctx).Describe(e.Event, d)),
			text: reason, at: eventTime(e.Event), by: author(e),
		}
		if e.Type == domain.StageTransition {
			moved[e.At.UnixMilli()] = true
			for _, visit := range s.Visits {
				if visit.Stage == d.FromStage && visit.To.Equal(e.At) {
					n.after = " · after " + duration(visit.To.Sub(visit.From))
				}
			}
		}
		entries = append(entries, n)
	}
	for _, visit := range s.Visits {
		if !moved[visit.From.UnixMilli()] && !visit.From.IsZero() {
			came := entry{signal: SignalNone, title: "Came to " + p.stageTitle(visit.Stage), at: visit.From}
			if visit.Source == domain.FromGit {
				came.text = "from git"
			}
			entries = append(entries, came)
		}
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return a.at.Compare(b.at) })
	slices.Reverse(entries)
	return entries
}
