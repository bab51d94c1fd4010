package console

import (
	"net/http"

	"switchyard/internal/web"
	"switchyard/views"
)

// digestEvents is how many events the page of a digest shows.
const digestEvents = 1000

// Digest is the page of what a target was told at once.
func (c *Console) Digest(w http.ResponseWriter, r *http.Request) error {
	digest, events, err := c.service.Deliveries.Digest(r.Context(), web.PathParam(r, "id"), digestEvents+1)
	if err != nil {
		return err
	}
	p := views.DigestProps{Digest: digest, Zone: digest.Rules.Zone(), Events: events, Now: now()}
	if p.Before, err = c.service.Deliveries.LastDigest(r.Context(), digest.Target, digest.At); err != nil {
		return err
	}
	if p.Usual, p.Others, err = c.service.Deliveries.Usual(r.Context(), digest); err != nil {
		return err
	}
	cost := c.service.Costs.Sentence
	if p.Cost, err = cost(r.Context(), digest.Began(p.Zone), digest.At, digest.Rules.Projects); err != nil {
		return err
	}
	if p.Told, err = c.service.Deliveries.DigestDelivery(r.Context(), digest); err != nil {
		return err
	}
	if p.More = len(events) > digestEvents; p.More {
		p.Events = events[:digestEvents]
	}
	for _, alert := range c.service.Overview.Snapshot(r.Context()).Alerts.Items {
		for _, told := range digest.Alerts {
			if alert.Key() == told.Key {
				p.Open = append(p.Open, alert)
			}
		}
	}
	p.InlineActions.Failed = c.failedMerges(r, p.Open)
	return c.render(w, r, view{
		frame: views.Frame{Title: p.Title(), Sheet: "yard.css", Page: views.PageNotify}, page: views.Digest(p),
	})
}
