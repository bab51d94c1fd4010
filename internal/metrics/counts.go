// Package metrics counts what a gateway does, and writes that and the state of the process in Prometheus' text format.
package metrics

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"switchyard/internal/domain"
)

// Counts are a gateway's counters since its start. They are safe for concurrent use.
type Counts struct {
	// PerProject adds series for each project. It must be set before anything is counted.
	PerProject bool
	// Follows reports whether this gateway reads the project's feed; nil if it reads all. It must be set before Write is called.
	Follows func(project string) bool

	inFlight, streams   atomic.Int64
	botSent, botRefused atomic.Uint64
	mu                  sync.Mutex
	requests            map[requestKey]uint64
	durations           map[string]*histogram // by route
	calls, totals       map[callKey]*calls    // of each project, and of all
	events              map[string]uint64     // by type
}

// New returns Counts that are all zero.
func New() *Counts {
	return &Counts{
		requests:  map[requestKey]uint64{},
		durations: map[string]*histogram{},
		calls:     map[callKey]*calls{},
		totals:    map[callKey]*calls{},
		events:    map[string]uint64{},
	}
}

// StreamOpened counts a reader of the stream until closed is called.
func (c *Counts) StreamOpened() (closed func()) {
	c.streams.Add(1)
	return func() { c.streams.Add(-1) }
}

// Events counts events that were stored. Types that pages do not offer share a series, since projects choose them freely.
func (c *Counts) Events(added []domain.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range added {
		label := "other"
		if e.Type.Kind().Choice != "" {
			label = string(e.Type)
		}
		c.events[label]++
	}
}

// BotMessage counts a message of the bot, which the room accepted or refused.
func (c *Counts) BotMessage(refused bool) {
	if refused {
		c.botRefused.Add(1)
	} else {
		c.botSent.Add(1)
	}
}

// Write writes all counters, those of projects only for registered ones.
func (c *Counts) Write(t *Text, registry *domain.Registry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writeRequests(t)
	c.writeCalls(t, registry)
	name := "switchyard_events_total"
	t.Metric(name, "counter", "Events stored by this gateway since its start, by type; types that are not Switchyard's own are counted as other.")
	for _, label := range slices.Sorted(maps.Keys(c.events)) {
		t.Sample(name, float64(c.events[label]), "type", label)
	}
	name = "switchyard_bot_messages_total"
	t.Metric(name, "counter", "Messages about events, by whether the room accepted or refused them.")
	t.Sample(name, float64(c.botSent.Load()), "result", "sent")
	t.Sample(name, float64(c.botRefused.Load()), "result", "refused")
}
