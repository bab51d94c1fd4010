package views

import (
	"github.com/a-h/templ"

	"switchyard/internal/domain"
)

// agentState is how an agent is, as a signal and in words.
func agentState(a domain.KnownAgent) (Signal, string) {
	if a.Presence == domain.AgentLost {
		return SignalStop, "lost"
	}
	return stateSignal(a.State), string(a.State)
}

func stateSignal(state domain.AgentState) Signal {
	switch state {
	case domain.AgentRunning:
		return SignalClear
	case domain.AgentFailed:
		return SignalCaution
	}
	return SignalNone
}

// waits reports whether the token can still be redeemed.
func (p JoinProps) waits() bool {
	return p.Token.UsedAt.IsZero() && p.Token.ExpiresAt.After(p.Now)
}

// inAgents are the attributes of a plain form whose answer is the table alone: what else is on the page stays. A refresh
// that is under way would show the table as it was before.
func inAgents(url string) templ.Attributes {
	return templ.Attributes{"data-hx-post": url, "data-hx-target": "#agents", "data-hx-swap": "morph", "data-hx-sync": "#agents:replace"}
}
