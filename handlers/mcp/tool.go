package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"switchyard/internal/domain"
	"switchyard/internal/web"
	"switchyard/internal/wire"
)

type tool struct {
	name, description string
	arguments         string   // the properties of its JSON schema
	required          []string // arguments
	nullable          []string // arguments for which null differs from leaving them out
	needs             domain.Role
	agents            bool // agents' tokens suffice, in their projects
	foreign           bool // what it does is decided by somebody else's server
	essential         bool // clients that load tools on demand load it at once
	ofProject         bool // it needs a project, which an agent need not name
}

// add adds a tool. run gets the context of the HTTP request; its result is encoded as one JSON object, unless it is
// already a tool result.
func add[In, Out any](s *Server, t tool, run func(ctx context.Context, in In) (Out, error)) {
	schema := fmt.Sprintf(`{"type":"object","properties":{%s},"additionalProperties":false`, t.arguments)
	if len(t.required) > 0 {
		schema += `,"required":` + string(domain.EncodeJSON(t.required))
	}
	described := &sdk.Tool{
		Name: t.name, Description: t.description, InputSchema: json.RawMessage(schema + "}"),
		// None of our own tools destroys anything. Clients ask people about whatever is left unspecified.
		Annotations: &sdk.ToolAnnotations{
			ReadOnlyHint: t.needs == domain.RoleViewer, DestructiveHint: &t.foreign, OpenWorldHint: &t.foreign,
		},
	}
	if t.essential {
		described.Meta = sdk.Meta{"anthropic/alwaysLoad": true}
	}
	s.tools[t.name] = t
	sdk.AddTool(s.mcp, described, func(
		ctx context.Context, call *sdk.CallToolRequest, in In,
	) (*sdk.CallToolResult, any, error) {
		r := requestOf(ctx)
		with := context.WithValue(r.Context(), progressKey{}, progress(ctx, call))
		out, err := run(context.WithValue(with, argumentsKey{}, call.Params.Arguments), in)
		if err != nil {
			return nil, nil, s.explain(r, err)
		}
		if result, ok := any(out).(*sdk.CallToolResult); ok {
			return result, nil, nil
		}
		text := domain.EncodeJSON(out)
		return &sdk.CallToolResult{
			Content: []sdk.Content{&sdk.TextContent{Text: string(text)}}, StructuredContent: json.RawMessage(text),
		}, nil, nil
	})
}

// allow returns Forbidden unless the caller may call the tool.
func (t tool) allow(actor domain.Actor) error {
	if actor.Role.Allows(t.needs) || t.agents && actor.AgentID != "" {
		return nil
	}
	return domain.Errorf(domain.Forbidden, "%s needs the role %s, and your token has the role %s. Do without it, or ask "+
		"an administrator of this gateway for another token", t.name, t.needs, actor.Role)
}

type progressKey struct{}

// argumentsKey is for the arguments of a call as received: the SDK rounds large numbers.
type argumentsKey struct{}

// progress returns what passes a progress notification on to the caller, nil if it sent no token for that.
func progress(ctx context.Context, call *sdk.CallToolRequest) func(notification json.RawMessage) {
	token := call.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	return func(notification json.RawMessage) {
		var params sdk.ProgressNotificationParams
		if json.Unmarshal(notification, &params) != nil {
			return
		}
		params.Meta, params.ProgressToken, params.Message = nil, token, domain.CutText(params.Message)
		_ = call.Session.NotifyProgress(ctx, &params) // without the caller there is nobody to tell
	}
}

// explain words an error for a model: what is wrong, and what to do next.
func (s *Server) explain(r *http.Request, err error) error {
	s.LogCause(r, err)
	text := shorten(strings.TrimRight(domain.MessageOf(err), ".\n"), 2*maxMessage)
	switch domain.CodeOf(err) {
	case domain.Internal:
		text = fmt.Sprintf("internal error, request %s. Try again later; the gateway's log has the cause under this id",
			web.RequestID(r.Context()))
	case domain.BadGateway:
		if errors.Is(err, domain.ErrMayHaveRun) {
			text = "no usable answer from the project's tool: " + text + ". It may have run: find out before you call it " +
				"once more"
			break
		}
		text = "no usable answer from the project server: " + text + ". Try again in a minute; overview says which " +
			"projects are reachable"
	case domain.Unavailable:
		text += ". Try again in a minute"
	}
	return errors.New(text + ".")
}

