package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/cluster"
	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/store/postgres"
	"switchyard/internal/supervise"
)

// sharedDatabase is this gateway's membership among those that share its database. Its methods accept nil, for a single
// gateway.
type sharedDatabase struct {
	store  *postgres.DB
	name   string // of this gateway
	member *cluster.Member
	end    context.CancelFunc
	loops  *supervise.Group // that outlive the gateway's others

	pipelines *service.Pipelines // set before begin
}

// joinShared makes the gateway one of those that share the database. It competes for the lead once it begins.
func (g *gateway) joinShared(store *postgres.DB) *sharedDatabase {
	name, err := os.Hostname()
	if err != nil {
		name = "unknown"
	}
	s := &sharedDatabase{store: store, name: name}
	s.member = cluster.New(store.Lease(), g.log, name)
	s.member.Fitness, store.Refused = s.fitness, s.member.Refused
	ctx, end := context.WithCancel(context.Background())
	s.end, s.loops = end, supervise.New(ctx, g.log)
	return s
}

// begin lets the gateway compete for the lead. The service must have been built.
func (s *sharedDatabase) begin() {
	s.loops.Go("changes", whileAway(s.store.Run))
	s.loops.Go("lease", s.member.Run)
}

// leave releases the lease. Everything done under it must have ended.
func (s *sharedDatabase) leave() {
	if s != nil {
		s.end()
		s.loops.Wait()
	}
}

// maxSlow is for how long appends may be slow before the gateway leaves the lead to another one.
const maxSlow = 5 * time.Second

// fitness returns why this gateway cannot do the leader's work, "" if it can.
func (s *sharedDatabase) fitness(others []cluster.Gateway) string {
	if slow := s.store.SlowAppends(); slow > maxSlow {
		return fmt.Sprintf("appending events has been slow for %s", slow.Round(time.Second))
	}
	all, unreachable := s.pipelines.Reach()
	for _, g := range others {
		if g.Reaches > 0 && g.Reaches >= all-unreachable {
			return fmt.Sprintf("gateway %s reaches %d projects that this one cannot reach, which reaches %d", g.Name, g.Reaches,
				all-unreachable)
		}
	}
	return ""
}

func (s *sharedDatabase) followers(svc *service.Service) []loop {
	if s == nil {
		return nil
	}
	return []loop{{"changes of others", svc.Sync}, {"stream", func(ctx context.Context) error {
		return svc.Events.Follow(ctx, func() <-chan struct{} { return s.store.Changed(domain.TopicEvents) })
	}}}
}

// whileAway returns loop restarted every second while the database cannot be reached, so that its return is noticed
// within a second. The outage itself is logged elsewhere.
func whileAway(loop func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		for {
			err := loop(ctx)
			if domain.CodeOf(err) != domain.Unavailable {
				return err
			}
			if !supervise.Sleep(ctx, openInterval) {
				return nil
			}
		}
	}
}

const (
	// openInterval is how often opening an unreachable database is retried, and openLimit how long an attempt may take.
	openInterval = time.Second
	openLimit    = 30 * time.Second
	// wrongClock is the difference between the machine's and the database's clock from which it is logged.
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

// openShared opens the shared database and builds the gateway over it. After an error it can be called again.
func (g *gateway) openShared(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	store, err := postgres.Open(ctx, g.config.Database.Reveal())
	if err != nil {
		return err
	}
	if !store.SearchesUseIndex() {
		g.log.WarnContext(ctx, "searches are slow: the database lacks the extension pg_trgm, and this role may not create it")
	}
	if ahead := store.Clock().Skew(); ahead.Abs() > wrongClock {
		g.log.WarnContext(ctx, "the clocks of this machine and the database differ; the gateway uses the database's",
			"database_ahead", ahead.Round(time.Millisecond))
	}
	clock.Follow(store.Clock())
	shared := g.joinShared(store)
	g.handler.SessionKey, err = store.SessionKey(ctx)
	if err == nil {
		err = g.build(ctx, store, shared)
	}
	if err != nil {
		shared.leave()
		return errors.Join(err, store.Close())
	}
	g.shared = shared
	g.addCloser(store.Close)
	return nil
}
