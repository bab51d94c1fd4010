package mcp

import (
	"bytes"
	"encoding/json"
	"mime"
	"net/http"

	"switchyard/internal/domain"
	"switchyard/internal/web"
)

// maxBatch is the most messages in a batch, which earlier versions of the protocol allow. They are handled concurrently.
const maxBatch = 16

// readBody reads a request's message, or batch of messages. It returns UnsupportedType, TooLarge and Invalid.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media != "application/json" {
		return nil, domain.Errorf(domain.UnsupportedType, "the body must be sent as Content-Type: application/json")
	}
	body, err := web.ReadBody(w, r, web.MaxBody)
	if err != nil {
		return nil, err
	}
	var batch []json.RawMessage
	if bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")) && json.Unmarshal(body, &batch) == nil && len(batch) > maxBatch {
		return nil, domain.Errorf(domain.Invalid, "a batch may have at most %d messages", maxBatch)
	}
	return body, nil
}
