package service

import (
	"context"
	"strconv"
	"time"

	"switchyard/internal/yard"
)

// maxGaps is how many gaps are looked at: each is at least one read of a feed apart from the next.
const maxGaps = 100

// Attention returns everything that needs somebody, given the pipelines: what stands still before what is merely slow or
// past, the oldest first.
func (s *Service) Attention(ctx context.Context, pipelines []yard.ProjectPipeline) ([]yard.Attention, error) {
	now := time.Now()
	found := yard.FindAttention(pipelines, now)
	gaps, err := s.gaps(ctx, now.Add(-yard.GapAttention).UnixMilli())
	if err != nil {
		return nil, err
	}
	found = append(found, gaps...)
	for _, agent := range s.AllAgents() {
		if agent.Presence == yard.AgentLost {
			found = append(found, lostAgent(agent))
		}
	}
	if bot := s.BotStatus(); bot.State == yard.BotFailed {
		found = append(found, yard.Attention{Kind: yard.AttentionBot, Reason: bot.Detail, SinceMS: bot.SinceMS})
	}
	if signIn := s.SignInStatus(); signIn.Expired {
		found = append(found, yard.Attention{Kind: yard.AttentionSignIn, SinceMS: int64(signIn.ExpiresAt)}) // it is past, so it fits
	}
	yard.SortAttention(found)
	return found, nil
}

func lostAgent(agent yard.KnownAgent) yard.Attention {
	a := yard.Attention{Kind: yard.AttentionAgentLost, Agent: agent.Label, SinceMS: agent.LastSeenMS}
	if agent.AssignedProject != nil {
		a.Project = *agent.AssignedProject
	}
	return a
}

// gaps returns, for each registered project that lost events since then, one entry with what it lost in all.
func (s *Service) gaps(ctx context.Context, sinceMS int64) ([]yard.Attention, error) {
	events, err := s.Events(ctx, yard.EventQuery{Backward: true, Limit: maxGaps, Type: yard.FeedGap})
	if err != nil {
		return nil, err
	}
	missed, at := map[string]int64{}, map[string]int64{}
	for _, e := range events {
		if e.ReceivedAtMS >= sinceMS {
			missed[e.Project] += e.Details().Missed
			at[e.Project] = max(at[e.Project], e.ReceivedAtMS)
		}
	}
	var found []yard.Attention
	for _, p := range s.Registry().Projects {
		if n := missed[p.Name]; n > 0 {
			reason := strconv.FormatInt(n, 10) + " were dropped before they could be read"
			found = append(found, yard.Attention{Kind: yard.AttentionFeedGap, Project: p.Name, Reason: reason, SinceMS: at[p.Name]})
		}
	}
	return found, nil
}
