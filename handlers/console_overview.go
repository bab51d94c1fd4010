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
	p := views.OverviewProps{
		Active:    registry.Active,
		Pipelines: pipelines,
		Attention: yard.FindAttention(pipelines, now),
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
	v.number(int64(len(p.Attention))) // time makes stories stuck
	v.events(events)
	p.Version = v.String()
	return c.render(w, r, view{
		frame:   views.Frame{Title: p.Title(), Page: views.PageOverview},
		version: p.Version,
		page:    views.Overview(p),
		part:    views.OverviewPart(p),
	})
}
