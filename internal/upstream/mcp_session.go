package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"strings"

	"switchyard/internal/domain"
)

const (
	mcpPath = "/mcp"
	// mcpVersion is the protocol version that is offered; newer servers also support it.
	mcpVersion = "2025-06-18"
)

// mcpSession is a session with the MCP server of a project. It is not the SDK's client, since results must be passed on
// unchanged: the SDK decodes them and drops fields that it does not know.
type mcpSession struct {
	client  *Client
	project domain.Project
	header  http.Header
	lastID  int
}

// withMCP begins a session, calls use, and ends the session. Each exchange may take the client's timeout.
func (c *Client) withMCP(ctx context.Context, p domain.Project, use func(*mcpSession) error) error {
	s := &mcpSession{client: c, project: p, header: http.Header{"Accept": {"application/json, text/event-stream"}}}
	err := s.begin(ctx)
	if err == nil {
		err = use(s)
		s.end(ctx)
	}
	notFound := errors.Is(err, errNotFound)
	if ctx.Err() == nil || err == nil {
		c.observe(p.Name, "tools", unless(notFound || domain.CodeOf(err) == domain.Invalid, err))
	}
	if notFound {
		return domain.WrapError(domain.NotFound, err, "project '"+p.Name+"' has no MCP server at its /mcp")
	}
	return err
}

func (s *mcpSession) begin(ctx context.Context) error {
	result, err := s.call(ctx, "initialize", map[string]any{
		"protocolVersion": mcpVersion, "capabilities": struct{}{},
		"clientInfo": map[string]string{"name": domain.GatewayUserAgent, "version": "1"},
	})
	if err != nil {
		return err
	}
	var server struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	if err := json.Unmarshal(result, &server); err != nil || !isHeaderValue(server.ProtocolVersion) {
		return domain.WrapError(domain.BadGateway, err, "answers at /mcp with something other than MCP")
	}
	s.header.Set("Mcp-Protocol-Version", server.ProtocolVersion)
	_, err = s.send(ctx, http.MethodPost, map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
	return err
}

// end ends the session at a server that keeps them. Errors do not matter.
func (s *mcpSession) end(ctx context.Context) {
	if s.header.Get("Mcp-Session-Id") != "" {
		_, _ = s.send(ctx, http.MethodDelete, nil)
	}
}

// call sends a request and returns its result.
func (s *mcpSession) call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	s.lastID++
	body, err := s.send(ctx, http.MethodPost, map[string]any{"jsonrpc": "2.0", "id": s.lastID, "method": method, "params": params})
	if err != nil {
		return nil, err
	}
	for _, message := range messages(body) {
		var response struct {
			ID     *int            `json:"id"`
			Method string          `json:"method"`
			Result json.RawMessage `json:"result"`
			Error  *struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		if json.Unmarshal(message, &response) != nil || response.ID == nil || *response.ID != s.lastID || response.Method != "" {
			continue
		}
		if response.Error != nil {
			return nil, domain.Errorf(domain.Invalid, "the project's MCP server refuses %s: %s", method, domain.CutText(response.Error.Message))
		}
		if result := bytes.TrimSpace(response.Result); len(result) > 0 && result[0] == '{' {
			return result, nil
		}
	}
	return nil, domain.Errorf(domain.BadGateway, "answers at /mcp with something other than MCP")
}

// send makes one exchange and returns the answer's body.
func (s *mcpSession) send(ctx context.Context, method string, message any) (body mcpBody, err error) {
	c := call{method: method, path: mcpPath, header: s.header, any: true}
	if message != nil {
		if c.body, err = json.Marshal(message); err != nil {
			return body, domain.WrapError(domain.Invalid, err, "arguments: must be a JSON object")
		}
	}
	err = s.client.do(ctx, s.project, c, func(a answer) error {
		media, _, _ := mime.ParseMediaType(a.header.Get("Content-Type"))
		switch {
		case a.status == http.StatusNotFound || a.status == http.StatusMethodNotAllowed:
			return errNotFound
		case a.status >= http.StatusBadRequest && media != "application/json":
			return domain.Errorf(domain.BadGateway, "answers at /mcp with HTTP status %d", a.status)
		}
		if id := a.header.Get("Mcp-Session-Id"); isHeaderValue(id) && len(id) <= maxSessionID {
			s.header.Set("Mcp-Session-Id", id)
		}
		body = mcpBody{bytes.Clone(a.body), media == "text/event-stream"}
		return nil
	})
	return body, err
}

// maxSessionID is the longest session id that is sent back, in bytes.
const maxSessionID = 1000

func isHeaderValue(text string) bool { return text != "" && domain.Secret(text).FitsHeader() }

// mcpBody is the body of a server's answer.
type mcpBody struct {
	data     []byte
	isStream bool
}

// messages returns the JSON-RPC messages of an answer.
func messages(b mcpBody) [][]byte {
	if !b.isStream {
		return [][]byte{b.data}
	}
	var found [][]byte
	var event []byte
	for line := range bytes.Lines(append(b.data, "\n\n"...)) {
		text := strings.TrimRight(string(line), "\r\n")
		switch data, ok := strings.CutPrefix(text, "data:"); {
		case ok:
			event = append(append(event, strings.TrimPrefix(data, " ")...), '\n')
		case text == "" && len(event) > 0:
			found, event = append(found, event), nil
		}
	}
	return found
}
