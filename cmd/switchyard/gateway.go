package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"switchyard/handlers"
	"switchyard/internal/bot"
	"switchyard/internal/config"
	"switchyard/internal/domain"
	"switchyard/internal/files"
	"switchyard/internal/service"
	"switchyard/internal/supervise"
)

func gatewayCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gateway",
		Short: "Run the gateway: event stream, pipelines, agents, chat bot, sign-in, console and JSON API",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := config.Load(cmd.Flags(), os.Getenv)
			if err != nil {
				return err
			}
			log := newStartLog(cmd.ErrOrStderr(), c)
			defer log.ended()
			g, err := openGateway(cmd.Context(), c, log)
			if err != nil {
				return supervise.UnlessEnded(cmd.Context(), err)
			}
			return errors.Join(g.run(cmd.Context(), cmd.OutOrStdout()), g.close())
		},
	}
	config.AddFlags(cmd.Flags())
	return cmd
}

// gateway is a gateway that is ready to run; it holds its port already.
type gateway struct {
	config    *config.Config
	log       *slog.Logger
	start     *startLog
	listeners []net.Listener
	handler   handlers.Gateway
	// nil until a shared database has been opened
	service *service.Service
	state   bot.State       // of the database
	shared  *sharedDatabase // nil when no other gateway shares the database
	loops   []loop
	prepare func(ctx context.Context, out io.Writer) error // called once there is a service; may be nil
	begun   chan struct{}                                  // closed when prepare has returned
	fail    context.CancelCauseFunc                        // ends run, which returns a startError
	closing
}

type loop struct {
	name string
	run  func(context.Context) error
}

// run serves until ctx ends, and prints the address to out. When it returns, its loops have ended or were abandoned.
func (g *gateway) run(ctx context.Context, out io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	g.fail = cancel
	var handler http.Handler
	loops := supervise.New(ctx, g.log)
	if g.service == nil {
		handler = g.waitForDatabase(loops, out)
	} else {
		if err := g.begin(ctx, loops, out); err != nil {
			return supervise.UnlessEnded(ctx, err)
		}
		handler = g.handler.Handler()
	}
	address := baseURL(g.config.Listen, g.listeners)
	at := filepath.Join(g.config.Data, addressName)
	if err := files.WriteAtomic(at, []byte(address+"\n")); err != nil {
		g.log.Warn("up cannot find this gateway", "error", err)
	}
	defer os.Remove(at) //nolint:errcheck // the next start replaces it
	g.start.started(address, g.config)
	fmt.Fprintf(out, "Switchyard serves %s\n", address)
	tellService(ready)
	err := serve(ctx, g.log, g.listeners, handler)
	cancel(nil)
	await(g.log, loops)
	g.shared.leave()
	if failed, ok := errors.AsType[startError](context.Cause(ctx)); ok {
		return errors.Join(failed.error, err)
	}
	return err
}

const (
	// answersFirst is how long loops wait before they begin, which keeps all processors busy for a while: requests that
	// came during the start are answered first.
	answersFirst = 100 * time.Millisecond
	// housekeepingDelay is how much longer loops that are not urgent wait.
	housekeepingDelay = 500 * time.Millisecond
)

func later(run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if !supervise.Sleep(ctx, housekeepingDelay) {
			return nil
		}
		return run(ctx)
	}
}

func (g *gateway) begin(ctx context.Context, loops *supervise.Group, out io.Writer) error {
	if g.prepare != nil {
		if err := g.prepare(ctx, out); err != nil {
			return err
		}
	}
	for _, l := range g.loops {
		loops.Go(l.name, func(ctx context.Context) error {
			supervise.Sleep(ctx, answersFirst)
			return l.run(ctx)
		})
	}
	close(g.begun)
	return nil
}

// loopLimit is how long loops may take to end once the server has drained. Together with drainLimit it is the 10 s that
// a stop may take.
const loopLimit = time.Second

// await waits for the loops to end, but no longer than loopLimit.
func await(log *slog.Logger, loops *supervise.Group) {
	ended := make(chan struct{})
	go func() { loops.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(loopLimit):
		log.Warn("some loops did not end in time and were abandoned")
	}
}

const (
	// openInterval is how often opening an unreachable database is retried, and openLimit how long an attempt may take.
	openInterval = time.Second
	openLimit    = 30 * time.Second
	// wrongClock is the difference between the machine's and the database's clock at which it is logged.
	wrongClock = 2 * time.Second
)

// startError is why a gateway could not begin its work, though it already serves.
type startError struct{ error }

// waitForDatabase opens the shared database as soon as it can be reached, and then starts the loops. The handler that
// it returns answers requests in the meantime and passes them on afterwards.
func (g *gateway) waitForDatabase(loops *supervise.Group, out io.Writer) http.Handler {
	var reason atomic.Pointer[error]
	say := func(err error) { reason.Store(&err) }
	say(domain.Errorf(domain.Unavailable, "the database has not responded yet"))
	var serving atomic.Pointer[http.Handler]
	waiting := g.handler.Waiting(func() error { return *reason.Load() })
	serving.Store(&waiting)
	loops.Go("database", func(ctx context.Context) error {
		for said := ""; ; supervise.Sleep(ctx, openInterval) {
			err := g.openShared(ctx)
			if ctx.Err() != nil {
				return nil
			}
			if err == nil {
				break
			}
			say(err)
			if text := err.Error(); text != said {
				said = text
				g.log.ErrorContext(ctx, "the database cannot be used; trying again every second", "error", err)
			}
		}
		g.shared.begin()
		if err := g.begin(ctx, loops, out); err != nil && ctx.Err() == nil {
			g.fail(startError{err})
			return nil
		}
		ready := g.handler.Handler()
		serving.Store(&ready)
		return nil
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*serving.Load()).ServeHTTP(w, r) })
}

// closing collects what must be closed at the end, in the order of opening. It is safe for concurrent use.
type closing struct {
	mu      sync.Mutex
	closers []func() error // in the order of opening
}

func (c *closing) addCloser(closer func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closers = append(c.closers, closer)
}

func (c *closing) close() (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, closer := range slices.Backward(c.closers) {
		err = errors.Join(err, closer())
	}
	c.closers = nil
	return err
}

// closeAll closes listeners. Some may have been closed by their server already.
func closeAll(listeners []net.Listener) {
	for _, listener := range listeners {
		listener.Close()
	}
}
