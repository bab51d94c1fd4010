package console

import (
	"net/http"

	"switchyard/internal/domain"
	"switchyard/views"
)

// Waiting shows all stories in work by their age as a multiple of what is usual in their stage.
func (c *Console) Waiting(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	p := views.WaitingProps{
		Filter: views.WaitingFilter{
			Project: query.Get("project"), Stage: query.Get("stage"), Show: views.WaitingShow(query.Get("show")),
		},
		Names: c.projectNames(), Now: now(),
	}
	for name, text := range map[string]string{"project": p.Filter.Project, "stage": p.Filter.Stage} {
		if err := domain.CheckFilter(name, text); err != nil {
			return err
		}
	}
	s := c.service.Overview.Snapshot(r.Context())
	p.Use(domain.WaitingLongest(s.Pipelines, p.Now), s.Owners)
	return c.render(w, r, view{
		frame: views.Frame{Title: "Waiting longest"}, part: views.WaitingPart(p),
		pageAround: views.Waiting,
	})
}
