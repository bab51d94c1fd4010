package console

import (
	"net/http"
	"strconv"

	"switchyard/internal/domain"
	"switchyard/views"
)

// latestEvents is how many events a page shows that is not about events.
const latestEvents = 12

// Overview is the page of all projects.
func (c *Console) Overview(w http.ResponseWriter, r *http.Request) error {
	filter := r.URL.Query().Get("q")
	if err := domain.CheckFilter("q", filter); err != nil {
		return err
	}
	s, err := c.service.Overview.Snapshot(r.Context())
	if err != nil {
		return err
	}
	latest, err := c.service.Events.Page(r.Context(), domain.EventQuery{Backward: true, Limit: latestEvents})
	if err != nil {
		return err
	}
	p := views.OverviewProps{
		Active:    s.Registry.Active,
		Pipelines: s.Pipelines,
		Alerts:    s.Alerts,
		Events:    latest.Events,
		Charts:    s.Charts, Together: s.Together, Agents: s.Agents,
		FirstSteps: c.firstSteps(s),
		Filter:     filter,
		Now:        now(),
	}
	if show := views.Show(r.URL.Query().Get("show")); show == views.ShowBusy || show == views.ShowTroubled {
		p.Show = show
	}
	p.Page, _ = strconv.Atoi(r.URL.Query().Get("page")) // what is no number is the first one
	return c.render(w, r, view{
		frame:      views.Frame{Title: p.Title(), Page: views.PageOverview},
		part:       views.OverviewPart(p),
		pageAround: views.Overview,
	})
}
