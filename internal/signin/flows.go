package signin

import (
	"context"
	"log/slog"
	"sync"

	"switchyard/internal/domain"
)

// Flows keeps pending sign-ins by their state.
type Flows interface {
	AddSignInFlow(ctx context.Context, state string, f domain.SignInFlow) error
	// TakeSignInFlow removes and returns the flow with that state. Of several concurrent callers exactly one gets it; the
	// others get NotFound, as for an unknown state.
	TakeSignInFlow(ctx context.Context, state string) (domain.SignInFlow, error)
}

// manyFlows is the number of pending flows (about 20 MB) above which a warning is logged. Flows do not expire and new
// ones are not refused.
const manyFlows = 65_536

// flows keeps the flows of a single gateway in memory.
type flows struct {
	log *slog.Logger

	mu      sync.Mutex
	waiting map[string]domain.SignInFlow
	warned  bool
}

func newFlows(log *slog.Logger) *flows {
	return &flows{log: log, waiting: map[string]domain.SignInFlow{}}
}

func (f *flows) AddSignInFlow(_ context.Context, state string, fl domain.SignInFlow) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting[state] = fl
	if len(f.waiting) > manyFlows && !f.warned {
		f.warned = true
		f.log.Warn("many sign-ins are pending; a restart forgets them", "waiting", len(f.waiting))
	}
	return nil
}

func (f *flows) TakeSignInFlow(_ context.Context, state string) (domain.SignInFlow, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fl, ok := f.waiting[state]
	delete(f.waiting, state)
	if len(f.waiting) < manyFlows/2 { // well below, so that a number around the limit does not flood the log
		f.warned = false
	}
	if !ok {
		return domain.SignInFlow{}, domain.Errorf(domain.NotFound, "no sign-in has this state")
	}
	return fl, nil
}
