package api

import (
	"net/http"
	"strconv"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/flow"
	"switchyard/internal/web"
)

type flowStoryJSON struct {
	Project    string `json:"project"`
	StoryID    string `json:"story_id"`
	StoryName  string `json:"story_name"`
	StartedMS  int64  `json:"started_ms"`
	FinishedMS int64  `json:"finished_ms"`
	Days       int    `json:"days"`
}

// levels has a value for each of flow.Levels, null if unknown.
type levels struct {
	P50 *int `json:"p50"`
	P70 *int `json:"p70"`
	P85 *int `json:"p85"`
	P95 *int `json:"p95"`
}

// newLevels returns nil without values; zero counts as a value unless it means unknown.
func newLevels(at *[4]int, zeroIsUnknown bool) *levels {
	if at == nil {
		return nil
	}
	value := func(i int) *int {
		if at[i] == 0 && zeroIsUnknown {
			return nil
		}
		return &at[i]
	}
	return &levels{value(0), value(1), value(2), value(3)}
}

type throughputJSON struct {
	Day      string `json:"day"`
	Finished int    `json:"finished"`
}

type inWorkJSON struct {
	Day    string         `json:"day"`
	Stages map[string]int `json:"stages"`
}

type ageingJSON struct {
	Project string  `json:"project"`
	StoryID string  `json:"story_id"`
	Stage   string  `json:"stage"`
	Days    int     `json:"days"`
	Over    *string `json:"over"`
}

type forecastJSON struct {
	Days    int     `json:"days"`
	HowMany *levels `json:"how_many"`
	Items   int     `json:"items"`
	When    *levels `json:"when"`
}

type gradedJSON struct {
	Made     int `json:"made"`
	CameTrue int `json:"came_true"`
	At       int `json:"at"`
}

// Flow reports how long work takes and when it may be finished.
func (a *API) Flow(w http.ResponseWriter, r *http.Request) error {
	query := web.ParseQuery(r)
	q := query.Flow(time.UTC)
	if err := query.Err(); err != nil {
		return err
	}
	report, err := a.service.Flow.Report(r.Context(), q)
	if err != nil {
		return err
	}
	result := struct {
		More        int              `json:"more"`
		Stories     []flowStoryJSON  `json:"stories"`
		Percentiles *levels          `json:"percentiles"`
		Throughput  []throughputJSON `json:"throughput"`
		InWork      []inWorkJSON     `json:"work_in_progress"`
		Ageing      []ageingJSON     `json:"ageing"`
		Forecast    *forecastJSON    `json:"forecast"`
		Graded      *gradedJSON      `json:"graded"`
	}{
		More: report.More, Percentiles: newLevels(report.Percentiles, false),
		Stories: domain.Map(report.Stories, func(s domain.FlowStory) flowStoryJSON {
			return flowStoryJSON{s.Project, s.StoryID, s.Name, s.Started.UnixMilli(), s.Finished.UnixMilli(), s.Days}
		}),
		Throughput: domain.Map(report.Days, func(d domain.FlowDay) throughputJSON {
			return throughputJSON{d.Day, d.Finished}
		}),
		InWork: domain.Map(report.Days, func(d domain.FlowDay) inWorkJSON { return inWorkJSON{d.Day, d.Stages} }),
		Ageing: domain.Map(report.Ageing, func(age domain.FlowAge) ageingJSON {
			one := ageingJSON{Project: age.Project, StoryID: age.Item.StoryID, Stage: age.Stage.Name, Days: age.Days}
			if age.Over > 0 {
				one.Over = new("p" + strconv.Itoa(age.Over))
			}
			return one
		}),
	}
	if report.HowMany != nil {
		result.Forecast = &forecastJSON{
			report.Ahead, newLevels(report.HowMany, false), report.Items, newLevels(report.When, true),
		}
	}
	if made := len(report.Graded); made > 0 {
		result.Graded = &gradedJSON{made, report.CameTrue(), flow.Levels[2]}
	}
	return answer(w, http.StatusOK, result, nil)
}
