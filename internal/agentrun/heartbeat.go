package agentrun

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

// beat sends heartbeats and passes the assignments it gets to the runner. It returns when ctx ends or the gateway no
// longer knows the agent.
func (a *agent) beat(ctx context.Context) error {
	backoff := supervise.Backoff{First: retryFirst, Max: retryMax}
	var at assignment
	wait, away := refreshWait, false
	for ctx.Err() == nil {
		began := time.Now()
		calling, interrupt := context.WithCancel(ctx) // when the state changes, the next one reports that at once
		state, detail := a.runner.status(interrupt)
		next, err := a.client.heartbeat(calling, a.file.get().identity, state, detail, at.project, wait)
		interrupted := err != nil && calling.Err() != nil && ctx.Err() == nil
		interrupt()
		switch {
		case interrupted: // the response may have been lost
			wait = refreshWait
			continue
		case isRefusal(err, http.StatusUnauthorized):
			if !a.Rejoin || a.known {
				return fmt.Errorf("the gateway no longer knows this agent, its identity is gone: remove %s and join with a new "+
					"token", a.file.path)
			}
			a.Log.WarnContext(ctx, "the gateway no longer knows this agent, joining again")
			if err := a.join(ctx); err != nil {
				return fmt.Errorf("the identity in %s is no longer valid: %w", a.file.path, err)
			}
			continue
		case err != nil:
			pause := backoff.Next()
			if !away && ctx.Err() == nil {
				a.Log.WarnContext(ctx, "the gateway cannot be reached; the command keeps running", "error", err, "retry_in", pause)
			}
			wait, away = refreshWait, true
			supervise.Sleep(ctx, pause)
			continue
		}
		a.known = true
		if away {
			a.Log.InfoContext(ctx, "the gateway can be reached again")
		}
		backoff.Reset()
		a.runner.assign(next)
		if next == at && wait == beatWait && time.Since(began) < beatPause {
			supervise.Sleep(ctx, beatPause)
		}
		at, wait, away = next, beatWait, false
	}
	return nil
}

// sayStopped tells the gateway that the agent, which was asked to stop at the time asked, is stopping. It keeps its
// identity.
func (a *agent) sayStopped(ctx context.Context, asked time.Time) {
	limit := max(lastFarewell, min(farewell, time.Until(asked.Add(lastGrace+lastFarewell))))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	if _, err := a.client.heartbeat(ctx, a.file.get().identity, domain.AgentStopped, "", "", 0); err != nil {
		a.Log.WarnContext(ctx, "cannot tell the gateway that the agent stops", "error", err)
	}
}
