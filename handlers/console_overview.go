package handlers

import (
	"net/http"
	"time"

	"switchyard/internal/domain"
	"switchyard/views"
)

// latestEvents is how many events a page shows that is not about events.
const latestEvents = 12

func (c *console) overview(w http.ResponseWriter, r *http.Request) error {
	s, err := c.look(r)
	if err != nil {
		return err
	}
	v := c.version()
	v.number(int64(s.version), c.service.Events.LastID())
	if unchanged(w, r, v.String()) {
		return nil
	}
	page, err := c.service.Events.Page(r.Context(), domain.EventQuery{Backward: true, Limit: latestEvents})
	if err != nil {
		return err
	}
	p := views.OverviewProps{
		Version:          v.String(),
		Fragments:        c.fragments,
		Active:           s.registry.Active,
		Pipelines:        s.pipelines,
		Changes:          s.changes,
		Attention:        s.attention,
		AttentionVersion: s.attentionVersion,
		Events:           page.Events,
		Finished:         s.finished,
		Filter:           r.URL.Query().Get("q"),
		Now:              time.Now(),
	}
	if show := views.Show(r.URL.Query().Get("show")); show == views.ShowBusy || show == views.ShowTroubled {
		p.Show = show
	}
	return c.render(w, r, view{
		frame:   views.Frame{Title: p.Title(), Page: views.PageOverview},
		version: p.Version,
		page:    views.Overview(p),
		part:    views.OverviewPart(p),
	})
}
