package service

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"switchyard/internal/domain"
)

// Decision is whether a tool may be used. Message says why not, "" if it may.
type Decision struct {
	Allowed bool
	Message string
	Input   json.RawMessage // what people were shown
}

// Permission asks whether a tool may be used, and waits until somebody has answered or the question has ended: nothing
// is allowed by time. What was asked before under the same key, and is open, is the same question. held is the context
// of the wait. If only ctx, the caller's connection, ends, the question is withdrawn; if this gateway stops, it stays
// open, and Unavailable is returned. It returns Conflict if the key is that of another tool, and what Ask returns.
func (s *Questions) Permission(ctx, held context.Context, use domain.ToolUse, key string) (Decision, error) {
	if use.Name == "" || len(use.Name) > domain.MaxText {
		return Decision{}, domain.Errorf(domain.Invalid, "tool_name: is required")
	}
	if len(use.Input) == 0 || !json.Valid(use.Input) {
		use.Input = json.RawMessage("{}")
	}
	if len(use.Input) > domain.MaxDetail {
		return Decision{}, domain.Errorf(domain.Invalid, "the tool's input must be at most %d bytes", domain.MaxDetail)
	}
	q, err := s.Ask(ctx, domain.Question{
		Kind: domain.QuestionPermission, Prompt: "May I use " + use.Name + "?", Tool: &use, ToolKey: key,
	}, 0)
	if err != nil {
		return Decision{}, err
	}
	if q.Tool == nil || q.Tool.Name != use.Name {
		return Decision{}, domain.Errorf(domain.Conflict, "this id is that of another question, which is still open")
	}
	if q, err = s.Await(ctx, held, q); err != nil {
		return Decision{}, err
	}
	switch {
	case q.State != domain.QuestionAnswered:
		return Decision{Message: "Nobody allowed this: the question " + q.Ending() + "."}, nil
	case q.Answer.Value == domain.Allow:
		return Decision{Allowed: true, Input: q.Tool.Input}, nil
	}
	return Decision{Message: cmp.Or(q.Answer.Text, "Denied by "+q.Answer.By+".")}, nil
}

// Await waits until a question is no longer open. When the caller's connection, ctx, ends, it withdraws the question if
// that is the caller's own. It returns Unavailable when only held, the context of the wait, ends.
func (s *Questions) Await(ctx, held context.Context, q domain.Question) (domain.Question, error) {
	q, err := s.Wait(held, q.ID, domain.MaxQuestionLife)
	if err != nil || q.State != domain.QuestionOpen {
		return q, err
	}
	if ctx.Err() != nil {
		if domain.ActorOf(ctx).Holder() != q.Asker {
			return q, nil
		}
		return q, s.Withdraw(context.WithoutCancel(ctx), q.ID)
	}
	return q, domain.Errorf(domain.Unavailable, "the gateway is stopping; the question stays open: ask again")
}

// ToolKey returns the ToolKey of the use of a tool in a session.
func ToolKey(parts ...string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", parts))
	return hex.EncodeToString(sum[:16])
}
