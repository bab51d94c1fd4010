package service

import (
	"context"
	"strings"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

// Heartbeat records a heartbeat and returns the agent: at once if its assignment or its project's address is not what
// the agent knows, otherwise when either changes. It waits for at most b.Wait or a third of the agent timeout, until
// ctx ends, or until another heartbeat of the agent waits. It returns Unauthorized if the agent is removed. The caller
// has checked the agent's secret.
func (s *Agents) Heartbeat(ctx context.Context, id string, b Heartbeat) (domain.Agent, error) {
	hold := time.After(onTick(min(b.Wait, s.table.timeout/3)))
	if b.Detail != nil && len(*b.Detail) > maxDetail {
		end := strings.ToValidUTF8((*b.Detail)[len(*b.Detail)-maxDetail:], "")
		b.Detail = &end
	}
	entry, known := s.table.get(id)
	if !known {
		return domain.Agent{}, wrongSecret()
	}
	shared := s.table.reloader.changes != nil
	sent, superseded := entry.begin(b, shared)
	defer entry.end()
	over := b.Wait <= 0
	if sent.url == "" && shared && time.Since(s.projects.current.Load().moved[b.Assigned]) <= s.table.timeout {
		sent.url = "unknown" // another gateway answered last, perhaps with the old address
	}
	for {
		registryChanged := s.projects.Changed()
		agent, changed, ok := entry.view(s.projects.Registry())
		if !ok {
			return domain.Agent{}, wrongSecret()
		}
		now := assignment{agent.Project, agent.ProjectURL}
		if sent.url == "" && now.project == sent.project {
			sent.url = now.url // on the first pass: only later changes count
		}
		if over || now != sent {
			if entry.send(now) && shared {
				// Stored before the answer, so that the next heartbeat, to whichever gateway, is stored after it.
				flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushLimit)
				_ = s.table.save(flush, false) // if it fails it is stored later
				cancel()
			}
			return agent, nil
		}
		select {
		case <-changed:
		case <-registryChanged:
		case <-hold:
			over = true
		case <-superseded: // one wait per agent, so that nobody can hold thousands of connections with one secret
			over = true
		case <-ctx.Done():
			over = true
		}
	}
}

// onTick shortens a hold by up to 1 %, so that thousands of heartbeats end together on a tick: waking up for each of
// them costs more than answering it.
func onTick(hold time.Duration) time.Duration {
	if tick := hold / 100; tick > 0 {
		hold -= time.Duration(time.Now().Add(hold).UnixNano()) % tick
	}
	return hold
}

// Run stores heartbeats, and removes expired identities and tokens, until ctx ends. It returns an error if the store
// fails; nothing is lost if it is run again.
func (s *Agents) Run(ctx context.Context) error {
	save, forget := time.NewTicker(beatInterval), time.NewTicker(forgetInterval)
	defer save.Stop()
	defer forget.Stop()
	for {
		var err error
		select {
		case <-save.C:
			err = s.table.save(ctx, false)
		case <-forget.C:
			err = s.forget(ctx)
		case <-ctx.Done():
			s.table.touchOpen()
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), finalSave)
			defer cancel()
			return s.table.save(last, true)
		}
		if err != nil && ctx.Err() == nil && domain.CodeOf(err) != domain.Unavailable { // it is retried later
			return err
		}
	}
}

func (s *Agents) forget(ctx context.Context) error {
	for _, id := range s.table.silent(identityLife) {
		if err := s.Remove(ctx, id); err != nil && domain.CodeOf(err) != domain.NotFound {
			return err
		}
	}
	return s.store.ForgetTokens(ctx, clock.Now().Add(-tokenMemory))
}
