package api

import (
	"net/http"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/web"
	"switchyard/internal/wire"
)

// costShare is a share of the costs as JSON, with what it is about.
func costShare(s domain.CostSum, about map[string]any) map[string]any {
	about["usd"], about["tokens"], about["calls"] = s.USD, s.Tokens, s.Calls
	return about
}

// costShares are shares of the costs, each about one thing.
func costShares(what string, shares []domain.CostShare) []map[string]any {
	return domain.Map(shares, func(s domain.CostShare) map[string]any {
		return costShare(s.CostSum, map[string]any{what: s.Name})
	})
}

// Cost reports what model calls cost.
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
	stories := domain.Map(report.Stories, func(s domain.CostShare) map[string]any {
		return costShare(s.CostSum, map[string]any{
			"project": s.Project, "story_id": s.StoryID, "story_name": s.Name, "sessions": s.Sessions,
			"finished_ms": wire.TimeOrNull(s.Finished),
		})
	})
	agents := domain.Map(report.Agents, func(s domain.CostShare) map[string]any {
		return costShare(s.CostSum, map[string]any{"by": s.Name, "agent_id": wire.OrNull(s.AgentID)})
	})
	sessions := domain.Map(report.Sessions, func(s domain.CostShare) map[string]any {
		return map[string]any{
			"client": s.Client, "session": s.Session, "by": s.Name, "project": wire.OrNull(s.Project), "usd": s.USD,
			"calls": s.Calls, "last_ms": s.Last.UnixMilli(),
		}
	})
	var finished map[string]any
	if f := report.Finished; f.At != nil {
		finished = map[string]any{
			"count": f.Count, "p50": domain.Micros(f.At[0]), "p85": domain.Micros(f.At[2]), "mean": f.Mean,
		}
	}
	return answer(w, http.StatusOK, map[string]any{
		"total": report.Total, "days": costShares("day", report.Days), "stories": stories, "more": report.More,
		"models": domain.Map(report.Models, wire.NewModelCost), "clients": costShares("client", report.Clients),
		"finished": finished, "agents": agents,
		"without_story": costShare(report.Without, map[string]any{"sessions": sessions}),
	}, nil)
}
