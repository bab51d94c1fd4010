package handlers

import (
	"net/http"
	"time"

	"switchyard/internal/yard"
	"switchyard/views"
)

// latestEvents is how many events a page shows that is not about events.
const latestEvents = 12

func (c *console) overview(w http.ResponseWriter, r *http.Request) error {
	now := time.Now()
	registry, pipelines := c.service.Pipelines(r.Context(), pageAge)
	events, err := c.service.Events(r.Context(), yard.EventQuery{Backward: true, Limit: latestEvents})
	if err != nil {
		return err
	}
	attention, err := c.service.Attention(r.Context(), pipelines)
	if err != nil {
		return err
	}
	p := views.OverviewProps{
		Active:    registry.Active,
		Pipelines: pipelines,
		Attention: attention,
		Events:    events,
		Filter:    r.URL.Query().Get("q"),
		Now:       now,
	}
	if show := views.Show(r.URL.Query().Get("show")); show == views.ShowBusy || show == views.ShowTroubled {
		p.Show = show
	}
	var v version
	v.text(p.Active)
	v.pipelines(pipelines)
	for _, a := range attention { // of stories the pipelines say the rest
		v.text(string(a.Kind), a.Project, a.Agent, a.Reason)
	}
	v.events(events)
	p.Version = v.String()
	return c.render(w, r, view{
		frame:   views.Frame{Title: p.Title(), Page: views.PageOverview},
		version: p.Version,
		page:    views.Overview(p),
		part:    views.OverviewPart(p),
	})
}
