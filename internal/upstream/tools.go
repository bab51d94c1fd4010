package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/jsonscan"
	"switchyard/internal/keyed"
)

// maxToolPages, maxTools and maxToolBytes limit how much of a server's list of tools is read.
const maxToolPages, maxTools, maxToolBytes = 20, 1000, 1 << 20

// ListTools requests the tools of a project's MCP server. It returns NotFound for a project server without one, Invalid
// if the server refuses the request, BadGateway with a message for people for every other failure, or ctx's error.
func (c *Client) ListTools(ctx context.Context, p domain.Project) (tools []json.RawMessage, err error) {
	err = c.withMCP(ctx, p, func(session *mcpSession) error {
		params, size := map[string]any{}, 0
		for range maxToolPages {
			next := ""
			err := session.call(ctx, mcpRequest{method: "tools/list", params: params}, func(result []byte) error {
				page := jsonscan.NewReader(result)
				for name := range page.Parts() {
					switch {
					case name.Is("nextCursor") && page.Kind() == '"':
						next = page.Text()
					case name.Is("tools"):
						for range page.Parts() {
							tool := page.Value()
							if size += len(tool); len(tools) < maxTools && size <= maxToolBytes {
								tools = append(tools, bytes.Clone(tool))
							}
						}
					}
				}
				return page.End()
			})
			if err != nil {
				return err
			}
			if next == "" || len(tools) >= maxTools || size >= maxToolBytes {
				break
			}
			params["cursor"] = next
		}
		return nil
	})
	return tools, err
}

// CallTool calls a tool of a project's MCP server and returns the result object unchanged. progress, unless nil, gets
// the params of each of its progress notifications. The errors are those of ListTools; one that wraps
// domain.ErrMayHaveRun came after the tool was called.
func (c *Client) CallTool(
	ctx context.Context, p domain.Project, tool string, arguments json.RawMessage, progress func(json.RawMessage),
) (result json.RawMessage, err error) {
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	params := map[string]any{"name": tool, "arguments": arguments}
	if progress != nil {
		params["_meta"] = map[string]any{"progressToken": 1}
	}
	err = c.withMCP(ctx, p, func(session *mcpSession) error {
		request := mcpRequest{method: "tools/call", params: params, limit: c.ToolTimeout, progress: progress}
		err = session.call(ctx, request, func(found []byte) error {
			result = bytes.Clone(found)
			if len(result) <= sizes[0].bytes {
				return nil
			}
			return hold(ctx, c.largeResults)
		})
		if domain.CodeOf(err) == domain.BadGateway {
			err = domain.WrapError(domain.BadGateway, errors.Join(domain.ErrMayHaveRun, err), domain.MessageOf(err))
		}
		return err
	})
	return result, err
}

const (
	// maxLargeResults is how many tool results over 256 KiB are passed on at a time, since each is encoded several
	// times, and maxPictures how many pictures; others wait that long for their turn.
	maxLargeResults, maxPictures = 2, 8
	largeWait                    = 10 * time.Second
)

// hold waits for a slot, which is free again when ctx ends.
func hold(ctx context.Context, slots *keyed.Semaphore) error {
	bounded, cancel := context.WithTimeout(ctx, largeWait)
	defer cancel()
	release, err := slots.Acquire(bounded, "")
	if err != nil {
		return domain.WrapError(domain.BadGateway, err, "answer is large, and others that are large are being passed on")
	}
	context.AfterFunc(ctx, release)
	return nil
}

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
		if s.header.Get("Mcp-Session-Id") != "" { // a server that keeps sessions; errors do not matter
			_ = s.send(ctx, call{method: http.MethodDelete}, nil, ignore)
		}
	}
	if domain.CodeOf(err) == domain.Invalid {
		c.observe(ctx, p, "tools", nil)
		return err
	}
	return c.ended(ctx, p, "tools", err, "project '"+p.Name+"' has no MCP server at its /mcp")
}

