package console

import (
	"net/http"

	"switchyard/internal/web"
	"switchyard/views"
)

// Wall is the page of a wall display. By now a token in its address has become a cookie, and is removed from it.
func (c *Console) Wall(w http.ResponseWriter, r *http.Request) error {
	if r.URL.Query().Has(web.WallToken) {
		w.Header().Set("Cache-Control", "no-store")
		http.Redirect(w, r, views.WallURL, http.StatusSeeOther)
		return nil
	}
	s := c.service.Overview.Snapshot(r.Context())
	latest, err := c.service.Events.Latest(r.Context(), "", latestEvents)
	if err != nil {
		return err
	}
	p := views.WallProps{
		Order: trackOrder(s), Alerts: s.Alerts, Events: latest,
		Together: s.Together, Agents: s.Agents, Owners: s.Owners, Now: now(),
	}
	return c.render(w, r, view{
		frame: views.Frame{Title: p.Title(), Wall: true, Sheet: "wall.css"}, part: views.WallPart(p),
	})
}
