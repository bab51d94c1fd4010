// Package poll follows the feed of every registered project and hands what it reads to the service. It never learns how
// that is stored, nor how a feed is fetched.
package poll

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/supervise"
	"switchyard/internal/upstream"
)

// Projects is the registry.
type Projects interface {
	// Registry returns the projects to follow.
	Registry() *domain.Registry
	// Changed returns a channel that is closed when Registry is outdated.
	Changed() <-chan struct{}
}

// Events is the merged stream.
type Events interface {
	// Cursors returns the stored reading positions of every URL that the project ever had.
	Cursors(ctx context.Context, project string) ([]domain.FeedCursor, error)
	// Record stores a read whole or not at all, and returns when it did.
	Record(ctx context.Context, read domain.FeedRead) error
}

// Feeds fetches from project servers.
type Feeds interface {
	Feed(ctx context.Context, project domain.Project, r upstream.FeedRequest) (upstream.FeedAnswer, error)
}

// Pipelines are noticed to change by the reading of feeds.
type Pipelines interface {
	// Notice takes what a read says, after what it brought was stored. It is called for every read that went well, and for
	// the first of those in a row that failed.
	Notice(project domain.Project, r domain.FeedResult)
}

// Options are what a Poller is built from.
type Options struct {
	Projects  Projects
	Events    Events
	Feeds     Feeds
	Pipelines Pipelines
	// Interval is the time between two reads of a server that cannot hold its answer; it must be positive.
	Interval time.Duration
	Log      *slog.Logger
}

// Poller follows the feeds of all projects of the registry.
type Poller struct {
	o     Options
	slots slots

	mu        sync.Mutex // guards the map; only Run changes it
	followers map[string]running
}

// New returns a Poller over what o holds.
func New(o Options) *Poller {
	return &Poller{o: o, slots: make(slots, readSlots), followers: map[string]running{}}
}

// running is a follower at work.
type running struct {
	*follower
	cancel context.CancelFunc
	done   chan struct{}
}

// Observe takes the outcome of a call to the project's server that another part of the program made. When one succeeds after
// failures, the project's feed is read at once instead of after the pause that a failure is followed by.
func (p *Poller) Observe(project string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r, ok := p.followers[project]; ok {
		r.observe(err)
	}
}

// Run follows the feeds until ctx ends. A change of the registry takes effect at once.
func (p *Poller) Run(ctx context.Context) error {
	for {
		changed := p.o.Projects.Changed()
		wanted := p.o.Projects.Registry()
		p.stop(wanted)
		for _, project := range wanted.Projects {
			if _, runs := p.followers[project.Name]; !runs {
				p.start(ctx, project)
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			p.stop(&domain.Registry{})
			return nil
		}
	}
}

// start begins to follow a project.
func (p *Poller) start(ctx context.Context, project domain.Project) {
	ctx, cancel := context.WithCancel(ctx)
	r := running{newFollower(p.o, p.slots, project), cancel, make(chan struct{})}
	p.mu.Lock()
	p.followers[project.Name] = r
	p.mu.Unlock()
	go func() { // stop waits for it
		defer close(r.done)
		supervise.Run(ctx, p.o.Log, "feed of "+project.Name, r.run)
	}()
}

// stop ends the followers of projects that are gone or have changed. It returns when none of them can record any more, so
// that a project has one reader at a time.
func (p *Poller) stop(wanted *domain.Registry) {
	var ending []running
	p.mu.Lock()
	for name, r := range p.followers {
		if project, ok := wanted.Find(name); !ok || project != r.project {
			r.cancel()
			ending = append(ending, r)
			delete(p.followers, name)
		}
	}
	p.mu.Unlock()
	for _, r := range ending {
		<-r.done
	}
}
