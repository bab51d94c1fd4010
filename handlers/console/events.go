package console

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/a-h/templ"

	"switchyard/internal/domain"
	"switchyard/views"
)

const (
	// eventsPage is the number of events on a page.
	eventsPage = 100
	// eventsGrowth is the number of events up to which the newest page may grow while it is open.
	eventsGrowth = 500
)

func (c *Console) Events(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	p := views.EventsProps{
		Filter: views.EventFilter{
			Project: query.Get("project"),
			Type:    domain.EventType(query.Get("type")),
			Text:    query.Get("q"),
		},
		Day: query.Get("day"),
		Now: now(),
	}
	for name, id := range map[string]*int64{"before": &p.Before, "from": &p.From} {
		text := query.Get(name)
		n, err := strconv.ParseInt(text, 10, 64)
		if text != "" && (err != nil || n < 1) {
			return domain.Errorf(domain.Invalid, "%s: must be the id of an event", name)
		}
		*id = n
	}
	if p.Before > 0 {
		return c.olderEvents(w, r, p)
	}
	return c.newestEvents(w, r, p)
}

// newestEvents shows the newest page. Its part keeps the events that the page began with: it goes back to p.From.
func (c *Console) newestEvents(w http.ResponseWriter, r *http.Request, p views.EventsProps) error {
	limit := eventsPage
	if !wantsPart(r) {
		p.From = 0
	}
	if p.From > 0 {
		limit = eventsGrowth
	}
	more, err := c.findEvents(r, &p, limit)
	if err != nil {
		return err
	}
	switch end := len(p.Events) - 1; {
	case p.Failure != "":
	case p.From > 0:
		before := func(e domain.Event) bool { return e.ID < p.From }
		if i := slices.IndexFunc(p.Events, before); i >= 0 {
			p.Events = p.Events[:i]
		} else {
			p.Cut = more && p.Events[len(p.Events)-1].ID > p.From
		}
	case more:
		p.From, p.Older = p.Events[end].ID, p.Events[end].ID
	default:
		p.From = 1
	}
	return c.render(w, r, view{
		frame:      views.Frame{Title: "Events", Page: views.PageEvents},
		part:       views.EventsPart(p),
		pageAround: func(part templ.Component) templ.Component { return views.Events(p, c.projectNames(), part) },
	})
}

// olderEvents shows a page of older events, or, for htmx, only the rows to append to the list.
func (c *Console) olderEvents(w http.ResponseWriter, r *http.Request, p views.EventsProps) error {
	more, err := c.findEvents(r, &p, eventsPage)
	if err != nil {
		return err
	}
	if more {
		p.Older = p.Events[len(p.Events)-1].ID
	}
	return c.render(w, r, view{
		frame:    views.Frame{Title: "Events", Page: views.PageEvents},
		page:     views.Events(p, c.projectNames(), views.OlderEvents(p)),
		fragment: views.OlderEvents(p),
	})
}

// findEvents puts at most limit events into p, or why there are none, and reports whether there are more.
func (c *Console) findEvents(r *http.Request, p *views.EventsProps, limit int) (more bool, err error) {
	page, err := c.service.Events.Page(r.Context(), domain.EventQuery{
		Backward: true, Before: p.Before, Limit: limit,
		Project: p.Filter.Project, Type: p.Filter.Type, Text: p.Filter.Text,
	})
	p.Events = page.Events
	if domain.CodeOf(err) == domain.Unavailable && c.service.Events.AsOf().IsZero() { // the search took too long
		p.Failure, err = domain.MessageOf(err), nil
	}
	return page.More, err
}

func (c *Console) projectNames() []string {
	projects := c.service.Projects.Registry().Projects
	names := make([]string, len(projects))
	for i, project := range projects {
		names[i] = project.Name
	}
	return names
}
