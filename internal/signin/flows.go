package signin

import (
	"log/slog"
	"sync"
)

// manyFlows is the number of waiting flows (some 20 MB) above which the log warns: they are never
// removed by time and never refused.
const manyFlows = 65_536

// flow is a sign-in that waits for its callback.
type flow struct {
	verifier    string
	redirectURI string
}

// flows are the waiting sign-ins by their state.
type flows struct {
	log *slog.Logger

	mu      sync.Mutex
	waiting map[string]flow
	warned  bool
}

func newFlows(log *slog.Logger) *flows {
	return &flows{log: log, waiting: map[string]flow{}}
}

// add keeps f under a new state.
func (f *flows) add(fl flow) (state string) {
	state = randomText(stateLength)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting[state] = fl
	if len(f.waiting) > manyFlows && !f.warned {
		f.warned = true
		f.log.Warn("many sign-ins wait for their callback; a restart forgets them", "waiting", len(f.waiting))
	}
	return state
}

// take removes and returns the flow of that state: of any number of callers at once exactly one gets it.
func (f *flows) take(state string) (flow, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fl, ok := f.waiting[state]
	delete(f.waiting, state)
	if len(f.waiting) < manyFlows/2 { // well below, so that a number around the limit does not flood the log
		f.warned = false
	}
	return fl, ok
}
