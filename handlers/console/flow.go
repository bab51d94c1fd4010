package console

import (
	"bytes"
	"encoding/csv"
	"net/http"
	"strconv"
	"strings"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/web"
	"switchyard/views"
)

// zoneCookie holds the name of the reader's time zone, which scripts set.
const zoneCookie = "switchyard_zone"

// zone returns the reader's time zone, the gateway's while that is unknown.
func zone(r *http.Request) *time.Location {
	if cookie, err := r.Cookie(zoneCookie); err == nil && cookie.Value != "Local" {
		if zone, err := time.LoadLocation(strings.ReplaceAll(cookie.Value, "%2F", "/")); err == nil {
			return zone
		}
	}
	return time.Local
}

// Flow is the page of how long work takes and when it may be finished.
func (c *Console) Flow(w http.ResponseWriter, r *http.Request) error {
	p, err := c.flowProps(r)
	if err != nil {
		return err
	}
	p.Names = c.projectNames()
	return c.render(w, r, view{frame: views.Frame{Title: "Flow", Page: views.PageFlow}, page: views.Flow(p)})
}

// flowProps returns what the request asks for, of these projects if there are any.
func (c *Console) flowProps(r *http.Request, projects ...string) (p views.FlowProps, err error) {
	query := web.ParseQuery(r)
	if query.Get("items") == "" { // an empty field
		query.Del("items")
	}
	q := query.Flow(zone(r))
	if err := query.Err(); err != nil {
		return p, err
	}
	if len(projects) > 0 {
		q.Projects = projects
	}
	report, err := c.service.Flow.Report(r.Context(), q)
	return views.FlowProps{Report: report, Query: q, Chosen: q.Items > 0, Now: now().In(q.Zone)}, err
}

// FlowStory leads from a point to its story.
func (c *Console) FlowStory(w http.ResponseWriter, r *http.Request) error {
	number, err := strconv.ParseInt(web.PathParam(r, "number"), 10, 64)
	if err != nil {
		return domain.Errorf(domain.NotFound, "There is no such story.")
	}
	story, err := c.service.Flow.Story(r.Context(), number)
	if err != nil {
		return err
	}
	http.Redirect(w, r, views.StoryURL(story.Project, story.ID), http.StatusFound)
	return nil
}

// FlowCSV has all finished stories of the window.
func (c *Console) FlowCSV(w http.ResponseWriter, r *http.Request) error {
	query := web.ParseQuery(r)
	q := query.Flow(zone(r))
	if err := query.Err(); err != nil {
		return err
	}
	q.All = true
	report, err := c.service.Flow.Report(r.Context(), q)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	out := csv.NewWriter(&b)
	_ = out.Write([]string{"project", "story_id", "story_name", "started", "finished", "days"}) // a buffer takes all
	for _, s := range report.Stories {
		_ = out.Write([]string{
			cell(s.Project), cell(s.StoryID), cell(s.StoryName), s.Started.In(q.Zone).Format(time.RFC3339),
			s.Finished.In(q.Zone).Format(time.RFC3339), strconv.Itoa(s.Days),
		})
	}
	out.Flush()
	header := w.Header()
	header.Set("Content-Type", "text/csv; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Disposition", `attachment; filename="flow-`+clock.Now().In(q.Zone).Format(time.DateOnly)+`.csv"`)
	web.WriteBytes(w, http.StatusOK, b.Bytes())
	return nil
}

// cell returns a text that a spreadsheet does not take for a formula.
func cell(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}
