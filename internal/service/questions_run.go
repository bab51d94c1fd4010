package service

import (
	"context"
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
		for _, q := range *s.recent.Load() {
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
	again := time.NewTicker(questionCheck)
	defer again.Stop()
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
		case <-again.C:
		case <-late.Done():
		}
	}
}

func (s *Questions) known(id int64) (domain.Question, bool) {
	recent := *s.recent.Load()
	i := slices.IndexFunc(recent, func(q domain.Question) bool { return q.ID == id })
	if i < 0 {
		return domain.Question{}, false
	}
	return recent[i].At(clock.Now()), true
}
