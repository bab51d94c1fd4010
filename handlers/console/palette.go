package console

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"switchyard/internal/domain"
	"switchyard/internal/fold"
	"switchyard/internal/service"
	"switchyard/views"
)

const (
	// How many options of a kind the palette shows.
	paletteStories, paletteTexts, paletteOthers = 8, 3, 4
	// maxStoryWords is how many words may name the story that a verb is for.
	maxStoryWords = 6
)

// palette makes the options for one text.
type palette struct {
	c       *Console
	r       *http.Request
	s       *service.Snapshot
	here    string // the page from which it was opened
	project string // of that page, "" for none
	story   string // the story chosen, or else that of the page, "" for none
	groups  []views.PaletteGroup
}

func (c *Console) Palette(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	text := strings.TrimSpace(query.Get("q"))
	for _, name := range []string{"q", "project", "story"} {
		if err := domain.CheckFilter(name, query.Get(name)); err != nil {
			return err
		}
	}
	p := &palette{c: c, r: r, s: c.service.Overview.Snapshot(r.Context()), here: localPath(query.Get("here"))}
	p.project, p.story = placeOf(p.here)
	if project, story := query.Get("project"), query.Get("story"); project != "" && story != "" {
		p.project, p.story = project, story
	}
	if err := p.fill(r.Context(), text); err != nil {
		return err
	}
	props := views.PaletteProps{Text: text, Groups: p.groups}
	w.Header().Set("Cache-Control", "no-store")
	return c.writeFragment(w, r, views.PaletteList(props))
}

