package mcp

import (
	"context"
	"encoding/json"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/supervise"
	"switchyard/internal/wire"
)

// Tools that people answer. They are streams with an occasional progress notification, so that no client gives up.
const (
	askTool        = "ask"
	permissionTool = "permission"
)

// progressInterval is how often a held question tells its client that it is still going.
const progressInterval = 10 * time.Second

func (s *Server) addQuestions() {
	add(s, tool{
		name: askTool, needs: domain.RoleOperator, agents: true, essential: true,
		description: "Ask people, and wait for the answer: one of options, or without them a text. With wait it returns " +
			"{id, state: open} when that is over; ask with id goes on waiting.",
		arguments: `"prompt":{"type":"string"},"options":{"type":"array","items":{"type":"string"},"description":"2 to 9"},` +
			`"project":{"type":"string"},"story_id":{"type":"string"},"wait":{"type":"string","description":"such as 5m"},` +
			`"id":{"type":"string"}`,
	}, s.ask)
	add(s, tool{
		name: permissionTool, needs: domain.RoleOperator, agents: true, required: []string{"tool_name", "input"},
		description: "Ask people whether a tool may be used, as Claude Code's --permission-prompt-tool does.",
		arguments:   `"tool_name":{"type":"string"},"input":{"type":"object"},"tool_use_id":{"type":"string"}`,
	}, s.permission)
}

// hold counts a call that waits for people, and regularly tells the client that it is still going.
func (s *Server) hold(ctx context.Context) (held context.Context, release func(), err error) {
	held, leave, err := s.held.Hold(requestOf(ctx))
	if err != nil {
		return nil, nil, err
	}
	tell, _ := ctx.Value(progressKey{}).(func(json.RawMessage))
	if tell == nil {
		return held, leave, nil
	}
	ticker, done := time.NewTicker(progressInterval), make(chan struct{})
	supervise.Go(s.Log, "progress of a question", func() {
		for n := 1; ; n++ {
			select {
			case <-ticker.C:
				tell(domain.EncodeJSON(map[string]any{"progress": n, "message": "waiting for an answer"}))
			case <-done:
				return
			}
		}
	})
	return held, func() {
		ticker.Stop()
		close(done)
		leave()
	}, nil
}

func (s *Server) ask(ctx context.Context, in struct {
	Prompt  string   `json:"prompt"`
	Options []string `json:"options"`
	Project string   `json:"project"`
	StoryID string   `json:"story_id"`
	Wait    string   `json:"wait"`
	ID      string   `json:"id"`
},
) (any, error) {
	wait, err := parseWait(in.Wait, "5m")
	if err != nil {
		return nil, err
	}
	held, release, err := s.hold(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	q := domain.Question{
		Project: in.Project, StoryID: in.StoryID, Kind: domain.QuestionText, Prompt: in.Prompt, Options: in.Options,
		Lasting: in.Wait != "",
	}
	if len(in.Options) > 0 {
		q.Kind = domain.QuestionChoice
	}
	if in.ID != "" {
		id, err := service.ParseQuestionID(in.ID)
		if err == nil {
			q, err = s.service.Questions.Get(ctx, id)
		}
		if err != nil {
			return nil, err
		}
	} else if q, err = s.service.Questions.Ask(ctx, q, 0); err != nil {
		return nil, err
	}
	if in.Wait == "" {
		q, err = s.service.Questions.Await(held, q)
		return wire.NewQuestion(q), err
	}
	if q, err = s.service.Questions.Wait(held, q.ID, wait); err == nil && q.State == domain.QuestionOpen {
		return struct {
			ID    string               `json:"id"`
			State domain.QuestionState `json:"state"`
		}{wire.NewQuestion(q).ID, q.State}, nil
	}
	return wire.NewQuestion(q), err
}

// permission answers in the form that Claude Code reads: a text with JSON. It refuses an allow without updatedInput.
func (s *Server) permission(ctx context.Context, in struct {
	ToolName  string          `json:"tool_name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
},
) (any, error) {
	held, release, err := s.hold(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	var sent struct {
		Input json.RawMessage `json:"input"`
	}
	raw, _ := ctx.Value(argumentsKey{}).(json.RawMessage)
	if json.Unmarshal(raw, &sent) == nil && sent.Input != nil {
		in.Input = sent.Input
	}
	use := domain.ToolUse{Name: in.ToolName, Input: in.Input}
	decision, err := s.service.Questions.Permission(ctx, held, use, in.ToolUseID, "")
	if err != nil {
		return nil, err
	}
	result := map[string]any{"behavior": domain.Deny, "message": decision.Message}
	if decision.Allowed {
		result = map[string]any{"behavior": domain.Allow, "updatedInput": decision.Input}
	}
	return &sdk.CallToolResult{
		Content: []sdk.Content{&sdk.TextContent{Text: string(domain.EncodeJSON(result))}},
	}, nil
}
