package api

import (
	"math"
	"net/http"

	"switchyard/internal/domain"
	"switchyard/internal/web"
	"switchyard/internal/wire"
)

// maxAuditPage is the most entries that a page of the audit log has.
const maxAuditPage = 200

type auditJSON struct {
	ID        int64         `json:"id"`
	AtMS      int64         `json:"at_ms"`
	Who       string        `json:"who"`
	Via       domain.Via    `json:"via"`
	Role      *domain.Role  `json:"role"` // null where the change required none
	Action    domain.Action `json:"action"`
	Subject   string        `json:"subject"`
	Detail    string        `json:"detail"`
	RequestID *string       `json:"request_id"`
}

// ListAudit lists who changed what, newest first.
func (a *API) ListAudit(w http.ResponseWriter, r *http.Request) error {
	query := web.ParseQuery(r)
	q := domain.AuditQuery{Limit: int(query.Number("limit", 50, 1, maxAuditPage))}
	if query.Get("before") != "" {
		q.Before = query.Number("before", 0, 0, math.MaxInt64)
	}
	if err := query.Err(); err != nil {
		return err
	}
	page, err := a.service.Audit.Page(r.Context(), q)
	if err != nil {
		return err
	}
	next := q.Before
	entries := domain.Map(page.Entries, func(e domain.AuditEntry) auditJSON {
		next = e.ID
		return auditJSON{
			e.ID, e.At.UnixMilli(), e.Who, e.Via, wire.OrNull(e.Role), e.Action, e.Subject, e.Detail,
			wire.OrNull(e.RequestID),
		}
	})
	return answer(w, http.StatusOK, map[string]any{"entries": entries, "next": next}, nil)
}
