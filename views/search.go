package views

import (
	"strings"
	"time"

	"github.com/a-h/templ"

	"switchyard/internal/domain"
	"switchyard/internal/fold"
)

// FoundKind is a kind of results; "" is all kinds.
type FoundKind string

const (
	FoundAll      FoundKind = ""
	FoundStories  FoundKind = "stories"
	FoundTexts    FoundKind = "texts"
	FoundProjects FoundKind = "projects"
	FoundAgents   FoundKind = "agents"
)

type SearchProps struct {
	Text     string
	Searched bool   // false if there was nothing to search for
	Failure  string // why the search failed, "" if it did not
	domain.SearchResult
	Only    bool                               // without stories that are on no board
	States  map[string]*domain.ProjectPipeline // of the projects
	Overdue map[string]domain.Overdue          // as domain.Alerts.Overdue
	Kind    FoundKind
	Page    int // of one kind; from 1
	Now     time.Time
}

// SearchRows is how many results of one kind are on a page, and how many stories and texts are shown before the others.
const SearchRows, firstStories, firstTexts = 50, 10, 5

// Show sets the results, and keeps those that belong on the page: the first of all kinds, or a page of one kind.
func (p *SearchProps) Show(found domain.SearchResult) {
	shown := func(kind FoundKind, found, first int) int {
		switch p.Kind {
		case FoundAll:
			return min(found, first)
		case kind:
			return found
		}
		return 0
	}
	p.SearchResult = found
	p.Stories = p.Stories[:shown(FoundStories, len(p.Stories), firstStories)]
	p.Texts = p.Texts[:shown(FoundTexts, len(p.Texts), firstTexts)]
	p.Projects = p.Projects[:shown(FoundProjects, len(p.Projects), firstTexts)]
	p.Agents = p.Agents[:shown(FoundAgents, len(p.Agents), firstTexts)]
}

// First returns the address of the best result, "" if nothing was found.
func (p SearchProps) First() string {
	switch {
	case len(p.Stories) > 0:
		return StoryURL(p.Stories[0].Project, p.Stories[0].ID)
	case len(p.Projects) > 0:
		return ProjectURL(p.Projects[0])
	case len(p.Agents) > 0:
		return AgentURL(p.Agents[0].ID)
	case len(p.Texts) > 0:
		return StoryURL(p.Texts[0].Project, p.Texts[0].ID)
	}
	return ""
}

func (p SearchProps) address(kind FoundKind, page int) string {
	now := ""
	if p.Only {
		now = "now"
	}
	return withQuery(SearchURL, "q", p.Text, "kind", string(kind), "board", now, "page", pageNumber(page))
}

// where returns the address of all results, or of those without stories that are on no board.
func (p SearchProps) where(only bool) string {
	p.Only = only
	return p.address(p.Kind, 1)
}

// gone is how many of the stories are on no board.
func (p SearchProps) gone() int { return p.Total.Stories - p.OnBoard }

// projectNote says how a project is doing.
func (p SearchProps) projectNote(name string) (signal Signal, note string) {
	project := p.States[name]
	if project == nil {
		return SignalNone, "project"
	}
	signal, state := projectState(*project, p.Overdue[name])
	if !project.Reachable || project.EventsOnly {
		return signal, state
	}
	return signal, thousands(project.Summary().Working) + " in work · " + state
}

func (p SearchProps) words() []string { return strings.Fields(fold.Text(p.Text)) }

func (p SearchProps) total(kind FoundKind) int {
	t := p.Total
	return map[FoundKind]int{
		FoundAll: t.All(), FoundStories: t.Stories, FoundTexts: t.Texts, FoundProjects: t.Projects, FoundAgents: t.Agents,
	}[kind]
}

// highlight marks the folded words in a text. It is not a template, which would put blanks around them.
func highlight(text string, words []string) templ.Component {
	var b strings.Builder
	at := 0
	for _, span := range fold.Find(text, words) {
		b.WriteString(templ.EscapeString(text[at:span.From]))
		b.WriteString("<mark>" + templ.EscapeString(text[span.From:span.To]) + "</mark>")
		at = span.To
	}
	return templ.Raw(b.String() + templ.EscapeString(text[at:]))
}

func foundStage(s domain.StoryRef) string {
	if s.Stage == "" {
		return "no longer on the board"
	}
	return s.StageTitle
}

func foundState(s domain.StoryRef, overdue domain.Overdue) (signal Signal, trouble string, since time.Time) {
	if s.Item == nil {
		return SignalNone, "", since
	}
	signal, trouble = stateWord(*s.Item, overdue)
	if trouble == "" && s.Finished {
		signal = SignalClear
	}
	return signal, trouble, s.Item.TroubleSince()
}

// foundClass marks stories that are finished, and those that are on no board.
func foundClass(s domain.StoryRef, trouble string) string {
	switch {
	case s.Stage == "":
		return "gone"
	case s.Finished && trouble == "":
		return "finished"
	}
	return ""
}
