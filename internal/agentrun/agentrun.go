// Package agentrun is the build agent: it joins a gateway, reports that it is alive, and runs a command where the gateway
// sends it. It must never know the gateway's insides: all it has of it is the address.
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

// Options are what an agent is made of.
type Options struct {
	Gateway   string // its address, http or https
	Label     string // what it asks to be called when it joins
	StateFile string
	Version   string
	// Token gives a join token. It is called only where one is needed.
	Token func(context.Context) (domain.Secret, error)
	// Rejoin lets the agent join again when it starts and the gateway no longer knows the identity in the state file.
	Rejoin bool
	// Command and its arguments; empty for an agent that only joins and stays alive.
	Command     []string
	Environment []string  // of the command, besides what says where it is assigned
	Output      io.Writer // gets the command's output
	Log         *slog.Logger
}

const (
	// beatWait is how long the gateway is asked to hold a heartbeat; it holds none longer than a third of its agent timeout.
	beatWait = 30 * time.Second
	// refreshWait is the wait of a heartbeat that is to be answered at once, to learn what has changed in the meantime.
	refreshWait = time.Millisecond
	// beatPause keeps a gateway that does not hold heartbeats from being called in a busy loop.
	beatPause = 100 * time.Millisecond
	// Pauses while the gateway is away are from 1 s (half of retryFirst) to retryMax.
	retryFirst = 2 * time.Second
	retryMax   = time.Minute
	// joinGrace is how long a stop waits for the answer of the gateway that is asked to let the agent join.
	joinGrace = 2 * time.Second
	// farewell bounds saying that the agent stops. After a command that took long to end, it is lastFarewell.
	farewell, lastFarewell = 5 * time.Second, 2 * time.Second
)

// agent is a running agent.
type agent struct {
	Options
	client *client
	file   *stateFile
	runner *runner
	known  bool // the gateway has accepted the identity in this run
}

// Run runs an agent until ctx ends; then its command is stopped and the gateway is informed. It returns an error where the
// agent cannot go on: its state file is in use or unreadable, the token is refused, or its identity is gone.
func Run(ctx context.Context, o Options) error {
	if err := hideMemory(); err != nil {
		o.Log.WarnContext(ctx, "the command may be able to read this process's secrets", "error", err)
	}
	file, unlock, err := openState(o.StateFile)
	if err != nil {
		return err
	}
	defer unlock()
	a := &agent{Options: o, client: newClient(o.Gateway), file: file, runner: newRunner(o, file)}
	if file.who().ID == "" {
		if err := a.join(ctx); err != nil {
			return unlessEnded(ctx, err)
		}
	} else {
		a.Log.InfoContext(ctx, "joined already; no token is needed", "agent", file.who().Label, "id", file.who().ID, "state", file.path)
	}

	asked := make(chan time.Time, 1)
	defer context.AfterFunc(ctx, func() { asked <- time.Now() })()
	running, stop := context.WithCancel(ctx)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		a.runner.run(running)
	}()
	err = a.beat(ctx)
	stop()
	<-stopped
	if ctx.Err() != nil {
		a.sayStopped(ctx, <-asked)
	}
	return unlessEnded(ctx, err)
}

// Leave ends a command that was left running, gives the identity of the state file up and removes the file.
func Leave(ctx context.Context, o Options) error {
	file, unlock, err := openState(o.StateFile)
	if err != nil {
		return err
	}
	defer unlock()
	if file.who().ID == "" {
		return fmt.Errorf("%s holds no identity: there is nothing to leave", file.path)
	}
	newRunner(o, file).stopLeftover(ctx)
	err = newClient(o.Gateway).leave(ctx, file.who())
	if err != nil && !isRefusal(err, http.StatusUnauthorized) && !isRefusal(err, http.StatusNotFound) {
		return fmt.Errorf("could not leave: %w", err)
	}
	if err := os.Remove(file.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	o.Log.InfoContext(ctx, "left", "agent", file.who().Label, "id", file.who().ID)
	return nil
}

// unlessEnded is err, or nil where the end of ctx is why something failed.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func isRefusal(err error, status int) bool {
	var r *refusal
	return errors.As(err, &r) && r.status == status
}

// join redeems a token and keeps the identity that it gives. It tries until the gateway can be reached.
func (a *agent) join(ctx context.Context) error {
	token, err := a.Token(ctx)
	if err != nil {
		return err
	}
	var who identity
	err = a.untilReached(ctx, func() (err error) {
		// A stop waits for an answer that is on its way: it holds an identity that nobody else would ever give up.
		answered, cancel := context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		defer context.AfterFunc(ctx, func() { time.AfterFunc(joinGrace, cancel) })()
		who, err = a.client.join(answered, token, a.Label, a.Version)
		return err
	})
	if err != nil {
		return fmt.Errorf("could not join: %w", err)
	}
	if err := a.file.update(func(s *state) { s.identity = who }); err != nil {
		return errors.Join(err, a.client.leave(ctx, who)) // the token is spent, but no dead agent stays behind
	}
	a.known = true
	a.Log.InfoContext(ctx, "joined", "agent", who.Label, "id", who.ID, "gateway", who.Gateway)
	return nil
}

// untilReached calls fn until the gateway answers with a success or a refusal that is final.
func (a *agent) untilReached(ctx context.Context, fn func() error) error {
	backoff := supervise.Backoff{First: retryFirst, Max: retryMax}
	for {
		err := fn()
		var r *refusal
		final := errors.As(err, &r) && r.status < 500 && r.status != http.StatusTooManyRequests
		if err == nil || final || ctx.Err() != nil {
			return err
		}
		pause := backoff.Next()
		a.Log.WarnContext(ctx, "the gateway is away", "error", err, "retry_in", pause)
		if !supervise.Sleep(ctx, pause) {
			return ctx.Err()
		}
	}
}
