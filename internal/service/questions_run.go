package service

import (
	"cmp"
	"context"
	"encoding/json"
	"sync"
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

// Run ends questions that have expired or that nobody waits for any more, and removes old ones, until ctx ends. The
// leader does that. Each gateway says which questions it holds.
func (s *Questions) Run(ctx context.Context) error {
	swept, said := time.Time{}, time.Time{}
	for supervise.Sleep(ctx, questionCheck) {
		if time.Since(said) > holdLease/2 {
			said = time.Now()
			if err := s.sayHeld(ctx); err != nil {
				return supervise.UnlessEnded(ctx, err)
			}
		}
		if err := s.settle(ctx); err != nil {
			return supervise.UnlessEnded(ctx, unlessLost(err))
		}
		token, leads := s.leader.Token()
		if leads && time.Since(swept) > questionSweep {
			swept = time.Now()
			err := s.store.RemoveQuestions(ctx, token, clock.Now().Add(-questionLife), endedQuestions)
			if err := unlessLost(err); err != nil {
				return supervise.UnlessEnded(ctx, err)
			}
		}
	}
	return nil
}

// settle forgets what ended a while ago and, on the leader, ends what is over.
func (s *Questions) settle(ctx context.Context) error {
	now, leads, askers := clock.Now(), s.leader.Leads(), sync.OnceValue(s.sessions.byAsker)
	for _, q := range s.table.list() {
		switch {
		case q.State != domain.QuestionOpen:
			if now.Sub(q.Ended) >= shownEnded {
				s.table.edit(nil, q.ID)
			}
			continue
		case !leads:
			continue
		case q.At(now).State == domain.QuestionExpired:
			q = q.At(now)
		case !q.Lasting && !s.held.has(q.ID) && now.Sub(s.held.since(q)) > domain.UnheldLife,
			!q.Lasting && !s.at(q, now).Held && s.sessions.hasResumed(q, askers()): // it was answered in the terminal
			q.State, q.Ended = domain.QuestionWithdrawn, now
		default:
			continue
		}
		err := s.table.write(ctx, func(ctx context.Context) ([]domain.Question, []int64, error) {
			whole, err := s.store.Question(ctx, q.ID)
			if err == nil {
				whole.State, whole.Ended, whole.HeldUntil = q.State, q.Ended, q.HeldUntil
				err = s.store.EndQuestion(ctx, nil, whole)
			}
			return []domain.Question{q}, nil, err
		})
		if domain.CodeOf(err) == domain.NotFound { // it has ended, or is held, elsewhere
			err = s.table.load(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Wait returns a question as soon as it is no longer open, or as it is when the time is over or ctx ends. Until then it
// is held.
func (s *Questions) Wait(ctx context.Context, id int64, wait time.Duration) (domain.Question, error) {
	if wait > 0 {
		defer s.hold(ctx, id)()
	}
	late, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		changed := s.table.changed(id)
		q, known := s.table.get(id)
		if !known || q.At(clock.Now()).State != domain.QuestionOpen || late.Err() != nil {
			// Another gateway's question may not be known here yet.
			q, err := s.Get(context.WithoutCancel(ctx), id)
			if err == nil && q.State == domain.QuestionAnswered && ctx.Err() == nil {
				err = s.markReached(ctx, q)
			}
			if err != nil || q.State != domain.QuestionOpen || late.Err() != nil {
				return q, err
			}
		}
		supervise.Await(late, changed, questionCheck)
	}
}

// markReached notes that the answer to a question reaches the actor of ctx, if that actor asked it.
func (s *Questions) markReached(ctx context.Context, q domain.Question) error {
	actor := domain.ActorOf(ctx)
	if actor.Holder() != q.Asker || q.HasReached(channelName(actor)) {
		return nil
	}
	return s.store.ReachQuestion(context.WithoutCancel(ctx), q.ID, channelName(actor))
}

// Decision is whether a tool may be used. Message says why not, "" if it may.
type Decision struct {
	Allowed bool
	Message string
	Input   json.RawMessage // what people were shown, with their answers if there are any
	// Answered is whether people have picked options, which Input contains.
	Answered bool
}

// Permission asks whether a tool may be used, and waits until somebody has answered or the question has ended: the
// passing of time allows nothing. useID is the coding agent's id for the use, session that of its session; each may be
// "". held is the context of the wait: if it ends, the question stays open for a while, and Unavailable is returned. It
// returns TooLarge, Conflict if the id is that of another tool's use, and what Ask returns.
func (s *Questions) Permission(
	ctx, held context.Context, use domain.ToolUse, useID, session string,
) (Decision, error) {
	if use.Name == "" || len(use.Name) > domain.MaxText {
		return Decision{}, domain.Errorf(domain.Invalid, "tool_name: is required")
	}
	if len(useID) > domain.MaxText || len(session) > domain.MaxText {
		return Decision{}, domain.Errorf(domain.Invalid, "the ids of a session and of a tool's use are too long")
	}
	if len(use.Input) == 0 || !json.Valid(use.Input) {
		use.Input = json.RawMessage("{}")
	}
	if len(use.Input) > domain.MaxToolInput {
		return Decision{}, domain.Errorf(domain.TooLarge, "the tool's input must be at most %d bytes", domain.MaxToolInput)
	}
	session = cmp.Or(session, s.sessions.byToolUse(domain.ActorOf(ctx).Holder(), useID))
	asked := domain.Question{
		Kind: domain.QuestionPermission, Prompt: "May I use " + use.Name + "?", Tool: &use, UseID: useID, Session: session,
	}
	if use.Name == domain.ExitPlanMode {
		asked.Prompt = "May I carry out this plan?"
	}
	if choices := use.Choices(); choices != nil {
		asked.Kind, asked.Prompt = domain.QuestionChoice, choices[0].Prompt
		if len(choices) == 1 && !choices[0].Multiple {
			asked.Options = choices[0].Labels()
		}
	}
	q, err := s.Ask(ctx, asked, 0)
	if err != nil {
		return Decision{}, err
	}
	if q.Tool == nil || q.Tool.Name != use.Name {
		return Decision{}, domain.Errorf(domain.Conflict, "this id is that of another question, which is still open")
	}
	if q.Key == questionKey(asked) {
		q.Tool = &use // in full, however long; otherwise what was shown is allowed
	}
	shown := q.Tool
	if q, err = s.Await(held, q); err != nil {
		return Decision{}, err
	}
	switch {
	case q.State != domain.QuestionAnswered:
		return Decision{Message: "Nobody allowed this: the question " + q.Ending() + "."}, nil
	case q.Answer.Answers != nil:
		return Decision{Allowed: true, Input: shown.WithAnswers(q.Answer.Answers), Answered: true}, nil
	case q.Answer.Value == domain.Allow:
		return Decision{Allowed: true, Input: shown.Input}, nil
	}
	return Decision{Message: cmp.Or(q.Answer.Text, "Denied by "+q.Answer.By+".")}, nil
}

// Await waits until a question is no longer open. It returns Unavailable if held, the context of the wait, ends: the
// question stays open for whoever asks again.
func (s *Questions) Await(held context.Context, q domain.Question) (domain.Question, error) {
	q, err := s.Wait(held, q.ID, domain.MaxQuestionLife)
	if err == nil && q.State == domain.QuestionOpen {
		err = domain.Errorf(domain.Unavailable, "the gateway is stopping; the question stays open: ask again")
	}
	return q, err
}
