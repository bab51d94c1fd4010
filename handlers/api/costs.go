package api

import (
	"net/http"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/web"
	"switchyard/internal/wire"
)

type costStoryJSON struct {
	Project   string `json:"project"`
	StoryID   string `json:"story_id"`
	StoryName string `json:"story_name"`
	domain.CostSum
	Sessions   int    `json:"sessions"`
	FinishedMS *int64 `json:"finished_ms"`
}

type costDayJSON struct {
	Day string `json:"day"`
	domain.CostSum
}

type costClientJSON struct {
	Client string `json:"client"`
	domain.CostSum
}

type costSenderJSON struct {
	By      string  `json:"by"`
	AgentID *string `json:"agent_id"`
	domain.CostSum
}

type costSessionJSON struct {
	Client  string        `json:"client"`
	Session string        `json:"session"`
	By      string        `json:"by"`
	Project *string       `json:"project"`
	USD     domain.Micros `json:"usd"`
	Calls   int64         `json:"calls"`
	LastMS  int64         `json:"last_ms"`
}

type costFinishedJSON struct {
	Count int           `json:"count"`
	P50   domain.Micros `json:"p50"`
	P85   domain.Micros `json:"p85"`
	Mean  domain.Micros `json:"mean"`
}

type costWithoutJSON struct {
	domain.CostSum
	Sessions []costSessionJSON `json:"sessions"`
}

// Cost tells what calls of models cost.
func (a *API) Cost(w http.ResponseWriter, r *http.Request) error {
	query := web.ParseQuery(r)
	q := query.Cost(time.UTC)
	if err := query.Err(); err != nil {
		return err
	}
	report, err := a.service.Costs.Report(r.Context(), q)
	if err != nil {
		return err
	}
	result := struct {
		Total    wire.CostSum      `json:"total"`
		Days     []costDayJSON     `json:"days"`
		Stories  []costStoryJSON   `json:"stories"`
		More     int               `json:"more"`
		Models   []wire.ModelCost  `json:"models"`
		Clients  []costClientJSON  `json:"clients"`
		Finished *costFinishedJSON `json:"finished"`
		Agents   []costSenderJSON  `json:"agents"`
		Without  costWithoutJSON   `json:"without_story"`
	}{
		Total: wire.NewCostSum(report.Total), More: report.More, Models: domain.Each(report.Models, wire.NewModelCost),
		Days: domain.Each(report.Days, func(s domain.CostShare) costDayJSON { return costDayJSON{s.Name, s.CostSum} }),
		Stories: domain.Each(report.Stories, func(s domain.CostShare) costStoryJSON {
			return costStoryJSON{s.Project, s.StoryID, s.Name, s.CostSum, s.Sessions, wire.TimeOrNull(s.Finished)}
		}),
		Clients: domain.Each(report.Clients, func(s domain.CostShare) costClientJSON {
			return costClientJSON{s.Name, s.CostSum}
		}),
		Agents: domain.Each(report.Agents, func(s domain.CostShare) costSenderJSON {
			return costSenderJSON{s.Name, wire.OrNull(s.AgentID), s.CostSum}
		}),
		Without: costWithoutJSON{report.Without, domain.Each(report.Sessions, func(s domain.CostShare) costSessionJSON {
			return costSessionJSON{s.Client, s.Session, s.Name, wire.OrNull(s.Project), s.USD, s.Calls, s.Last.UnixMilli()}
		})},
	}
	if f := report.Finished; f.At != nil {
		result.Finished = &costFinishedJSON{f.Count, domain.Micros(f.At[0]), domain.Micros(f.At[2]), f.Mean}
	}
	return answer(w, http.StatusOK, result, nil)
}
