package console

import (
	"net/http"
	"strconv"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/web"
)

// CostCSV has all stories with model calls in the window.
func (c *Console) CostCSV(w http.ResponseWriter, r *http.Request) error {
	query := web.ParseQuery(r)
	q := query.Cost(zone(r))
	if err := query.Err(); err != nil {
		return err
	}
	q.All = true
	report, err := c.service.Costs.Report(r.Context(), q)
	if err != nil {
		return err
	}
	header := []string{
		"project", "story_id", "story_name", "usd", "calls", "sessions", "input", "cache_read", "cache_creation", "output",
		"finished",
	}
	rest, name := report.Stories, "cost-"+clock.Now().In(q.Zone).Format(time.DateOnly)
	return writeCSV(w, name, header, func() (rows [][]string, more bool, err error) {
		n := min(csvRows, len(rest))
		for _, s := range rest[:n] {
			row := []string{s.Project, s.StoryID, s.Name, s.USD.String()}
			for _, number := range []int64{
				s.Calls, int64(s.Sessions), s.Tokens.Input, s.Tokens.CacheRead, s.Tokens.CacheCreation, s.Tokens.Output,
			} {
				row = append(row, strconv.FormatInt(number, 10))
			}
			finished := ""
			if !s.Finished.IsZero() {
				finished = s.Finished.In(q.Zone).Format(time.RFC3339)
			}
			rows = append(rows, append(row, finished))
		}
		rest = rest[n:]
		return rows, len(rest) > 0, nil
	})
}
