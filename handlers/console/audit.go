package console

import (
	"math"
	"net/http"

	"switchyard/internal/domain"
	"switchyard/internal/web"
	"switchyard/views"
)

// auditPage is the number of entries on a page of the audit log.
const auditPage = 50

func (c *Console) Audit(w http.ResponseWriter, r *http.Request) error {
	query := web.ParseQuery(r)
	p := views.AuditProps{
		Filter: views.AuditFilter{Who: query.Get("who"), Action: domain.Action(query.Get("action")), Text: query.Get("q")},
		Now:    now(),
	}
	q := domain.AuditQuery{Limit: auditPage, Who: p.Filter.Who, Action: p.Filter.Action, Text: p.Filter.Text}
	if query.Get("before") != "" {
		q.Before = query.Number("before", 0, 0, math.MaxInt64)
	}
	if err := query.Err(); err != nil {
		return err
	}
	page, err := c.service.Audit.Page(r.Context(), q)
	if err != nil {
		return err
	}
	if p.Entries = page.Entries; page.More {
		p.Older = page.Entries[len(page.Entries)-1].ID
	}
	return c.render(w, r, view{frame: views.Frame{Title: "Audit", Page: views.PageAudit}, page: views.Audit(p)})
}
