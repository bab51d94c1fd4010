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

// Pipelines learn from reads of feeds that they may have changed.
type Pipelines interface {
	// Notice takes what a read says, after what it brought was stored. It is called for every read that went well, and for
	// the first of those in a row that failed.
	Notice(project domain.Project, r domain.FeedResult)
	// Yield returns when no reader waits for a pipeline of which nothing is known yet, or a little later.
	Yield(ctx context.Context)
}

// Duties are which feeds this gateway follows. The others are other gateways'.
type Duties interface {
	// Epoch returns under which epoch this gateway has a duty, false when it does not have it.
	Epoch(duty string) (epoch int64, ok bool)
	// Changed returns a channel that is closed when this gateway gets or loses duties.
	Changed() <-chan struct{}
}

// Options are what a Poller is built from.
type Options struct {
	Projects  Projects
	Events    Events
	Feeds     Feeds
	Pipelines Pipelines
	// Duties is nil where this gateway follows all feeds.
	Duties Duties
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

// New returns a Poller with these options.
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

// Run follows the feeds until ctx ends. A change of the registry, or of this gateway's duties, takes effect at once.
func (p *Poller) Run(ctx context.Context) error {
	for {
		changed, redistributed := p.o.Projects.Changed(), p.dutiesChanged()
		registry := p.o.Projects.Registry()
		p.stop(registry)
		for _, project := range registry.Projects {
			if _, runs := p.followers[project.Name]; runs {
				continue
			}
			if epoch, ours := p.epoch(project.Name); ours {
				p.start(ctx, project, epoch)
			}
		}
		select {
		case <-changed:
		case <-redistributed:
		case <-ctx.Done():
			p.stop(&domain.Registry{})
			return nil
		}
	}
}

// dutiesChanged returns a channel that is closed when duties change; nil where they never do.
func (p *Poller) dutiesChanged() <-chan struct{} {
	if p.o.Duties == nil {
		return nil
	}
	return p.o.Duties.Changed()
}

// epoch returns under which epoch this gateway follows a project, false when it does not.
func (p *Poller) epoch(project string) (epoch int64, ours bool) {
	if p.o.Duties == nil {
		return 0, true
	}
	return p.o.Duties.Epoch(domain.FeedDuty(project))
}

// start begins to follow a project.
func (p *Poller) start(ctx context.Context, project domain.Project, epoch int64) {
	ctx, cancel := context.WithCancel(ctx)
	r := running{newFollower(p.o, p.slots, project, epoch), cancel, make(chan struct{})}
	p.mu.Lock()
	p.followers[project.Name] = r
	p.mu.Unlock()
	go func() { // stop waits for it
		defer close(r.done)
		supervise.Run(ctx, p.o.Log, "feed of "+project.Name, r.run)
	}()
}

// stop ends the followers of projects that are gone, have changed, or are another gateway's by now. It returns when none of them
// can record any more, so that a project has one reader at a time.
func (p *Poller) stop(registry *domain.Registry) {
	var ending, handedOver []running
	p.mu.Lock()
	for name, r := range p.followers {
		project, registered := registry.Find(name)
		epoch, ours := p.epoch(name)
		switch {
		case !registered || project != r.project:
		case !ours || epoch != r.epoch:
			handedOver = append(handedOver, r)
		default:
			continue
		}
		r.cancel()
		ending = append(ending, r)
		delete(p.followers, name)
	}
	p.mu.Unlock()
	for _, r := range ending {
		<-r.done
	}
	for _, r := range handedOver { // what its feed said last of its pipeline counts no longer
		p.o.Pipelines.Notice(r.project, domain.FeedResult{Failed: true})
	}
}