func (s *mcpSession) begin(ctx context.Context) error {
	var server struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	err := s.call(ctx, mcpRequest{method: "initialize", params: map[string]any{
		"protocolVersion": mcpVersion, "capabilities": struct{}{},
		"clientInfo": map[string]string{"name": domain.GatewayUserAgent, "version": "1"},
	}}, func(result []byte) error {
		if err := json.Unmarshal(result, &server); err != nil || !isHeaderValue(server.ProtocolVersion) {
			return domain.WrapError(domain.BadGateway, err, errNoMCP.Message)
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.header.Set("Mcp-Protocol-Version", server.ProtocolVersion)
	initialized := map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"}
	return s.send(ctx, call{method: http.MethodPost}, initialized, ignore)
}

func ignore([]byte) error { return nil }

type mcpRequest struct {
	method   string
	params   any
	limit    time.Duration         // how long the answer may take; 0 is the client's timeout
	progress func(json.RawMessage) // gets the params of progress notifications; may be nil
}

// mcpMessage shares the memory of the answer that it is in.
type mcpMessage struct {
	ID     *int   `json:"id"`
	Method string `json:"method"`
	Params part   `json:"params"`
	Result part   `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

var errNoMCP = domain.Errorf(domain.BadGateway, "answers at /mcp with something other than MCP")

// call passes the result of a request to use, while nothing else that large is decoded.
func (s *mcpSession) call(ctx context.Context, r mcpRequest, use func(result []byte) error) error {
	s.lastID++
	var response mcpMessage
	var wrong error
	receive := func(text []byte) (done bool) {
		var message mcpMessage
		switch wrong = jsonscan.Check(text); {
		case wrong != nil || json.Unmarshal(text, &message) != nil:
		case message.Method == "notifications/progress" && r.progress != nil:
			r.progress(bytes.Clone(message.Params))
		case message.Method == "" && message.ID != nil && *message.ID == s.lastID:
			response = message
			return true
		}
		return false
	}
	read, seen := 0, 0
	receiveEvents := func(stream []byte) bool {
		news := stream[max(seen-2, 0):]
		for seen = len(stream); bytes.Contains(news, []byte("\n\n")) || bytes.Contains(news, []byte("\n\r\n")); {
			event, length := nextEvent(stream[read:])
			if length == 0 {
				return false
			}
			read += length
			if receive(event) {
				return true
			}
		}
		return false
	}
	c := call{method: http.MethodPost, limit: r.limit, enough: receiveEvents}
	request := map[string]any{"jsonrpc": "2.0", "id": s.lastID, "method": r.method, "params": r.params}
	return s.send(ctx, c, request, func(body []byte) error {
		if response.ID == nil && !receiveEvents(append(body, "\n\n"...)) {
			receive(body)
		}
		if response.Error != nil {
			text := domain.CutText(response.Error.Message)
			return domain.Errorf(domain.Invalid, "the project's MCP server refuses %s: %s", r.method, text)
		}
		if errors.Is(wrong, jsonscan.ErrMany) {
			return errManyValues
		}
		if len(response.Result) == 0 || response.Result[0] != '{' {
			return domain.WrapError(domain.BadGateway, wrong, errNoMCP.Message)
		}
		return use(response.Result)
	})
}

func (s *mcpSession) send(ctx context.Context, c call, message any, use func(body []byte) error) (err error) {
	c.path, c.header, c.any = mcpPath, s.header, true
	if message != nil {
		if c.body, err = json.Marshal(message); err != nil {
			return domain.WrapError(domain.Invalid, err, "arguments: must be a JSON object")
		}
	}
	return s.client.do(ctx, s.project, c, func(a answer) error {
		switch {
		case a.status == http.StatusNotFound || a.status == http.StatusMethodNotAllowed:
			return errNotFound
		case a.status >= http.StatusBadRequest && mediaType(a.header) != "application/json":
			return domain.Errorf(domain.BadGateway, "answers at /mcp with HTTP status %d", a.status)
		}
		if id := a.header.Get("Mcp-Session-Id"); isHeaderValue(id) && len(id) <= maxSessionID {
			s.header.Set("Mcp-Session-Id", id)
		}
		return use(a.body)
	})
}

// maxSessionID is the longest session id that is sent back, in bytes.
const maxSessionID = 1000

func isHeaderValue(text string) bool { return text != "" && domain.Secret(text).FitsHeader() }

const eventStream = "text/event-stream"

// nextEvent returns the data of the first event of a stream and the length of all up to its end, 0 if it is not
// complete.
func nextEvent(stream []byte) (data []byte, length int) {
	for line := range bytes.Lines(stream) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		length += len(line)
		text := bytes.TrimRight(line, "\r\n")
		if value, ok := bytes.CutPrefix(text, []byte("data:")); ok {
			data = append(append(data, bytes.TrimPrefix(value, []byte(" "))...), '\n')
		} else if len(text) == 0 {
			return data, length
		}
	}
	return nil, 0
}
