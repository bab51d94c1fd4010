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
	type named = map[string]string
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
	encode := func(s domain.StoryRef) story { return story{s.Project, s.ID, s.Name, wire.OrNull(s.Stage)} }
	return answer(w, http.StatusOK, struct {
		Stories  []story `json:"stories"`
		Projects []named `json:"projects"`
		Agents   []named `json:"agents"`
		Texts    []text  `json:"texts"`
		Total    total   `json:"total"`
	}{
		Stories:  domain.Map(found.Stories, encode),
		Projects: domain.Map(found.Projects, func(name string) named { return named{"name": name} }),
		Agents:   domain.Map(found.Agents, func(a domain.Agent) named { return named{"id": a.ID, "label": a.Label} }),
		Texts: domain.Map(found.Texts, func(t domain.TextRef) text {
			return text{encode(t.StoryRef), wire.OrNull(t.Heading), t.Excerpt}
		}),
		Total: total(found.Total),
	}, nil)
}
