package handlers

import (
	"net/http"
	"slices"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/metrics"
	"switchyard/internal/web"
)

// metrics writes counters and gauges in the Prometheus text format.
func (g Gateway) metrics(w http.ResponseWriter, r *http.Request) error {
	text := &metrics.Text{}
	registry := g.Service.Projects.Registry()
	metrics.WriteBuild(text, g.Version)
	g.Metrics.Write(text, registry)
	text.Gauge("switchyard_projects", "Projects registered.", float64(len(registry.Projects)))
	text.Gauge("switchyard_stream_last_event_id", "The id of the newest event of the merged stream.", float64(g.Service.Events.LastID()))
	if lag, ok := g.streamLag(r); ok {
		text.Gauge("switchyard_stream_lag_seconds", "Time from the newest event at its project to its arrival in the store, by their clocks.", lag.Seconds())
	}
	g.writeAgents(text)
	g.writeGateways(text, r)
	metrics.States(text, "switchyard_bot_state", "1 for the bot's current state.", g.Service.Bot.Status().State,
		domain.BotOff, domain.BotConnecting, domain.BotConnected, domain.BotFailed)
	text.Gauge("switchyard_store_up", "Whether the database can be reached.", metrics.Bool(g.Service.Ready(r.Context()) == nil))
	g.writeStore(text, r)
	metrics.WriteProcess(text)

	header := w.Header()
	header.Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	header.Set("Vary", "Accept-Encoding")
	body := text.Bytes()
	if web.AcceptsGzip(r) {
		header.Set("Content-Encoding", "gzip")
		body = web.Gzip(body)
	}
	web.WriteBytes(w, http.StatusOK, body)
	return nil
}

// writeStore writes the size of the database and the age of the oldest event.
func (g Gateway) writeStore(text *metrics.Text, r *http.Request) {
	stored, err := g.Service.Retention.Stored(r.Context())
	if err != nil {
		return // switchyard_store_up says that the store is down
	}
	text.Gauge("switchyard_store_size_bytes", "The size of the database on disk.", float64(stored.Size))
	text.Gauge("switchyard_store_free_bytes", "The part of that size that is free for reuse.", float64(stored.Free))
	if !stored.Oldest.IsZero() {
		text.Gauge("switchyard_stream_oldest_event_timestamp_seconds", "When the oldest event of the merged stream was received.",
			float64(stored.Oldest.UnixMilli())/1000)
	}
}

// writeGateways writes how many gateways share the database, and whether this one leads.
func (g Gateway) writeGateways(text *metrics.Text, r *http.Request) {
	gateways, err := g.Service.Gateways(r.Context())
	if err != nil || len(gateways) == 0 {
		return // a single gateway, or switchyard_store_up says that the store is down
	}
	text.Gauge("switchyard_gateways", "Live gateways that share the database.", float64(len(gateways)))
	leads := slices.ContainsFunc(gateways, func(each domain.LiveGateway) bool { return each.Asked && each.Leads })
	text.Gauge("switchyard_leader", "Whether this gateway leads: follows the projects, runs the bot, removes old events.", metrics.Bool(leads))
}

// streamLag returns the time from the newest event of the merged stream to its arrival here, by the clocks of its project
// server and of this machine.
func (g Gateway) streamLag(r *http.Request) (lag time.Duration, ok bool) {
	page, err := g.Service.Events.Page(r.Context(), domain.EventQuery{Backward: true, Limit: 1})
	if err != nil || len(page.Events) == 0 {
		return 0, false
	}
	return max(0, page.Events[0].ReceivedAt.Sub(page.Events[0].At)), true
}

func (g Gateway) writeAgents(text *metrics.Text) {
	states, presences := map[domain.AgentState]int{}, map[domain.AgentPresence]int{}
	for _, a := range g.Service.Agents.All() {
		presences[a.Presence]++
		if a.Presence == domain.AgentAlive {
			states[a.State]++
		}
	}
	text.Metric("switchyard_agents", "gauge", "Agents, by presence.")
	for _, p := range []domain.AgentPresence{domain.AgentAlive, domain.AgentLeft, domain.AgentLost} {
		text.Sample("switchyard_agents", float64(presences[p]), "presence", string(p))
	}
	text.Metric("switchyard_agents_alive", "gauge", "Live agents, by state.")
	for _, s := range []domain.AgentState{domain.AgentIdle, domain.AgentRunning, domain.AgentFailed} {
		text.Sample("switchyard_agents_alive", float64(states[s]), "state", string(s))
	}
}
