package views

import (
	"github.com/a-h/templ"

	"switchyard/internal/domain"
)

// agentState returns an agent's state, as a signal and in words.
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

// waits reports whether the token has not been redeemed and still can be.
func (p JoinProps) waits() bool {
	return p.Token.UsedAt.IsZero() && p.Token.ExpiresAt.After(p.Now)
}

// inAgents returns the attributes of a plain form whose answer replaces only the table. A refresh under way is
// cancelled: it would show the table as it was before.
func inAgents(url string) templ.Attributes {
	return templ.Attributes{
		"data-hx-post": url, "data-hx-target": "#agents", "data-hx-swap": "morph",
		"data-hx-sync": "#agents:replace",
	}
}
