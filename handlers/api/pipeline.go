package api

import (
	"bufio"
	"net/http"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/wire"
)

// freshPipeline is the age up to which a project's last answer is served without asking it again.
const freshPipeline = 100 * time.Millisecond

// Pipeline writes each project's stages as its server sent them. It encodes while it writes: some projects are large.
func (a *API) Pipeline(w http.ResponseWriter, r *http.Request) error {
	registry, pipelines := a.service.Pipelines.All(r.Context(), freshPipeline)
	texts := a.service.Claims.Texts(pipelines)
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	size := 64
	for _, text := range texts {
		size += 256 + len(text)
	}
	out := bufio.NewWriterSize(w, min(size, 64<<10)) // write errors mean that the client is gone
	_, _ = out.WriteString(`{"active":`)
	_, _ = out.Write(domain.EncodeJSON(wire.OrNull(registry.Active)))
	_, _ = out.WriteString(`,"projects":{`)
	for i, p := range pipelines {
		if i > 0 {
			_ = out.WriteByte(',')
		}
		_, _ = out.Write(domain.EncodeJSON(p.Project))
		_ = out.WriteByte(':')
		head := domain.EncodeJSON(encodePipeline(p))
		if p.Reachable {
			_, _ = out.Write(head[:len(head)-1])
			_, _ = out.WriteString(`,"stages":`)
			_, _ = out.Write(texts[i])
			head = head[len(head)-1:]
		}
		_, _ = out.Write(head)
	}
	_, _ = out.WriteString("}}")
	_ = out.Flush()
	return nil
}

func encodePipeline(p domain.ProjectPipeline) any {
	if !p.Reachable {
		return struct {
			URL       string `json:"url"`
			Reachable bool   `json:"reachable"`
			Error     string `json:"error"`
			LastSeen  *int64 `json:"last_seen_ms"`
		}{p.URL, false, p.Error, wire.TimeOrNull(p.LastSeen)}
	}
	return struct {
		URL        string       `json:"url"`
		Reachable  bool         `json:"reachable"`
		Stale      bool         `json:"stale"`
		FetchedAt  int64        `json:"fetched_at_ms"`
		EventsOnly bool         `json:"events_only,omitempty"`
		Note       string       `json:"note,omitempty"`
		Faults     []wire.Fault `json:"faults"`
	}{p.URL, true, p.Stale, p.FetchedAt.UnixMilli(), p.EventsOnly, p.Note, wire.NewFaults(p.Faults)}
}
