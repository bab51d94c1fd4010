package api

import (
	"net/http"

	"switchyard/internal/web"
	"switchyard/internal/wire"
)

type storyRefJSON struct {
	Project   string  `json:"project"`
	StoryID   string  `json:"story_id"`
	StoryName string  `json:"story_name"`
	Stage     *string `json:"stage"`
}

type nameJSON struct {
	Name string `json:"name"`
}

type agentRefJSON struct {
	ID    string `json:"id"`
	Label string `json:"label"`
}

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
	results := struct {
		Stories  []storyRefJSON `json:"stories"`
		Projects []nameJSON     `json:"projects"`
		Agents   []agentRefJSON `json:"agents"`
	}{[]storyRefJSON{}, []nameJSON{}, []agentRefJSON{}}
	for _, s := range found.Stories {
		results.Stories = append(results.Stories, storyRefJSON{s.Project, s.ID, s.Name, wire.OrNull(s.Stage)})
	}
	for _, name := range found.Projects {
		results.Projects = append(results.Projects, nameJSON{name})
	}
	for _, agent := range found.Agents {
		results.Agents = append(results.Agents, agentRefJSON{agent.ID, agent.Label})
	}
	return answer(w, http.StatusOK, results, nil)
}
