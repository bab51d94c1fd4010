package views

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"switchyard/internal/domain"
)

// PaletteURL is the address of the palette's options.
const PaletteURL = "/palette"

type PaletteProps struct {
	Text   string // as typed
	Groups []PaletteGroup
}

// PaletteGroup is a group of options.
type PaletteGroup struct {
	Title   string
	Beside  string // "" for nothing
	Options []PaletteOption
}

// PaletteOption is something to find or to do. What it does is in URL, Form, Fill or Story; an option with Why only
// says why it cannot be done.
type PaletteOption struct {
	Verb   string
	Number string
	Name   string
	Note   string // the second line
	Words  []string
	Signal Signal           // "" for none
	Key    string           // after g, does the same from everywhere
	Ref    *domain.StoryRef // the story that it is about: Tab offers what can be done with it

	URL  string            // opens it
	Post string            // sends Form there
	Form map[string]string // fields
	Fill string            // completes the text to this
	Why  string            // why it cannot be done
}

func (o PaletteOption) does() bool { return o.URL != "" || o.Post != "" || o.Fill != "" }

func PaletteStory(s domain.StoryRef, overdue domain.Overdue, words []string) PaletteOption {
	signal, trouble, _ := foundState(s, overdue)
	o := PaletteOf("Open", s, words)
	o.URL, o.Signal = StoryURL(s.Project, s.ID), signal
	if trouble != "" {
		o.Note += " · " + trouble
	}
	return o
}

// PaletteOf is an option about a story that does nothing yet.
func PaletteOf(verb string, s domain.StoryRef, words []string) PaletteOption {
	name := storyName(domain.Story{ID: s.ID, Name: s.Name})
	return PaletteOption{
		Verb: verb, Number: number(s.ID, name), Name: domain.Cut(name, 200), Words: words, Ref: &s,
		Note: domain.Cut(s.Project, 80) + " · " + foundStage(s),
	}
}

// PaletteText is the option that opens a story whose text has the words.
func PaletteText(t domain.TextRef, words []string) PaletteOption {
	o := PaletteOf("Open", t.StoryRef, words)
	o.URL, o.Note, o.Signal = StoryURL(t.Project, t.ID), domain.Cut(t.Excerpt, 160)+" · "+o.Note, "signal-text"
	return o
}

// paletteAct is the option that changes a story through its page's form.
func paletteAct(
	verb string, s domain.StoryRef, version string, fields map[string]string, words []string,
) PaletteOption {
	o := PaletteOf(verb, s, words)
	o.Post, o.Form = StoryURL(s.Project, s.ID), fields
	fields["version"] = version
	return o
}

func PaletteMove(s domain.Story, stages []domain.Stage, to int, usual []domain.StageTime, words []string, now time.Time,
) PaletteOption {
	ref := domain.StoryRef{Project: s.Project, ID: s.ID, Name: s.Name, Stage: s.Stage}
	ref.StageTitle = domain.StageWord(stages, s.Stage)
	fields := map[string]string{"do": "move", "stage": stages[to].Name, "was": s.Stage}
	o := paletteAct("Move to", ref, s.File.Version, fields, words)
	o.Number, o.Name = "", stages[to].Title()
	from := slices.IndexFunc(stages, func(stage domain.Stage) bool { return stage.Name == s.Stage })
	if from < 0 {
		from = to
	}
	switch {
	case to < from:
		o.Note = "back, " + domain.Count(from-to, "stage", "stages")
	case to == from+1:
		o.Note = "from " + stages[from].Title()
		if !s.Since.IsZero() {
			o.Note += ", where it has been for " + ageAtLeast(now, s.Since, s.SinceAtLeast)
		}
		if text := usually(usual, s.Stage); text != "" {
			o.Note += " · " + text
		}
	default:
		var skipped []string
		for i := from + 1; i < to; i++ {
			skipped = append(skipped, stages[i].Title())
		}
		o.Note = "skips " + strings.Join(skipped, ", ")
	}
	return o
}

// ReasonFirst is why a block cannot be made yet.
const ReasonFirst = "Type the reason."

