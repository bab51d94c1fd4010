package api

import (
	"net/http"

	"switchyard/internal/web"
	"switchyard/internal/wire"
)

func (a *API) Search(w http.ResponseWriter, r *http.Request) error {
	query := web.ParseQuery(r)
	limit := query.Number("limit", 20, 1, 50)
	if err := query.Err(); err != nil {
		return err
	}
	found, err := a.service.Search.Find(r.Context(), query.Get("q"), int(limit))
	if err != nil {
		return err
	}
	type story struct {
		Project   string  `json:"project"`
		StoryID   string  `json:"story_id"`
		StoryName string  `json:"story_name"`
		Stage     *string `json:"stage"`
	}
	type named struct {
		Name string `json:"name"`
	}
	type labelled struct {
		ID    string `json:"id"`
		Label string `json:"label"`
	}
	results := struct {
		Stories  []story    `json:"stories"`
		Projects []named    `json:"projects"`
		Agents   []labelled `json:"agents"`
	}{[]story{}, []named{}, []labelled{}}
	for _, s := range found.Stories {
		results.Stories = append(results.Stories, story{s.Project, s.ID, s.Name, wire.OrNull(s.Stage)})
	}
	for _, name := range found.Projects {
		results.Projects = append(results.Projects, named{name})
	}
	for _, agent := range found.Agents {
		results.Agents = append(results.Agents, labelled{agent.ID, agent.Label})
	}
	return answer(w, http.StatusOK, results, nil)
}
