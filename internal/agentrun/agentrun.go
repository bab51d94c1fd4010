// Package agentrun is the build agent: it joins a gateway, sends heartbeats, and runs a command for the project that it
// is assigned to. It talks to the gateway over HTTP only and must know nothing of its internals.
package agentrun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

type Options struct {
	Gateway   string // the address, http or https
	Label     string // the name under which it joins
	StateFile string
	Version   string
	// Token returns a join token. It is called only when one is needed.
	Token func(context.Context) (domain.Secret, error)
	// Rejoin makes the agent join again if, when it starts, the gateway no longer knows the identity in the state file.
	Rejoin bool
	// Command and its arguments; empty for an agent that only joins and sends heartbeats.
	Command []string
	// WhenWaiting starts the command only when a story waits for it: one that a claim would give it.
	WhenWaiting bool
	// NoTelemetry keeps the agent from making the command's client report its calls of models.
	NoTelemetry bool
	// Worktrees is where the command makes a work tree for each story, "" for none.
	Worktrees   string
	Environment []string  // of the command, besides the variables for its assignment
	Output      io.Writer // receives the command's output
	Log         *slog.Logger
}

const (
	// beatWait is how long the gateway is asked to hold a heartbeat; it holds one for at most a third of its agent
	// timeout.
	beatWait = 30 * time.Second
	// refreshWait is the wait of a heartbeat that should be answered at once.
	refreshWait = time.Millisecond
	// beatPause prevents a busy loop with a gateway that does not hold heartbeats.
	beatPause = 100 * time.Millisecond
	// Retries while the gateway cannot be reached are from 1 s (half of retryFirst) to retryMax apart.
	retryFirst = 2 * time.Second
	retryMax   = time.Minute
	// joinGrace is how long a stop waits for the response to a join request.
	joinGrace = 2 * time.Second
	// farewell is the time limit for telling the gateway that the agent stops. After a command that took long to end, it
	// is lastFarewell.
	farewell, lastFarewell = 5 * time.Second, 2 * time.Second
)

type agent struct {
	Options
	client *Client
	file   *stateFile
	runner *runner
	known  bool // the gateway has accepted the identity in this run
}

// Run runs an agent until ctx ends; then it stops the command and informs the gateway. It returns an error when the
// agent cannot continue: its state file is in use or unreadable, the token is refused, or the gateway no longer knows
// it.
func Run(ctx context.Context, o Options) error {
	if err := hideMemory(); err != nil {
		o.Log.WarnContext(ctx, "the command may be able to read this process's secrets", "error", err)
	}
	file, unlock, err := openState(o.StateFile)
	if err != nil {
		return err
	}
	defer unlock()
	c := NewClient(o.Gateway)
	a := &agent{Options: o, client: c, file: file, runner: newRunner(o, c, file)}
	if file.ID == "" {
		if err := a.join(ctx); err != nil {
			return supervise.UnlessEnded(ctx, err)
		}
	} else {
		a.Log.InfoContext(ctx, "already joined; no token is needed", "agent", file.Label, "id", file.ID, "state", file.path)
	}

	asked := make(chan time.Time, 1)
	defer context.AfterFunc(ctx, func() { asked <- time.Now() })()
	running, stop := context.WithCancel(ctx)
	stopped := make(chan struct{})
	supervise.Go(a.Log, "command", func() {
		defer close(stopped)
		a.runner.run(running)
	})
	err = a.beat(ctx)
	stop()
	<-stopped
	if ctx.Err() != nil {
		a.sayStopped(ctx, <-asked)
	}
	return supervise.UnlessEnded(ctx, err)
}

// Leave ends a command that was left running, removes the agent in the state file from the gateway, and removes the
// file.
func Leave(ctx context.Context, o Options) error {
	file, unlock, err := openState(o.StateFile)
	if err != nil {
		return err
	}
	defer unlock()
	if file.ID == "" {
		return fmt.Errorf("%s holds no identity: there is nothing to leave", file.path)
	}
	c := NewClient(o.Gateway)
	newRunner(o, c, file).stopLeftover(ctx)
	err = c.leave(ctx, file.identity)
	if err != nil && !isRefusal(err, http.StatusUnauthorized) && !isRefusal(err, http.StatusNotFound) {
		return fmt.Errorf("could not leave: %w", err)
	}
	if err := os.Remove(file.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	o.Log.InfoContext(ctx, "left", "agent", file.Label, "id", file.ID)
	return nil
}

func isRefusal(err error, status int) bool {
	r, ok := errors.AsType[*Refusal](err)
	return ok && r.Status == status
}

// join redeems a token and stores the identity it gets. It retries until the gateway can be reached.
func (a *agent) join(ctx context.Context) error {
	token, err := a.Token(ctx)
	if err != nil {
		return err
	}
	var who identity
	backoff := supervise.Backoff{First: retryFirst, Max: retryMax}
	for {
		if who, err = a.redeem(ctx, token); err == nil {
			break
		}
		r, refused := errors.AsType[*Refusal](err)
		final := refused && r.Status < 500 && r.Status != http.StatusTooManyRequests
		if final || ctx.Err() != nil {
			return fmt.Errorf("could not join: %w", err)
		}
		pause := backoff.Next()
		a.Log.WarnContext(ctx, "the gateway cannot be reached", "error", err, "retry_in", pause)
		supervise.Sleep(ctx, pause)
	}
	if err := a.file.update(func(s *state) { s.identity = who }); err != nil {
		return errors.Join(err, a.client.leave(ctx, who)) // the token is used up, but no dead agent is left behind
	}
	a.known = true
	a.Log.InfoContext(ctx, "joined", "agent", who.Label, "id", who.ID, "gateway", who.Gateway)
	return nil
}

// redeem tries to join once. A stop waits for the response: without it, the new agent could never leave.
func (a *agent) redeem(ctx context.Context, token domain.Secret) (identity, error) {
	answered, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(joinGrace, cancel) })()
	return a.client.join(answered, token, a.Label, a.Version)
}

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