func PaletteBlock(s domain.StoryRef, version, was, reason string) PaletteOption {
	o := paletteAct("Block", s, version, map[string]string{"do": "block", "reason": reason, "was": was}, nil)
	o.Signal = SignalStop
	if reason == "" {
		o.Post, o.Why, o.Note = "", ReasonFirst, ReasonFirst
	} else {
		o.Note = "because: " + domain.Cut(reason, 120)
	}
	return o
}

func PaletteUnblock(s domain.StoryRef, version, was string, words []string) PaletteOption {
	o := paletteAct("Unblock", s, version, map[string]string{"do": "unblock", "was": was}, words)
	o.Signal = SignalStop
	if was == "" {
		return o.Cannot("It is not blocked.")
	}
	last, _ := lastLine(was)
	o.Note += " · " + domain.Cut(last, 120)
	return o
}

// Cannot returns the option as one that only says why it cannot be done.
func (o PaletteOption) Cannot(why string) PaletteOption {
	o.Why, o.Note, o.URL, o.Post, o.Fill, o.Signal = why, why, "", "", "", ""
	return o
}

// AlertStory is the story of an alert that has one.
func AlertStory(a domain.Alert) domain.StoryRef {
	return domain.StoryRef{
		Project: a.Project, ID: a.Story.StoryID, Name: a.Story.StoryName, Stage: a.Stage, StageTitle: a.StageTitle,
	}
}

func PaletteAlert(a domain.Alert, next string, words []string, now time.Time) PaletteOption {
	o := PaletteOption{
		Verb: "Acknowledge", Name: alertTitle(a), Words: words, Note: alertWhere(a), Signal: signal(a.Kind.Signal()),
		Post: AcknowledgeURL, Form: map[string]string{"key": a.Key(), "for": "", "next": next},
	}
	if a.Story != nil {
		o.Number = number(a.Story.StoryID, cmp.Or(a.Story.StoryName, a.Story.StoryID))
		ref := AlertStory(a)
		o.Ref = &ref
	}
	if at, atLeast := a.ShownSince(); !at.IsZero() {
		o.Note += " · for " + ageAtLeast(now, at, atLeast)
	}
	return o
}

func PaletteAnswer(q domain.Question, words []string) PaletteOption {
	return PaletteOption{
		Verb: "Answer", Name: "question " + id(q.ID) + " of " + visible(domain.Cut(q.By, 60)), Words: words,
		Note: visible(domain.Cut(q.Prompt, 160)), URL: QuestionsURL + "#" + QuestionProps{Question: q}.id(),
		Signal: SignalCaution,
	}
}

func PaletteSwitch(p *domain.ProjectPipeline, overdue domain.Overdue, next string, words []string) PaletteOption {
	signal, state := projectState(*p, overdue)
	if !p.Reachable {
		signal, state = SignalStop, "not reachable"
	}
	return PaletteOption{
		Verb: "Switch to", Name: domain.Cut(p.Project, 200), Words: words, Note: "project · " + state, Signal: signal,
		Post: SwitchURL, Form: map[string]string{"project": p.Project, "next": next},
	}
}

func PaletteAssign(a domain.RegisteredAgent, project string, words []string) PaletteOption {
	signal, state := agentState(a)
	o := PaletteOption{
		Verb: "Assign", Name: domain.Cut(a.Label, 100) + " to " + cmp.Or(domain.Cut(project, 100), "no project"),
		Words: words, Note: state + " · not assigned", Signal: signal,
		Post: AssignAgentURL(a.ID), Form: map[string]string{"project": project},
	}
	if a.Project != "" {
		o.Note = state + " · now on " + domain.Cut(a.Project, 80)
	}
	return o
}

// PaletteOpen is the option that opens a page.
func PaletteOpen(name, note, url string, words []string) PaletteOption {
	return PaletteOption{Verb: "Open", Name: domain.Cut(name, 200), Note: note, URL: url, Words: words}
}

// PaletteSearch is the option that opens all results of a search for a text; before is the start of its name.
func PaletteSearch(before, text, note string) PaletteOption {
	return PaletteOpen(before+" for “"+text+"”", note, SearchProps{Text: text}.address(FoundAll, 1), nil)
}
