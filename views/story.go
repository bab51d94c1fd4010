package views

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"switchyard/internal/domain"
)

// MaxReason is the longest reason or name that a form takes, in characters.
const MaxReason = 500

// storyName is the story's name, or its id where it has none.
func storyName(s domain.Story) string {
	if strings.TrimSpace(s.Name) == "" {
		return s.ID
	}
	return s.Name
}

// Title is the page's title.
func (p StoryProps) Title() string { return cut(storyName(p.Story), 80) }

// alertControls are what can be done about the story's alert, nil when it is of another kind.
func (p StoryProps) alertControls(kind domain.AlertKind) templ.Component {
	if p.Alert == nil || p.Alert.Kind != kind {
		return nil
	}
	return alertControls(*p.Alert, StoryURL(p.Story.Project, p.Story.ID), p.Now)
}

// canWrite reports whether the story's project server takes changes of it.
func canWrite(s domain.Story) bool { return s.File != nil && s.File.Writable }

// mergeFailedSince is when the story's merge failed last, zero where the stream does not know.
func mergeFailedSince(s domain.Story) time.Time {
	for _, e := range slices.Backward(s.History) {
		if e.Type == domain.MergeFailure {
			return eventTime(e)
		}
	}
	return time.Time{}
}

// step is a stage on a story's way.
type step struct {
	stage  string
	past   bool // the story is beyond it
	been   bool // it was there
	here   bool
	since  time.Time // when it came here
	signal Signal    // of the story, where it is
	text   string    // how long it was there, and how long others are
}

// journey is the way of a story through the stages of its project, and those that only its history knows.
func journey(p StoryProps) []step {
	s := p.Story
	stages := slices.Clone(p.Stages)
	spent, blocked := map[string]time.Duration{}, map[string]time.Duration{}
	for _, stay := range s.Stays {
		if !slices.Contains(stages, stay.Stage) {
			stages = append(stages, stay.Stage)
		}
		if !stay.To.IsZero() {
			spent[stay.Stage] += stay.To.Sub(stay.From)
			blocked[stay.Stage] += stay.Blocked
		}
	}
	if s.Stage != "" && !slices.Contains(stages, s.Stage) {
		stages = append(stages, s.Stage)
	}
	at := slices.Index(stages, s.Stage) // -1 when it is on no board
	steps := make([]step, len(stages))
	for i, stage := range stages {
		long, been := spent[stage]
		st := step{stage: stage, past: i < at, been: been, here: i == at, signal: SignalNone}
		var words []string
		if st.here {
			st.since = s.Since
			st.signal, words = stateWord(s)
			if been {
				words = append(words, duration(long)+" before")
			}
		} else if been {
			words = append(words, duration(long))
		}
		if blocked[stage] >= minBlocked {
			words = append(words, "blocked for "+duration(blocked[stage]))
		}
		for _, u := range p.Usual {
			if u.Stage == stage && u.Stays > 0 {
				words = append(words, "usually "+duration(u.Median))
			}
		}
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], " ", "\u00a0")
		}
		if st.text = strings.Join(words, " · "); st.text != "" && !st.since.IsZero() {
			st.text = " · " + st.text
		}
		steps[i] = st
	}
	return steps
}

// minBlocked is how long a story was blocked in a stage before that is mentioned.
const minBlocked = time.Minute

func stateWord(s domain.Story) (Signal, []string) {
	switch {
	case s.Blocked != "":
		return SignalStop, []string{"blocked"}
	case s.MergeFailure != "":
		return SignalCaution, []string{"merge failed"}
	}
	return SignalNone, nil
}

// entry is something that happened to a story.
type entry struct {
	signal      Signal
	title, text string
	at          time.Time
	after       string // how long it was in the stage before
}

