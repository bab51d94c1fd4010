package api

import (
	"net/http"

	"switchyard/internal/domain"
	"switchyard/internal/web"
	"switchyard/views"
)

// alertJSON is something that needs somebody, as the API shows it: null where it is not about such a thing.
type alertJSON struct {
	Kind      domain.AlertKind `json:"kind"`
	Project   *string          `json:"project"`
	Agent     *string          `json:"agent"`
	StoryID   *string          `json:"story_id"`
	StoryName *string          `json:"story_name"`
	Stage     *string          `json:"stage"`
	Text      string           `json:"text"`
	SinceMS   *int64           `json:"since_ms"`
	Link      string           `json:"link"` // the console's page where it is mended
}

func (a *API) ListAlerts(w http.ResponseWriter, r *http.Request) error {
	_, pipelines := a.service.Pipelines.All(r.Context(), freshPipeline)
	list, err := a.service.Alerts.List(r.Context(), pipelines)
	if err != nil {
		return err
	}
	items := make([]alertJSON, len(list))
	for i, a := range list {
		items[i] = alertJSON{
			Kind: a.Kind, Project: web.OrNull(a.Project), Agent: web.OrNull(a.Agent), Stage: web.OrNull(a.Stage),
			Text: a.Text(), SinceMS: web.OrNull(a.SinceMS), Link: views.AlertURL(a),
		}
		if a.Story != nil {
			items[i].StoryID, items[i].StoryName = &a.Story.StoryID, &a.Story.StoryName
		}
	}
	web.WriteJSON(w, http.StatusOK, struct {
		Items []alertJSON `json:"items"`
	}{items})
	return nil
}
