package service

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

func (s *Questions) alerts() (found []domain.Alert) {
	for _, q := range s.Recent() {
		if q.State == domain.QuestionOpen {
			found = append(found, questionAlert(q))
		}
	}
	return found
}

func questionAlert(q domain.Question) domain.Alert {
	a := domain.Alert{
		Kind: domain.AlertQuestion, Question: q.ID, Project: q.Project, Agent: q.By, AgentID: q.AgentID,
		Reason: domain.Cut(q.Prompt, domain.MaxText), Since: q.AskedAt,
	}
	if q.StoryID != "" {
		a.Story = &domain.Item{StoryID: q.StoryID, StoryName: q.StoryID}
	}
	return a
}

// Run ends questions that have expired and removes old ones, until ctx ends. The leader does that.
func (s *Questions) Run(ctx context.Context) error {
	swept := time.Time{}
	for supervise.Sleep(ctx, questionCheck) {
		token, leads := s.leader.Token()
		if !leads {
			continue
		}
		now, expired := clock.Now(), false
		for _, q := range *s.current.Load() {
			if q.State == domain.QuestionOpen && q.At(now).State == domain.QuestionExpired {
				err := s.store.EndQuestion(ctx, nil, q.At(now))
				if err != nil && domain.CodeOf(err) != domain.NotFound {
					return supervise.UnlessEnded(ctx, unlessLost(err))
				}
				expired = true
			}
		}
		if expired {
			if err := unlessLost(s.load(ctx)); err != nil {
				return supervise.UnlessEnded(ctx, err)
			}
		}
		if time.Since(swept) > questionSweep {
			swept = time.Now()
			err := s.store.RemoveQuestions(ctx, token, now.Add(-questionLife), endedQuestions)
			if err := unlessLost(err); err != nil {
				return supervise.UnlessEnded(ctx, err)
			}
		}
	}
	return nil
}

// Wait returns a question as soon as it is no longer open, or as it is when the time is over or ctx ends.
func (s *Questions) Wait(ctx context.Context, id int64, wait time.Duration) (domain.Question, error) {
	late, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		changed := s.Changed()
		if q, known := s.known(id); !known || q.State != domain.QuestionOpen || late.Err() != nil {
			// Another gateway's question may not be known here yet.
			q, err := s.Get(context.WithoutCancel(ctx), id)
			if err != nil || q.State != domain.QuestionOpen || late.Err() != nil {
				return q, err
			}
		}
		select {
		case <-changed:
		case <-time.After(questionCheck):
		case <-late.Done():
		}
	}
}

func (s *Questions) known(id int64) (domain.Question, bool) {
	recent := *s.current.Load()
	i := slices.IndexFunc(recent, func(q domain.Question) bool { return q.ID == id })
	if i < 0 {
		return domain.Question{}, false
	}
	return recent[i].At(clock.Now()), true
}

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
