package console

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/web"
	"switchyard/views"
)

const (
	// eventsPage is the number of events on a page.
	eventsPage = 100
	// eventsGrowth is the number of events up to which the newest page may grow while it is open.
	eventsGrowth = 500
	// countedEvents is how many events are counted at most for the bars and the sentence above the list.
	countedEvents = 5000
)

var eventScripts = []string{"events.js"}

func (c *Console) Events(w http.ResponseWriter, r *http.Request) error {
	query := web.ParseQuery(r)
	p := views.EventsProps{
		Filter: views.EventFilter{
			Project: query.Get("project"),
			Type:    domain.EventType(query.Get("type")),
			Text:    query.Get("q"),
		},
		Day: query.Get("day"),
		Now: now().In(zone(r)),
	}
	var err error
	if p.Filter.From, p.Filter.To, err = window(query, p.Now.Location()); err != nil {
		return err
	}
	for name, place := range map[string]*views.EventPlace{"before": &p.Before, "since": &p.Since} {
		if text := query.Get(name); text != "" {
			if *place, err = views.ParseEventPlace(text); err != nil {
				return domain.Errorf(domain.Invalid, "%s: must be the time and the id of an event", name)
			}
		}
	}
	if p.Before != (views.EventPlace{}) {
		return c.olderEvents(w, r, p)
	}
	return c.newestEvents(w, r, p)
}

// window returns the times named by the parameters from and to, in Unix milliseconds, 0 for none. They are such
// milliseconds, or dates with times in the zone of the parameter tz or else the gateway's.
func window(query *web.Query, zone *time.Location) (from, to int64, err error) {
	zone = query.Zone(zone)
	if err = query.Err(); err != nil {
		return 0, 0, err
	}
	read := func(name string) int64 {
		text := query.Get(name)
		if text == "" {
			return 0
		}
		if ms, wrong := strconv.ParseInt(text, 10, 64); wrong == nil && ms >= 0 {
			return ms
		}
		for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05", time.DateOnly} {
			if t, wrong := time.ParseInLocation(layout, text, zone); wrong == nil && t.UnixMilli() >= 0 {
				return t.UnixMilli()
			}
		}
		err = domain.Errorf(domain.Invalid, "%s: must be a date with a time, or Unix milliseconds", name)
		return 0
	}
	from, to = read("from"), read("to")
	if to == 0 && query.Get("to") != "" {
		to = 1 // nothing was before 1970
	}
	return from, to, err
}

// newestEvents shows the newest page. Its part keeps the events that the page began with: it goes back to p.Since.
func (c *Console) newestEvents(w http.ResponseWriter, r *http.Request, p views.EventsProps) error {
	limit := eventsPage
	if !wantsPart(r) {
		p.Since = views.EventPlace{}
	}
	if p.Since.ID > 0 {
		limit = eventsGrowth
	}
	more, err := c.findEvents(r, &p, limit)
	if err != nil {
		return err
	}
	switch end := len(p.Events) - 1; {
	case p.Failure != "":
	case p.Since.ID > 0:
		p.Cut = p.KeepSince() && more
	case more:
		p.Older = views.PlaceOf(p.Events[end].Event)
		p.Since = p.Older
	default:
		p.Since = views.EventPlace{ID: 1}
	}
	if p.Told, err = c.told.get(p, c.service.Events.LastID(), func() (views.EventCounts, error) {
		return c.countEvents(r, p)
	}); err != nil {
		return err
	}
	return c.render(w, r, view{
		frame: views.Frame{Title: p.Title(), Sheet: "logs.css", Page: views.PageEvents, Scripts: eventScripts},
		page:  views.Events(p, c.projectNames()),
		part:  views.EventsPart(p),
	})
}

// countCache keeps counts until another event comes or another minute begins: each open page asks every two seconds.
type countCache struct {
	mu    sync.Mutex
	since [2]int64 // the newest event, and the minute
	told  map[views.EventFilter]views.EventCounts
}

