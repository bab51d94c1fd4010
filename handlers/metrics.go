package handlers

import (
	"net/http"
	"runtime"
	"slices"

	"switchyard/internal/domain"
	"switchyard/internal/metrics"
)

func (g Gateway) metrics(w http.ResponseWriter, r *http.Request) error {
	registry := g.Service.Projects.Registry()
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Vary", "Accept-Encoding")
	g.Metrics.Handler(registry, func(show metrics.Show) {
		show("switchyard_build_info", "Always 1; the labels are the version, revision and Go version.", 1,
			"version", g.Version, "revision", g.Revision, "goversion", runtime.Version())
		show("switchyard_projects", "Projects registered.", float64(len(registry.Projects)))
		show("switchyard_stream_last_event_id", "The id of the newest event of the merged stream.",
			float64(g.Service.Events.LastID()))
		g.showAgents(show)
		g.showGateways(show, r)
		state := g.Service.Bot.Status().State
		for _, s := range []domain.BotState{domain.BotOff, domain.BotConnecting, domain.BotConnected, domain.BotFailed} {
			show("switchyard_bot_state", "1 for the bot's current state.", metrics.Bool(s == state), "state", string(s))
		}
		show("switchyard_store_up", "Whether the database can be reached.", metrics.Bool(g.Service.Ready(r.Context()) == nil))
		g.showStore(show, r)
	}).ServeHTTP(w, r)
	return nil
}

// showStore shows the size of the database and the age of the oldest event.
func (g Gateway) showStore(show metrics.Show, r *http.Request) {
	stored, err := g.Service.Retention.Stored(r.Context())
	if err != nil {
		return // switchyard_store_up says that the store is down
	}
	show("switchyard_store_size_bytes", "The size of the database on disk.", float64(stored.Size))
	show("switchyard_store_free_bytes", "The part of that size that is free for reuse.", float64(stored.Free))
	if !stored.Oldest.IsZero() {
		show("switchyard_stream_oldest_event_timestamp_seconds", "When the oldest event of the merged stream was received.",
			float64(stored.Oldest.UnixMilli())/1000)
	}
}

// showGateways shows how many gateways share the database, and whether this one leads.
func (g Gateway) showGateways(show metrics.Show, r *http.Request) {
	gateways, err := g.Service.Gateways(r.Context())
	if err != nil || len(gateways) == 0 {
		return // a single gateway, or switchyard_store_up says that the store is down
	}
	show("switchyard_gateways", "Live gateways that share the database.", float64(len(gateways)))
	leads := slices.ContainsFunc(gateways, func(each domain.LiveGateway) bool { return each.Asked && each.Leads })
	show("switchyard_leader", "Whether this gateway leads: follows the projects, runs the bot, removes old events.",
		metrics.Bool(leads))
}

func (g Gateway) showAgents(show metrics.Show) {
	states, presences := map[domain.AgentState]int{}, map[domain.AgentPresence]int{}
	for _, a := range g.Service.Agents.All() {
		presences[a.Presence]++
		if a.Presence == domain.AgentAlive {
			states[a.State]++
		}
	}
	for _, p := range []domain.AgentPresence{domain.AgentAlive, domain.AgentLeft, domain.AgentLost} {
		show("switchyard_agents", "Agents, by presence.", float64(presences[p]), "presence", string(p))
	}
	for _, s := range []domain.AgentState{domain.AgentIdle, domain.AgentRunning, domain.AgentFailed} {
		show("switchyard_agents_alive", "Live agents, by state.", float64(states[s]), "state", string(s))
	}
}
