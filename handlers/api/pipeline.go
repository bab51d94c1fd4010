package api

import (
	"bufio"
	"net/http"
	"strconv"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/web"
	"switchyard/internal/wire"
)

// freshPipeline is the age up to which a project's last answer is served without asking it again.
const freshPipeline = 100 * time.Millisecond

// Pipeline writes each project's stages as its server sent them. It encodes while it writes: some projects are large.
func (a *API) Pipeline(w http.ResponseWriter, r *http.Request) error {
	registry, pipelines := a.service.Pipelines.All(r.Context(), freshPipeline)
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	size := 64
	for _, p := range pipelines {
		size += 256 + len(p.Raw)
	}
	out := bufio.NewWriterSize(w, min(size, 64<<10)) // write errors mean that the client is gone
	_, _ = out.WriteString(`{"active":`)
	_, _ = out.Write(web.EncodeJSON(wire.OrNull(registry.Active)))
	_, _ = out.WriteString(`,"projects":{`)
	var head []byte
	for i, p := range pipelines {
		head = head[:0]
		if i > 0 {
			head = append(head, ',')
		}
		head = appendPipeline(head, p)
		_, _ = out.Write(head)
		if p.Reachable {
			_, _ = out.Write(p.Raw)
		}
		_ = out.WriteByte('}')
	}
	_, _ = out.WriteString("}}")
	_ = out.Flush()
	return nil
}

// appendPipeline appends a project's entry up to its stages, if it is reachable, and the closing brace.
func appendPipeline(b []byte, p domain.ProjectPipeline) []byte {
	b = web.AppendJSON(b, p.Project)
	b = append(b, `:{"url":`...)
	b = web.AppendJSON(b, p.URL)
	if p.Reachable {
		b = append(b, `,"reachable":true,"stale":`...)
		b = strconv.AppendBool(b, p.Stale)
		b = append(b, `,"fetched_at_ms":`...)
		b = strconv.AppendInt(b, p.FetchedAt.UnixMilli(), 10)
		if p.EventsOnly {
			b = append(b, `,"events_only":true`...)
		}
		if p.Note != "" {
			b = append(b, `,"note":`...)
			b = web.AppendJSON(b, p.Note)
		}
		return append(b, `,"stages":`...)
	}
	b = append(b, `,"reachable":false,"error":`...)
	b = web.AppendJSON(b, p.Error)
	b = append(b, `,"last_seen_ms":`...)
	if p.LastSeen.IsZero() {
		return append(b, "null"...)
	}
	return strconv.AppendInt(b, p.LastSeen.UnixMilli(), 10)
}
