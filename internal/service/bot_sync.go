package service

import (
	"context"
	"reflect"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

// loop gives the local bot every new configuration and publishes its state to all gateways, until ctx ends.
func (s *sharedRunner) loop(ctx context.Context) error {
	defer s.testing.Wait()
	check, report := time.NewTicker(reloadInterval), time.NewTicker(botInterval)
	defer check.Stop()
	defer report.Stop()
	for {
		changed, moved := s.changes.Changed(domain.TopicBot), s.Leader.Changed()
		if err := s.sync(ctx); err != nil && ctx.Err() == nil && domain.CodeOf(err) != domain.Unavailable {
			s.log.WarnContext(ctx, "cannot update the shared state of the bot", "error", err)
		}
		for current := true; current; {
			select {
			case <-changed:
				current = false
			case <-moved:
				current = false
			case <-check.C:
				current = false
			case <-report.C:
				current = !s.isNews()
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// isNews reports whether the status of the bot, which runs here, differs from the stored one.
func (s *sharedRunner) isNews() bool {
	return s.Leader.Leads() && !reflect.DeepEqual(stored(s.local.Status()), s.last().Status)
}

// stored returns a status as it would be read back from the store.
func stored(status domain.BotStatus) domain.BotStatus {
	status.Since = time.UnixMilli(status.Since.UnixMilli())
	if status.Rooms == nil {
		status.Rooms = []string{}
	}
	return status
}

// sync reads changes from the store and, if the bot runs here, stores its state.
func (s *sharedRunner) sync(ctx context.Context) error {
	_, version, err := s.Store.BotConfig(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	isNew := version != s.started
	s.mu.Unlock()
	if isNew {
		limited, cancel := context.WithTimeout(ctx, saveLimit)
		err := s.local.Restart(limited)
		cancel()
		if err != nil {
			return err
		}
	}
	run, err := s.Store.BotRun(ctx)
	if err != nil && domain.CodeOf(err) != domain.NotFound {
		return err
	}
	token, leads := s.Leader.Token()
	if !leads {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.run = run
		return nil
	}
	s.mu.Lock()
	now := domain.BotRun{Status: stored(s.local.Status()), Version: s.started, Gateway: s.Gateway}
	s.run = now
	s.mu.Unlock()
	if now.Version != run.Version || now.Gateway != run.Gateway || !reflect.DeepEqual(now.Status, run.Status) {
		if err := s.Store.SetBotRun(ctx, token, now); err != nil {
			return err
		}
	}
	return s.answerTests(ctx)
}

// answerTests sends the test messages that other gateways ask for.
func (s *sharedRunner) answerTests(ctx context.Context) error {
	for {
		id, err := s.Store.TakeBotTest(ctx)
		if domain.CodeOf(err) == domain.NotFound {
			return nil
		}
		if err != nil {
			return err
		}
		s.testing.Add(1)
		supervise.Go(s.log, "test message", func() {
			defer s.testing.Done()
			limited, cancel := context.WithTimeout(ctx, testLimit)
			defer cancel()
			answer := ""
			if err := s.local.SendTest(limited); err != nil {
				answer = domain.MessageOf(err)
			}
			if err := s.Store.AnswerBotTest(context.WithoutCancel(ctx), id, answer); err != nil {
				s.log.WarnContext(ctx, "cannot store the result of a test message", "error", err)
			}
		})
	}
}
