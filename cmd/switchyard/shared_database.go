package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

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
	loops  *supervise.Group // which outlive the gateway's other loops

	pipelines *service.Pipelines // set before begin
}

// joinShared makes this gateway one of those that share the database. It competes for the lead once it begins.
func joinShared(store *postgres.DB, log *slog.Logger) *sharedDatabase {
	name, err := os.Hostname()
	if err != nil {
		name = "unknown"
	}
	s := &sharedDatabase{store: store, name: name}
	s.member = cluster.New(store.Lease(), log, name)
	s.member.Fitness, store.Refused = s.fitness, s.member.Refused
	ctx, end := context.WithCancel(context.Background())
	s.end, s.loops = end, supervise.New(ctx, log)
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

// maxSlow is how long appends may be slow before the gateway leaves the lead to another.
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
		return svc.Events.Follow(ctx, s.store.Changed)
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

func (s *sharedDatabase) LiveGateways(ctx context.Context) ([]domain.LiveGateway, error) {
	live, leader, err := s.store.Lease().Gateways(ctx)
	if err != nil {
		return nil, domain.WrapError(domain.Unavailable, err, "the gateways cannot be listed: the database does not respond")
	}
	list := make([]domain.LiveGateway, len(live))
	for i, g := range live {
		list[i] = domain.LiveGateway{
			ID: g.ID, Name: g.Name, Since: g.StartedAt, Leads: g.ID == leader, Asked: g.ID == s.member.ID(),
		}
	}
	return list, nil
}
