package console

import (
	"net/http"
	"slices"
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

// Flow is the page on how long work takes and when it may be finished.
func (c *Console) Flow(w http.ResponseWriter, r *http.Request) error {
	p, err := c.flowProps(r)
	if err != nil {
		return err
	}
	p.Names = c.projectNames()
	q := domain.CostQuery{Projects: p.Query.Projects, Days: p.Query.Days, Zone: p.Query.Zone}
	if p.Cost, err = c.service.Costs.Recent(r.Context(), q); err != nil {
		return err
	}
	return c.render(w, r, view{
		frame: views.Frame{Title: "Flow", Sheet: "flow.css", Page: views.PageFlow}, page: views.Flow(p),
	})
}

// flowQuery reads a query. An empty field of the form counts as absent.
func flowQuery(r *http.Request) (domain.FlowQuery, error) {
	query := web.ParseQuery(r)
	for _, name := range []string{"days", "ahead", "items"} {
		if query.Get(name) == "" {
			query.Del(name)
		}
	}
	q := query.Flow(zone(r))
	return q, query.Err()
}

// flowProps returns what the request asks for, for these projects if there are any.
func (c *Console) flowProps(r *http.Request, projects ...string) (p views.FlowProps, err error) {
	q, err := flowQuery(r)
	if err != nil {
		return p, err
	}
	if len(projects) > 0 {
		q.Projects = projects
	}
	report, err := c.service.Flow.Report(r.Context(), q)
	if err != nil {
		return p, err
	}
	p = views.FlowProps{
		Report: report.SinceFirstMove(), Query: q, Chosen: q.Items > 0, Now: now().In(q.Zone),
		Owners: c.service.Overview.Owners(), Asked: c.questionsAbout(),
	}
	return p, nil
}

// questionsAbout returns the oldest open question about each story.
func (c *Console) questionsAbout() map[domain.StoryKey]domain.Question {
	found := map[domain.StoryKey]domain.Question{}
	for _, q := range slices.Backward(c.service.Questions.Recent()) {
		if q.State == domain.QuestionOpen && q.StoryID != "" {
			found[domain.StoryKey{Project: q.Project, ID: q.StoryID}] = q
		}
	}
	return found
}

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
	q, err := flowQuery(r)
	if err != nil {
		return err
	}
	q.All = true
	report, err := c.service.Flow.Report(r.Context(), q)
	if err != nil {
		return err
	}
	rest, name := report.Stories, "flow-"+clock.Now().In(q.Zone).Format(time.DateOnly)
	header := []string{"project", "story_id", "story_name", "started", "finished", "days"}
	return writeCSV(w, name, header, func() (rows [][]string, more bool, err error) {
		n := min(csvRows, len(rest))
		stories, err := c.service.Flow.WithNames(r.Context(), rest[:n])
		for _, s := range stories {
			rows = append(rows, []string{
				s.Project, s.StoryID, s.Name, s.Started.In(q.Zone).Format(time.RFC3339),
				s.Finished.In(q.Zone).Format(time.RFC3339), strconv.Itoa(s.Days),
			})
		}
		rest = rest[n:]
		return rows, len(rest) > 0, err
	})
}
