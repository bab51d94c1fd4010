package console

import (
	"net/http"
	"strconv"
	"strings"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/views"
)

// Search is the page of results, or htmx's fragment of it. With open=1 it redirects to the first result.
func (c *Console) Search(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	p := views.SearchProps{Text: query.Get("q"), Kind: views.FoundKind(query.Get("kind")), Page: 1, Now: now()}
	p.Only = query.Get("board") != ""
	if err := domain.CheckFilter("q", p.Text); err != nil {
		return err
	}
	switch p.Kind {
	case views.FoundAll, views.FoundStories, views.FoundTexts, views.FoundProjects, views.FoundAgents:
	default:
		return domain.Errorf(domain.Invalid, "kind: must be stories, texts, projects or agents")
	}
	if page, err := strconv.Atoi(query.Get("page")); err == nil && p.Kind != views.FoundAll {
		p.Page = min(max(1, page), domain.MaxSearchOffset/views.SearchRows+1)
	}
	if p.Searched = strings.TrimSpace(p.Text) != ""; p.Searched {
		found, err := c.service.Search.Find(r.Context(), service.SearchQuery{
			Text: p.Text, Offset: (p.Page - 1) * views.SearchRows, Limit: views.SearchRows, Texts: true, OnBoard: p.Only,
		})
		if domain.CodeOf(err) == domain.Unavailable {
			p.Failure, err = domain.MessageOf(err), nil
		}
		if err != nil {
			return err
		}
		p.Show(found)
		snapshot := c.service.Overview.Snapshot(r.Context())
		p.Overdue, p.States = snapshot.Alerts.Overdue, map[string]*domain.ProjectPipeline{}
		for _, name := range p.Projects {
			if i, known := snapshot.Registry.Index(name); known {
				p.States[name] = &snapshot.Pipelines[i]
			}
		}
	}
	if first := p.First(); first != "" && query.Get("open") == "1" {
		return seeOther(w, r, first)
	}
	return c.render(w, r, view{
		frame: views.Frame{Title: views.TitleWith("Search", p.Text), Sheet: "logs.css"},
		page:  views.Search(p), fragment: views.Found(p),
	})
}
