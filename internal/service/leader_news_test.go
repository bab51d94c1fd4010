package service_test

import (
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/waittest"
)

// has reports whether the gateway shows an alert of this kind.
func (p *peer) has(kind domain.AlertKind) bool {
	for _, a := range p.Alerts.List(p.t.Context()).Items {
		if a.Kind == kind && a.Project == "alpha" {
			return true
		}
	}
	return false
}

// TestEveryGatewayShowsWhatOnlyTheLeaderKnows: that a project's clock is ahead, and that it cannot reach the project.
func TestEveryGatewayShowsWhatOnlyTheLeaderKnows(t *testing.T) {
	peers := severalGateways(t, 3)
	leader, others := peers[0], peers[1:]
	const url = "http://alpha"
	fine := func(*domain.PipelineAnswer) (*domain.PipelineAnswer, error) {
		return &domain.PipelineAnswer{Raw: []byte("[]")}, nil
	}
	for _, p := range peers {
		p.boards.set(url, fine)
	}
	if _, err := leader.Projects.Add(t.Context(), "alpha", url, nil); err != nil {
		t.Fatal(err)
	}
	all := func(what string, kind domain.AlertKind, want bool) {
		t.Helper()
		for _, p := range peers {
			waittest.Until(t, what, func() bool { return p.has(kind) == want })
		}
	}
	now := time.Now().Truncate(time.Millisecond)
	read := func(skewed bool) domain.FeedRead {
		return domain.FeedRead{Cursor: domain.FeedCursor{Project: "alpha", URL: url}, ReceivedAt: now, ClockSkewed: skewed}
	}
	recordFeed(t, leader.Service, read(true))
	all("it is ahead", domain.AlertClockAhead, true)
	leader.runs.Store(false)
	others[0].runs.Store(true)
	recordFeed(t, others[0].Service, read(false))
	all("it is right again", domain.AlertClockAhead, false)

	others[0].runs.Store(false)
	leader.runs.Store(true)
	leader.boards.set(url, func(*domain.PipelineAnswer) (*domain.PipelineAnswer, error) {
		return nil, domain.Errorf(domain.BadGateway, "no route")
	})
	leader.Pipelines.All(t.Context(), 0)
	all("it cannot be reached", domain.AlertUnreachable, true)
	for _, p := range others {
		waittest.Until(t, "the others reach it", func() bool { return p.Pipelines.Reaches() == 1 })
	}
	if all, unreachable := leader.Pipelines.Reach(); all != 1 || unreachable != 1 || leader.Pipelines.Reaches() != 0 {
		t.Errorf("the leader does not reach %d of %d", unreachable, all)
	}
	leader.boards.set(url, fine)
	leader.Pipelines.All(t.Context(), 0)
	all("it is reached again", domain.AlertUnreachable, false)
}