// parseWait reads how long a call may wait, 0 for "". It returns Invalid, with an example.
func parseWait(text, example string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	wait, err := time.ParseDuration(text)
	if err != nil || wait < 0 {
		return 0, domain.Errorf(domain.Invalid, "wait: must be a duration such as %s", example)
	}
	return wait, nil
}

// maxMessage is how much of an error is shown, in bytes: it may quote the caller's arguments.
const maxMessage = 1000

// hint adds what to do next to an error with that code.
func hint(err error, code domain.Code, next string) error {
	if domain.CodeOf(err) != code {
		return err
	}
	text := shorten(strings.TrimRight(domain.MessageOf(err), ".\n"), maxMessage)
	return domain.WrapError(code, err, text+". "+next)
}

// checkProject returns NotFound for an unknown project, with the names of those that exist.
func (s *Server) checkProject(name string) error {
	registry := s.service.Projects.Registry()
	if _, found := registry.Find(name); found {
		return nil
	}
	names := list[string]{most: maxChoices}
	for _, p := range registry.Projects {
		names.add(p.Name)
	}
	if name == "" {
		return domain.Errorf(domain.Invalid, "project: which one? overview shows them")
	}
	text := "There are no projects yet"
	if len(names.items) > 0 {
		text = "There are: " + strings.Join(names.items, ", ")
	}
	if names.more > 0 {
		text += fmt.Sprintf(", and %d more, which search finds", names.more)
	}
	return domain.Errorf(domain.NotFound, "project '%s' does not exist. %s", domain.CutText(name), text)
}

// storyIDs lists a project's stories for a call that names an unknown one, starting with the first stages.
func (s *Server) storyIDs(project string) string {
	ids := list[string]{most: maxChoices}
	for _, stage := range s.service.Pipelines.Stages(project) {
		for i := range stage.Items {
			ids.add(short(stage.Items[i].StoryID))
		}
	}
	if len(ids.items) == 0 {
		return "Its board shows no stories"
	}
	text := "Its stories are: " + strings.Join(ids.items, ", ")
	if ids.more > 0 {
		text += fmt.Sprintf(", and %d more: list_stories shows the ids, and search finds stories by their names", ids.more)
	}
	return text
}

const (
	// maxChoices is how many names or ids an error lists.
	maxChoices = 20
	// maxList is how many entries a list has at most, and maxListBytes their size: more would fill a model's context.
	maxList, maxListBytes = 50, 16 << 10
	// maxShown is how much of a name or reason is shown, in bytes.
	maxShown = 300
)

// list takes the items that fit in an answer, at least one, and counts the rest.
type list[T any] struct {
	items []T
	more  int
	most  int // how many entries fit, 0 for maxList
	bytes int
}

func (l *list[T]) add(item T) {
	if l.most == 0 {
		l.most = maxList
	}
	if l.more == 0 && len(l.items) < l.most {
		if l.bytes += len(domain.EncodeJSON(item)); l.bytes <= maxListBytes || len(l.items) == 0 {
			l.items = append(l.items, item)
			return
		}
	}
	l.more++
}

// shown returns the entries, never null as JSON.
func (l *list[T]) shown() []T { return append([]T{}, l.items...) }

func short(text string) string { return shorten(text, maxShown) }

// shorten cuts a text to a number of bytes, which is what it costs a model.
func shorten(text string, most int) string {
	if short := domain.CutBytes(text, most); short != text {
		return short + "…"
	}
	return text
}

func shortOrNull(text string) *string { return wire.OrNull(short(text)) }
