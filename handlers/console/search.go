package console

import (
	"net/http"
	"strings"

	"switchyard/internal/domain"
	"switchyard/views"
)

// How many results of each kind are shown: on the page, and below the header's field while the reader types.
const (
	searchResults = 50
	findResults   = 8
)

// Search is the page of results, and the list below the header's field. With open=1 it redirects to the first result.
func (c *Console) Search(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	p := views.SearchProps{Text: query.Get("q")}
	if err := domain.CheckFilter("q", p.Text); err != nil {
		return err
	}
	if p.Searched = strings.TrimSpace(p.Text) != ""; p.Searched {
		limit := searchResults
		if wantsPart(r) {
			limit = findResults
		}
		found, err := c.service.Search.Find(r.Context(), p.Text, limit)
		if domain.CodeOf(err) == domain.Unavailable {
			p.Failure, err = domain.MessageOf(err), nil
		}
		if err != nil {
			return err
		}
		p.Stories, p.Projects, p.Agents = found.Stories, found.Projects, found.Agents
	}
	if first := p.First(); first != "" && query.Get("open") == "1" {
		return seeOther(w, r, first)
	}
	return c.render(w, r, view{
		frame: views.Frame{Title: views.TitleWith("Search", p.Text)}, page: views.Search(p), fragment: views.Found(p),
	})
}
