// Package mcp is the gateway's MCP server for coding agents: tools, resources and prompts over the same service calls
// as the API and the console. Requests are independent of each other; the HTTP guards and the access check run before
// it.
package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"switchyard/internal/domain"
	"switchyard/internal/keyed"
	"switchyard/internal/service"
	"switchyard/internal/web"
)

const instructions = "Switchyard gathers many projects: their stories, which move through stages, their events and " +
	"their build agents. " +
	"Begin with overview. Claim a story before you work on it (claim_story). Times end in _ms: Unix milliseconds. " +
	"In a list that was cut, more says how many are left out."

const (
	// maxTurns is how many requests of one caller are worked on at a time; the others wait in line, so that a thousand
	// batches of one caller do not keep everybody else from the processors.
	maxTurns = 8
	// turnTime is how long a request keeps its turn if it goes on, or waits for something.
	turnTime = 100 * time.Millisecond
)

type Server struct {
	web.Errors
	service *service.Service
	held    *web.HeldCalls
	turns   *keyed.Semaphore // by caller
	mcp     *sdk.Server
	tools   map[string]tool // by name
	// http is created by the first request: the tools' schemas take a megabyte and a millisecond, which most processes
	// never need.
	http func() (plain, streams http.Handler)
}

func New(s *service.Service, log *slog.Logger, version string, held *web.HeldCalls) *Server {
	server := &Server{
		Errors: web.Errors{Log: log}, service: s, held: held, turns: keyed.NewSemaphore(maxTurns),
		tools: map[string]tool{},
	}
	server.http = sync.OnceValues(func() (plain, streams http.Handler) { return server.handlers(version) })
	return server
}

func (server *Server) handlers(version string) (plain, streams http.Handler) {
	server.mcp = sdk.NewServer(&sdk.Implementation{Name: "switchyard", Title: "Switchyard", Version: version},
		&sdk.ServerOptions{
			Instructions: instructions,
			// No list ever changes, so there is nothing to subscribe to.
			Capabilities: &sdk.ServerCapabilities{
				Tools: &sdk.ToolCapabilities{}, Prompts: &sdk.PromptCapabilities{}, Resources: &sdk.ResourceCapabilities{},
			},
			SetCacheable: func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) { c.CacheScope = "private" },
		})
	server.addOverview()
	server.addStories()
	server.addClaims()
	server.addChanges()
	server.addQuestions()
	server.addEvents()
	server.addAlerts()
	server.addAgents()
	server.addProjects()
	server.addResources()
	server.addPrompts()
	server.mcp.AddReceivingMiddleware(server.guard)
	handler := func(plain bool) http.Handler {
		return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server.mcp }, &sdk.StreamableHTTPOptions{
			Stateless:    true,
			JSONResponse: plain, // nothing is sent before the answer
			// Our own guard checks host names first, and also accepts those that a proxy forwards.
			DisableLocalhostProtection: true,
		})
	}
	return handler(true), handler(false)
}

func (s *Server) Serve(w http.ResponseWriter, r *http.Request) error {
	body, stream, err := readBody(w, r)
	if err != nil {
		return err
	}
	if body == nil {
		w.WriteHeader(http.StatusAccepted)
		return nil
	}
	endTurn, err := s.beginTurn(r)
	if err != nil {
		return err
	}
	defer endTurn()
	s.forward(w, r, s.waitBefore(r, body), body, stream)
	return nil
}

func (s *Server) beginTurn(r *http.Request) (end func(), err error) {
	next, err := s.turns.Acquire(r.Context(), web.InfoOf(r.Context()).Caller)
	if err != nil {
		return nil, err
	}
	timer := time.AfterFunc(turnTime, next)
	return func() {
		timer.Stop()
		next()
	}, nil
}

// forward has the SDK answer the remaining messages of a request.
func (s *Server) forward(w http.ResponseWriter, r *http.Request, ctx context.Context, body []byte, stream bool) {
	var request *http.Request
	request = r.WithContext(context.WithValue(ctx, requestKey{}, &request))
	request.Body = io.NopCloser(bytes.NewReader(body))
	plain, streams := s.http()
	if stream {
		w.Header().Set("X-Accel-Buffering", "no") // nginx would buffer events
		streams.ServeHTTP(web.StreamWriter(w), request)
	} else {
		plain.ServeHTTP(w, request)
	}
}

type requestKey struct{}

// requestOf returns the HTTP request that carried a message. Handlers use its context, since the SDK's own outlives
// the request.
func requestOf(ctx context.Context) *http.Request { return *ctx.Value(requestKey{}).(**http.Request) }

