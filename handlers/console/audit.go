package console

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/web"
	"switchyard/views"
)

// auditPage is the number of entries on a page of the audit log.
const auditPage = 50

func (c *Console) Audit(w http.ResponseWriter, r *http.Request) error {
	filter, q, err := auditQuery(r)
	if err != nil {
		return err
	}
	p := views.AuditProps{Filter: filter, Before: q.Before, Agents: c.agentLabels(), Now: now().In(zone(r))}
	page, err := c.service.Audit.Page(r.Context(), q)
	if err != nil {
		return err
	}
	if p.Entries = c.named(r.Context(), page.Entries); page.More {
		p.Older = page.Entries[len(page.Entries)-1].ID
	}
	authors, err := c.service.Audit.Authors(r.Context())
	if err != nil {
		return err
	}
	if len(authors) <= views.AuditChoices {
		for _, who := range authors {
			p.Authors = append(p.Authors, views.AuditAuthor{Who: who, Name: c.authorName(who)})
		}
	}
	return c.render(w, r, view{
		frame: views.Frame{Title: "Audit", Sheet: "yard.css", Page: views.PageAudit, Scripts: eventScripts},
		page:  views.Audit(p),
	})
}

func auditQuery(r *http.Request) (f views.AuditFilter, q domain.AuditQuery, err error) {
	query := web.ParseQuery(r)
	f = views.AuditFilter{Who: query.Get("who"), Action: domain.Action(query.Get("action")), Text: query.Get("q")}
	if f.From, f.To, err = window(query, zone(r)); err != nil {
		return f, q, err
	}
	q = domain.AuditQuery(f)
	q.Limit = auditPage
	if query.Get("before") != "" {
		q.Before = query.Number("before", 0, 0, math.MaxInt64)
	}
	return f, q, query.Err()
}

// AuditCSV has all entries that the filter selects, newest first, as stored.
func (c *Console) AuditCSV(w http.ResponseWriter, r *http.Request) error {
	_, q, err := auditQuery(r)
	if err != nil {
		return err
	}
	q.Limit = csvRows
	header := []string{"id", "at", "who", "via", "role", "action", "subject", "detail", "request_id"}
	return writeCSV(w, "audit-"+now().Format(time.DateOnly), header, func() (rows [][]string, more bool, err error) {
		page, err := c.service.Audit.Page(r.Context(), q)
		if err != nil {
			return nil, false, err
		}
		for _, e := range page.Entries {
			rows = append(rows, []string{
				strconv.FormatInt(e.ID, 10), e.At.UTC().Format(time.RFC3339), e.Who, string(e.Via), string(e.Role),
				string(e.Action), e.Subject, e.Detail, e.RequestID,
			})
			q.Before = e.ID
		}
		return rows, page.More, nil
	})
}

// authorName is the name of who made a change: for an agent that still exists, its label.
func (c *Console) authorName(who string) string {
	if a, found := c.service.Agents.Find(who); found {
		return a.Label
	}
	return strings.TrimPrefix(who, "agent ")
}

// named adds the names of agents, and of stories on a board, to entries with their ids.
func (c *Console) named(ctx context.Context, entries []domain.AuditEntry) []views.AuditLine {
	lines := make([]views.AuditLine, len(entries))
	registry := c.service.Overview.Snapshot(ctx).Registry
	for i, e := range entries {
		line := &lines[i]
		*line = views.AuditLine{AuditEntry: e, By: c.authorName(e.Who)}
		if !strings.HasPrefix(string(e.Action), "story.") && !strings.HasPrefix(string(e.Action), "question.") {
			continue
		}
		for at, letter := range e.Subject {
			project := e.Subject[:at]
			if _, known := registry.Index(project); letter == '/' && known {
				line.Project, line.Story = project, domain.StoryRef{Project: project, ID: e.Subject[at+1:]}
			}
		}
		if item, _ := c.service.Pipelines.Known(line.Project, line.Story.ID); item != nil {
			line.Story.Name = item.StoryName
		}
	}
	return lines
}
