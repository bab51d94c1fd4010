package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"

	"switchyard/internal/domain"
	"switchyard/internal/web"
)

// maxBatch is the most messages in a batch, which earlier versions of the protocol allow. They are handled
// concurrently.
const maxBatch = 16

// newestVersion is the version of the protocol from which on the SDK answers unknown methods as JSON-RPC asks for.
const newestVersion = "2026-07-28"

// offered are the methods of requests that have an answer here.
var offered = map[string]bool{
	"initialize": true, "ping": true, "server/discover": true, "tools/list": true, "tools/call": true,
	"prompts/list": true, "prompts/get": true,
	"resources/list": true, "resources/templates/list": true, "resources/read": true,
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method *string         `json:"method"`
	Params struct {
		Name string `json:"name"`
		Meta struct {
			ProgressToken any `json:"progressToken"`
		} `json:"_meta"`
	} `json:"params"`
}

func (m message) wantsProgress() bool {
	return *m.Method == "tools/call" && m.Params.Name == callProjectTool && m.Params.Meta.ProgressToken != nil
}

// readBody reads a request's message, or batch of messages, without the notifications: none of them matters to a server
// without sessions. The body is nil when nothing is left. stream is whether the answer has to be an event stream. It
// returns UnsupportedType, TooLarge and Invalid.
func readBody(w http.ResponseWriter, r *http.Request) (body []byte, stream bool, err error) {
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media != "application/json" {
		return nil, false, domain.Errorf(domain.UnsupportedType, "the body must be sent as Content-Type: application/json")
	}
	if body, err = web.ReadBody(w, r, web.MaxBody); err != nil {
		return nil, false, err
	}
	body = bytes.TrimSpace(body)
	if !json.Valid(body) {
		return nil, false, domain.Errorf(domain.Invalid, "the body must be one JSON-RPC message, or one batch")
	}
	var batch []json.RawMessage
	isBatch := json.Unmarshal(body, &batch) == nil && body[0] == '[' // null is no error either
	if !isBatch {
		batch = []json.RawMessage{body}
	}
	switch {
	case len(batch) == 0:
		return nil, false, domain.Errorf(domain.Invalid, "a batch must have at least one message")
	case len(batch) > maxBatch:
		return nil, false, domain.Errorf(domain.Invalid, "a batch may have at most %d messages", maxBatch)
	}
	kept := batch[:0]
	for _, text := range batch {
		var m message
		_ = json.Unmarshal(text, &m) // the SDK refuses what is no message
		switch {
		case m.Method == nil:
		case len(m.ID) == 0 || string(m.ID) == "null":
			continue
		case !offered[*m.Method] && r.Header.Get("Mcp-Protocol-Version") < newestVersion:
			// The SDK would refuse the whole batch, as a bad HTTP request; guard refuses this alone.
			text = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":"logging/setLevel","params":{"level":"error"}}`, m.ID)
		default:
			stream = stream || m.wantsProgress()
		}
		kept = append(kept, text)
	}
	switch {
	case len(kept) == 0:
		return nil, false, nil
	case isBatch:
		return web.EncodeJSON(kept), stream, nil
	}
	return kept[0], stream, nil
}