// guard refuses methods that are not offered, some of which would hold a stream open, and turns a panic, which would
// end the process, into an error.
func (s *Server) guard(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, request sdk.Request) (result sdk.Result, err error) {
		defer func() {
			if cause := recover(); cause != nil {
				id := web.RequestID(ctx)
				s.Log.ErrorContext(ctx, "panic", "id", id, "method", method, "cause", cause, "stack", string(debug.Stack()))
				result, err = nil, errors.New("internal error, request "+id)
			}
		}()
		if !supportedMethods[method] {
			if asked, ok := request.GetParams().(*sdk.SubscribeParams); ok && strings.HasPrefix(asked.URI, unknownMethodPrefix) {
				method = strings.TrimPrefix(asked.URI, unknownMethodPrefix)
			}
			return nil, unknownMethod(method)
		}
		if call, ok := request.(*sdk.CallToolRequest); ok {
			r := requestOf(ctx)
			if call.Params.Arguments, err = s.understand(r, call.Params.Name, call.Params.Arguments); err != nil {
				return s.refusedCall(r, err), nil
			}
		}
		return next(ctx, method, request)
	}
}

// unknownMethod is the error for an unsupported method. It has the code of method-not-found without being that error,
// for which the SDK would use another text, with the method that keepRequest substitutes.
type unknownMethod string

func (m unknownMethod) Error() string {
	return fmt.Sprintf("method not found: %q; wait_for_events waits for news", domain.Cut(string(m), 100))
}

func (unknownMethod) As(target any) bool {
	err, ok := target.(**jsonrpc.Error)
	if ok {
		*err = &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound}
	}
	return ok
}

// maxBatch is the most messages in a batch, which earlier versions of the protocol allow. They are handled
// concurrently.
const maxBatch = 16

// newestVersion is the protocol version since which the SDK answers unknown methods as JSON-RPC requires.
const newestVersion = "2026-07-28"

// supportedMethods are the methods of requests that have an answer here.
var supportedMethods = map[string]bool{
	"initialize": true, "ping": true, "server/discover": true, "tools/list": true, "tools/call": true,
	"prompts/list": true, "prompts/get": true,
	"resources/list": true, "resources/templates/list": true, "resources/read": true,
}

type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  *string         `json:"method"` // nil for an answer
	Params  json.RawMessage `json:"params"` // decoded on its own: nested structs would take more stack, which a wait keeps
}

// toolCall is what a message calls, empty unless it calls a tool.
type toolCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Meta      json.RawMessage `json:"_meta"`
}

func (m message) toolCall() (call toolCall) {
	if m.Method != nil && *m.Method == "tools/call" {
		_ = json.Unmarshal(m.Params, &call) // the SDK refuses invalid ones
	}
	return call
}

func (c toolCall) wantsProgress() bool {
	var meta struct {
		ProgressToken any `json:"progressToken"`
	}
	_ = json.Unmarshal(c.Meta, &meta)
	return meta.ProgressToken != nil
}

// maxRequest has room for the longest tool input, and what is around it.
const maxRequest = domain.MaxToolInput + 64<<10

// readBody reads a request's message, or batch of messages, without the notifications: none of them matters to a server
// without sessions. The body is nil if nothing is left. stream is whether the answer has to be an event stream. It
// returns UnsupportedType, TooLarge and Invalid.
func readBody(w http.ResponseWriter, r *http.Request) (body []byte, stream bool, err error) {
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media != "application/json" {
		return nil, false, domain.Errorf(domain.UnsupportedType, "the body must be sent as Content-Type: application/json")
	}
	if body, err = web.ReadBody(w, r, maxRequest); err != nil {
		return nil, false, err
	}
	body = bytes.TrimSpace(body)
	if !json.Valid(body) {
		return nil, false, domain.Errorf(domain.Invalid, "the body must be one JSON-RPC message, or one batch")
	}
	if body[0] != '[' {
		kept, stream := keepRequest(body, r.Header)
		return kept, stream, nil
	}
	var batch, kept []json.RawMessage
	_ = json.Unmarshal(body, &batch) // a valid list
	switch {
	case len(batch) == 0:
		return nil, false, domain.Errorf(domain.Invalid, "a batch must have at least one message")
	case len(batch) > maxBatch:
		return nil, false, domain.Errorf(domain.Invalid, "a batch may have at most %d messages", maxBatch)
	}
	for _, text := range batch {
		if text, streams := keepRequest(text, r.Header); text != nil {
			kept, stream = append(kept, text), stream || streams
		}
	}
	if kept == nil {
		return nil, false, nil
	}
	return domain.EncodeJSON(kept), stream, nil
}

// unknownMethodPrefix precedes the name of a method that the SDK does not know, in the message that replaces it.
const unknownMethodPrefix = "method:"

// keepRequest returns the message for the SDK, nil for a notification.
func keepRequest(text []byte, header http.Header) (kept []byte, stream bool) {
	var m message
	_ = json.Unmarshal(text, &m) // the SDK refuses what is not a message
	switch {
	case m.Method == nil:
	case len(m.ID) == 0 || string(m.ID) == "null":
		return nil, false
	case !supportedMethods[*m.Method] && header.Get("Mcp-Protocol-Version") < newestVersion:
		// The SDK would refuse the whole batch as a bad HTTP request; guard refuses only this, by the method in uri.
		text = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":"resources/subscribe","params":{"uri":%s}}`,
			m.ID, domain.EncodeJSON(unknownMethodPrefix+*m.Method))
	default:
		call := m.toolCall()
		stream = call.Name == callProjectTool && call.wantsProgress() || call.Name == askTool || call.Name == permissionTool
	}
	return text, stream
}
