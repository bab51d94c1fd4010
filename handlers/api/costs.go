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
	wire.CostSum
	Sessions   int    `json:"sessions"`
	FinishedMS *int64 `json:"finished_ms"`
}

type costTotalJSON struct {
	wire.CostSum
	Unpriced int64 `json:"unpriced"`
}

type costDayJSON struct {
	Day string `json:"day"`
	wire.CostSum
}

type costClientJSON struct {
	Client string `json:"client"`
	wire.CostSum
}

type costSenderJSON struct {
	By      string  `json:"by"`
	AgentID *string `json:"agent_id"`
	wire.CostSum
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
	wire.CostSum
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
		Total    costTotalJSON     `json:"total"`
		Days     []costDayJSON     `json:"days"`
		Stories  []costStoryJSON   `json:"stories"`
		More     int               `json:"more"`
		Models   []wire.ModelCost  `json:"models"`
		Clients  []costClientJSON  `json:"clients"`
		Finished *costFinishedJSON `json:"finished"`
		Agents   []costSenderJSON  `json:"agents"`
		Without  costWithoutJSON   `json:"without_story"`
	}{
		Total: costTotalJSON{wire.NewCostSum(report.Total), report.Total.Unpriced}, More: report.More,
		Days: domain.Each(report.Days, func(s domain.CostShare) costDayJSON {
			return costDayJSON{s.Name, wire.NewCostSum(s.CostSum)}
		}),
		Stories: domain.Each(report.Stories, func(s domain.CostShare) costStoryJSON {
			return costStoryJSON{
				s.Project, s.StoryID, s.Name, wire.NewCostSum(s.CostSum), s.Sessions, wire.TimeOrNull(s.Finished),
			}
		}),
		Models: domain.Each(report.Models, func(s domain.CostShare) wire.ModelCost {
			return wire.NewModelCost(domain.ModelCost{Model: s.Name, CostSum: s.CostSum})
		}),
		Clients: domain.Each(report.Clients, func(s domain.CostShare) costClientJSON {
			return costClientJSON{s.Name, wire.NewCostSum(s.CostSum)}
		}),
		Agents: domain.Each(report.Agents, func(s domain.CostShare) costSenderJSON {
			return costSenderJSON{s.Name, wire.OrNull(s.AgentID), wire.NewCostSum(s.CostSum)}
		}),
		Without: costWithoutJSON{
			wire.NewCostSum(report.Without), domain.Each(report.Sessions, func(s domain.CostShare) costSessionJSON {
				return costSessionJSON{
					s.Client, s.Session, s.Name, wire.OrNull(s.Project), s.USD, s.Calls, s.Last.UnixMilli(),
				}
			}),
		},
	}
	if f := report.Finished; f.At != nil {
		result.Finished = &costFinishedJSON{len(f.Stories), domain.Micros(f.At[0]), domain.Micros(f.At[2]), f.Mean}
	}
	return answer(w, http.StatusOK, result, nil)
}