// timeline is what happened to a story, the newest first.
func timeline(s domain.Story) []entry {
	var entries []entry
	moved := map[int64]bool{}
	for _, e := range s.History {
		d := e.Details()
		n := entry{signal: SignalNone, at: eventTime(e)}
		switch e.Type {
		case domain.StageTransition:
			moved[e.At.UnixMilli()] = true
			n.title = domain.StageTitle(d.FromStage) + " → " + domain.StageTitle(d.ToStage)
			for _, stay := range s.Stays {
				if stay.Stage == d.FromStage && stay.To.Equal(e.At) {
					n.after = " · after " + duration(stay.To.Sub(stay.From))
				}
			}
		case domain.StoryBlocked:
			n.signal, n.title, n.text = SignalStop, "Blocked", d.Reason
		case domain.MergeFailure:
			n.signal, n.title, n.text = SignalCaution, "Merge failed", d.Reason
		default:
			n.title = cut(string(e.Type), 100)
		}
		entries = append(entries, n)
	}
	for _, stay := range s.Stays {
		if !moved[stay.From.UnixMilli()] && !stay.From.IsZero() {
			entries = append(entries, entry{signal: SignalNone, title: "Came to " + domain.StageTitle(stay.Stage), at: stay.From})
		}
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return a.at.Compare(b.at) })
	slices.Reverse(entries)
	return entries
}

// clockText is a time of day, with the day unless that is today.
func clockText(at, now time.Time) string {
	switch {
	case at.Format(time.DateOnly) == now.Format(time.DateOnly):
		return "today " + at.Format("15:04")
	case at.Year() == now.Year():
		return at.Format("2 Jan 15:04")
	}
	return at.Format("2 Jan 2006 15:04")
}

// storyPrompt is the story as a task for an agent.
func storyPrompt(s domain.Story) string {
	var b strings.Builder
	b.WriteString("Work on the story " + strconv.Quote(storyName(s)) + " (" + s.ID + ") of the project " + s.Project + ".\n")
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
		return b.String()
	}
	b.WriteString("Its file is " + s.File.Path + " in the directory of work items.\n")
	const most = 4000 // characters; an agent can read the rest in the file
	body := []rune(s.File.Body)
	if len(body) > 0 {
		b.WriteString("\n" + string(body[:min(most, len(body))]) + "\n")
	}
	if len(body) > most || s.File.BodyCut {
		b.WriteString("\n(The rest is in the file.)\n")
	}
	return b.String()
}

// lastLines are at most that many lines of an agent's detail, the last ones.
func lastLines(detail string, most int) string {
	lines := strings.Split(strings.TrimRight(detail, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}

// shortHash is as much of a commit's hash as people use.
func shortHash(hash string) string {
	const length = 8
	return hash[:min(length, len(hash))]
}

// countWord is the form of a noun that goes with n.
func countWord(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// field is a key of a story's front matter.
type field struct{ name, value string }

// shownElsewhere are the keys of front matter that a story's page has a place of its own for.
var shownElsewhere = []string{"name", "blocked", "blocked_reason", "merge_failure"}

// frontMatter returns what else a story's front matter says, by name.
func frontMatter(text json.RawMessage) []field {
	const most, longest = 30, 200
	var mapping map[string]json.RawMessage
	if json.Unmarshal(text, &mapping) != nil {
		return nil
	}
	var fields []field
	for name, value := range mapping {
		if words := fieldWords(value); words != "" && !slices.Contains(shownElsewhere, name) {
			fields = append(fields, field{cut(name, 40), cut(words, longest)})
		}
	}
	slices.SortFunc(fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
	return fields[:min(most, len(fields))]
}

// fieldWords is a value as people write it: a string without quotes, a list of them with commas.
func fieldWords(value json.RawMessage) string {
	var word string
	if json.Unmarshal(value, &word) == nil {
		return word // null is ""
	}
	var list []json.RawMessage
	if json.Unmarshal(value, &list) == nil {
		words := make([]string, len(list))
		for i := range list {
			words[i] = string(bytes.Trim(list[i], `"`))
		}
		return strings.Join(words, ", ")
	}
	return string(value)
}