// placeOf returns the project and the story of a page's address, "" for none.
func placeOf(path string) (project, story string) {
	u, err := url.Parse(path)
	if err != nil {
		return "", ""
	}
	parts := strings.Split(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
	if len(parts) < 2 || "/"+parts[0] != views.ProjectsURL {
		return "", ""
	}
	project, _ = url.PathUnescape(parts[1]) // its escapes were parsed
	if len(parts) == 4 && parts[2] == "stories" {
		story, _ = url.PathUnescape(parts[3])
	}
	return project, story
}

func (p *palette) add(title, beside string, options ...views.PaletteOption) {
	if len(options) > 0 {
		p.groups = append(p.groups, views.PaletteGroup{Title: title, Beside: beside, Options: options})
	}
}

func (p *palette) fill(ctx context.Context, text string) error {
	words := strings.Fields(text)
	if len(words) == 0 {
		if p.story != "" {
			if err := p.storyActs(ctx, "", nil); err != nil {
				return err
			}
		}
		p.add("Go to", "", p.pages(nil)...)
		alerts := p.alerts(nil)
		p.add("Needs attention", domain.Thousands(p.s.Alerts.Open), alerts[:min(len(alerts), paletteOthers)]...)
		p.add("Make active", "", p.switches(nil)...)
		return nil
	}
	verb, rest := strings.ToLower(words[0]), words[1:]
	if len(rest) > 0 && strings.EqualFold(rest[0], "to") {
		rest = rest[1:]
	}
	folded := strings.Fields(fold.Text(strings.Join(rest, " ")))
	switch verb {
	case "switch":
		p.add("Make active", "", p.switches(folded)...)
	case "assign":
		p.add("Assign an agent", "", p.assignments(folded)...)
	case "acknowledge", "ack":
		p.add("Needs attention", "", p.alerts(folded)...)
	case "answer":
		list := p.answers(folded, func(q domain.Question) bool {
			return has(folded, q.Prompt, q.By, q.StoryID, q.Project, strconv.FormatInt(q.ID, 10))
		})
		p.add("Questions", "", list[:min(len(list), paletteStories)]...)
	case "move", "block", "unblock":
		if err := p.storyVerb(ctx, verb, rest); err != nil {
			return err
		}
	case "open", "go":
		if len(rest) > 0 {
			text = strings.Join(rest, " ")
		}
	}
	return p.find(ctx, text)
}

// find adds what a search finds.
func (p *palette) find(ctx context.Context, text string) error {
	words := strings.Fields(fold.Text(text))
	if len(words) == 0 {
		return nil
	}
	found, err := p.c.service.Search.Find(ctx, service.SearchQuery{
		Text: text, Limit: paletteStories, Texts: len(text) > 1,
	})
	if err != nil {
		return err
	}
	shown := func(n, total int) string {
		if n == total {
			return ""
		}
		return domain.Thousands(n) + " of " + domain.Thousands(total)
	}
	var stories, texts, others []views.PaletteOption
	for _, s := range found.Stories {
		stories = append(stories, views.PaletteStory(s, p.s.Alerts.Overdue[s.Project], words))
	}
	p.add("Stories", shown(len(stories), found.Total.Stories), stories...)
	for _, t := range found.Texts {
		byName := slices.ContainsFunc(found.Stories, func(s domain.StoryRef) bool {
			return s.Project == t.Project && s.ID == t.ID
		})
		if !byName && len(texts) < paletteTexts {
			texts = append(texts, views.PaletteText(t, words))
		}
	}
	p.add("In texts", shown(len(texts), found.Total.Texts), texts...)
	for _, name := range found.Projects[:min(len(found.Projects), paletteOthers)] {
		others = append(others, views.PaletteOpen(name, "project", views.ProjectURL(name), words))
	}
	for _, a := range found.Agents[:min(len(found.Agents), paletteOthers)] {
		others = append(others, views.PaletteOpen(a.Label, "agent", views.AgentURL(a.ID), words))
	}
	p.add("Projects and agents", "", others...)
	p.add("Go to", "", p.pages(words)...)
	p.add("Do", "", p.switches(words)...)
	if total := found.Total.All(); total > 0 {
		p.add("Search", "", views.PaletteSearch("all "+domain.Count(total, "result", "results"), text, "as a page"))
	}
	if found.Suggestion != "" {
		p.add("Nothing has this name", "", views.PaletteSearch("results", found.Suggestion, "Did you mean this?"))
	}
	return nil
}

func has(words []string, texts ...string) bool {
	text := fold.Text(strings.Join(texts, "\n"))
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
}

func (p *palette) may(role domain.Role) bool { return domain.ActorOf(p.r.Context()).Role.Allows(role) }

// pages are pages with the words in their names; without words, those that the navigation does not show anyway.
func (p *palette) pages(words []string) (list []views.PaletteOption) {
	for _, page := range views.Pages {
		shown := len(words) == 0 && page.In == views.InNavigation
		if !shown && p.may(page.Needs) && has(words, string(page.Page)) {
			o := views.PaletteOpen(string(page.Page), page.Note, page.URL, words)
			o.Key = page.Key
			list = append(list, o)
		}
	}
	return list
}

func (p *palette) switches(words []string) (list []views.PaletteOption) {
	if !p.may(domain.RoleOperator) {
		return nil
	}
	for i := range p.s.Pipelines {
		project := &p.s.Pipelines[i]
		if project.Project != p.s.Registry.Active && has(words, project.Project) && len(list) < paletteOthers {
			list = append(list, views.PaletteSwitch(project, p.s.Alerts.Overdue[project.Project], p.here, words))
		}
	}
	return list
}

func (p *palette) alerts(words []string) (list []views.PaletteOption) {
	for _, a := range p.s.Alerts.Items {
		if len(list) == paletteStories {
			break
		}
		name := []string{a.Project, a.Agent, a.Stage, a.Kind.Word()}
		if a.Story != nil {
			name = append(name, a.Story.StoryID, a.Story.StoryName)
		}
		if a.Acknowledged == nil && a.Kind != domain.AlertQuestion && has(words, name...) {
			list = append(list, p.operators(views.PaletteAlert(a, p.here, words, now())))
		}
	}
	return list
}

const onlyOperators = "Only operators can do this."

// answers are the open questions of a kind.
func (p *palette) answers(words []string, are func(domain.Question) bool) (list []views.PaletteOption) {
	for _, q := range p.c.service.Questions.Recent() {
		if q.State == domain.QuestionOpen && are(q) {
			list = append(list, views.PaletteAnswer(q, words))
		}
	}
	return list
}

// assignments are pairs of agents and projects: each of the words is in the name of one of the two.
func (p *palette) assignments(words []string) (list []views.PaletteOption) {
	words = slices.DeleteFunc(slices.Clone(words), func(word string) bool { return word == "to" })
	projects := append([]string{p.project, p.s.Registry.Active}, p.c.projectNames()...)
	for _, a := range p.c.service.Agents.All() {
		// The words that are not in the agent's name are the project's.
		rest := slices.DeleteFunc(slices.Clone(words), func(word string) bool { return has([]string{word}, a.Label) })
		if len(words) > 0 && len(rest) == len(words) && a.Project != "" {
			continue // only a project is named: that takes an agent that is free
		}
		seen := map[string]bool{"": true, a.Project: true}
		for _, project := range projects {
			if len(list) == paletteStories {
				return list
			}
			if !seen[project] && has(rest, project) {
				seen[project] = true
				list = append(list, p.operators(views.PaletteAssign(a, project, words)))
			}
		}
		if none := len(rest) == 1 && strings.HasPrefix("none", rest[0]); a.Project != "" && none {
			list = append(list, p.operators(views.PaletteAssign(a, "", words)))
		}
	}
	return list
}

func (p *palette) operators(o views.PaletteOption) views.PaletteOption {
	if !p.may(domain.RoleOperator) {
		return o.Cannot(onlyOperators)
	}
	return o
}
