package api

import (
	"net/http"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/web"
	"switchyard/internal/wire"
)

func (a *API) Search(w http.ResponseWriter, r *http.Request) error {
	query := web.ParseQuery(r)
	limit := query.Number("limit", 20, 1, 50)
	offset := query.Number("offset", 0, 0, domain.MaxSearchOffset)
	if err := query.Err(); err != nil {
		return err
	}
	found, err := a.service.Search.Find(r.Context(), service.SearchQuery{
		Text: query.Get("q"), Offset: int(offset), Limit: int(limit), Texts: true,
	})
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
	type text struct {
		story
		Heading *string `json:"heading"`
		Excerpt string  `json:"excerpt"`
	}
	type total struct {
		Stories  int `json:"stories"`
		Projects int `json:"projects"`
		Agents   int `json:"agents"`
		Texts    int `json:"texts"`
	}
	results := struct {
		Stories  []story    `json:"stories"`
		Projects []named    `json:"projects"`
		Agents   []labelled `json:"agents"`
		Texts    []text     `json:"texts"`
		Total    total      `json:"total"`
	}{[]story{}, []named{}, []labelled{}, []text{}, total(found.Total)}
	for _, s := range found.Stories {
		results.Stories = append(results.Stories, story{s.Project, s.ID, s.Name, wire.OrNull(s.Stage)})
	}
	for _, name := range found.Projects {
		results.Projects = append(results.Projects, named{name})
	}
	for _, agent := range found.Agents {
		results.Agents = append(results.Agents, labelled{agent.ID, agent.Label})
	}
	for _, t := range found.Texts {
		results.Texts = append(results.Texts, text{
			story{t.Project, t.ID, t.Name, wire.OrNull(t.Stage)}, wire.OrNull(t.Heading), t.Excerpt,
		})
	}
	return answer(w, http.StatusOK, results, nil)
}