func (t *countCache) get(
	p views.EventsProps, last int64, count func() (views.EventCounts, error),
) (views.EventCounts, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if since := [2]int64{last, p.Now.Unix()}; t.since != since || len(t.told) > 100 {
		t.since, t.told = since, map[views.EventFilter]views.EventCounts{}
	}
	key := p.Filter
	key.Text = p.Now.Location().String() // counts are of all texts, hours the reader's
	if _, known := t.told[key]; !known {
		told, err := count()
		if err != nil {
			return told, err
		}
		t.told[key] = told
	}
	return t.told[key], nil
}

// countEvents counts the events of the last two days, and those of the window that the filter names.
func (c *Console) countEvents(r *http.Request, p views.EventsProps) (told views.EventCounts, err error) {
	q := p.Filter.Query()
	q.Text = "" // bars and counts ignore it
	q.From, q.To = views.CountFrom(p.Now).UnixMilli(), 0
	recent, more, err := c.service.Events.Newest(r.Context(), q, countedEvents)
	if err != nil {
		return told, c.tolerateUnavailable(err)
	}
	told.CountHours(recent, p.Now)
	if p.Filter.From == 0 && p.Filter.To == 0 && p.Filter.Type == "" {
		told.CountWindow(recent, more, c.service.Pipelines.Finishes)
		return told, nil
	}
	q.Type, q.Finished = "", false
	if p.Filter.From > 0 || p.Filter.To > 0 {
		q.From, q.To = p.Filter.From, p.Filter.To
	}
	events, more, err := c.service.Events.Newest(r.Context(), q, countedEvents)
	told.CountWindow(events, more, c.service.Pipelines.Finishes)
	return told, c.tolerateUnavailable(err)
}

// tolerateUnavailable returns nil for a search that took too long: the page shows the rest.
func (c *Console) tolerateUnavailable(err error) error {
	if domain.CodeOf(err) == domain.Unavailable && c.service.Events.AsOf().IsZero() {
		return nil
	}
	return err
}

// olderEvents shows a page of older events, or, for htmx, only the rows to append to the list.
func (c *Console) olderEvents(w http.ResponseWriter, r *http.Request, p views.EventsProps) error {
	more, err := c.findEvents(r, &p, eventsPage)
	if err != nil {
		return err
	}
	if more {
		p.Older = views.PlaceOf(p.Events[len(p.Events)-1].Event)
	}
	return c.render(w, r, view{
		frame:    views.Frame{Title: p.Title(), Sheet: "logs.css", Page: views.PageEvents, Scripts: eventScripts},
		page:     views.Events(p, c.projectNames()),
		fragment: views.OlderEvents(p),
	})
}

// findEvents puts at most limit events into p, or why there are none, and reports whether there are more.
func (c *Console) findEvents(r *http.Request, p *views.EventsProps, limit int) (more bool, err error) {
	q := p.Filter.Query()
	q.Before, q.BeforeAt, q.Limit = p.Before.ID, p.Before.At, limit
	page, err := c.service.Events.Page(r.Context(), q)
	if err == nil {
		slices.Reverse(page.Events)
		p.Events, err = c.service.Events.WithAuthors(r.Context(), page.Events)
		domain.Credit(p.Events, c.service.Pipelines.Past)
		slices.Reverse(p.Events)
	}
	p.Agents = c.agentLabels()
	if err != nil && c.tolerateUnavailable(err) == nil { // the search took too long
		p.Failure, err = domain.MessageOf(err), nil
	}
	return page.More, err
}

func (c *Console) agentLabels() map[string]bool {
	labels := map[string]bool{}
	for _, a := range c.service.Agents.All() {
		labels[a.Label] = true
	}
	return labels
}

func (c *Console) projectNames() []string {
	return domain.Map(c.service.Projects.Registry().Projects, func(p domain.Project) string { return p.Name })
}
