// Package poll follows the feed of every registered project and hands its records to the service. It must never know
// how they are stored, nor how a feed is fetched.
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

type Projects interface {
	// Registry returns the projects to follow.
	Registry() *domain.Registry
	// Changed returns a channel that is closed when Registry is outdated.
	Changed() <-chan struct{}
}

type Events interface {
	// Cursors returns the stored positions of every URL that the project ever had.
	Cursors(ctx context.Context, project string) ([]domain.FeedCursor, error)
	// Record stores all of a read or nothing, and returns when it is done.
	Record(ctx context.Context, read domain.FeedRead) error
}

type Feeds interface {
	Feed(ctx context.Context, project domain.Project, r upstream.FeedRequest) (upstream.FeedAnswer, error)
	History(ctx context.Context, project domain.Project, after int64, limit int) (upstream.HistoryPart, error)
}

type Histories interface {
	// Last returns the id of the history that was merged last, "" for none. It returns Unavailable while it is too early
	// to merge one.
	Last(ctx context.Context, project domain.Project) (id string, err error)
	// Merge merges all moves of a history, replacing those of the previous one.
	Merge(ctx context.Context, token int64, project domain.Project, id string, moves []domain.Move) error
}

// Pipelines learns which pipelines may have changed.
type Pipelines interface {
	// RefetchIfChanged takes the result of a read, after its records were stored. It is called for every successful read,
	// and for the first of several failed ones in a row.
	RefetchIfChanged(project domain.Project, r domain.FeedResult)
}

type Options struct {
	Projects  Projects
	Events    Events
	Feeds     Feeds
	Pipelines Pipelines
	Histories Histories // nil if none are read
	// Leadership is nil for a gateway that always leads: only the leader follows feeds.
	Leadership domain.Leadership
	// Interval is the time between two reads of a server that cannot hold its answer; it must be positive.
	Interval time.Duration
	Log      *slog.Logger
}

type Poller struct {
	o     Options
	slots slots
	reads slots // of histories

	mu        sync.Mutex // guards the map; only Run changes it
	followers map[string]running
}

func New(o Options) *Poller {
	if o.Leadership == nil {
		o.Leadership = domain.SoleGateway{}
	}
	return &Poller{o: o, slots: make(slots, readSlots), reads: make(slots, historySlots), followers: map[string]running{}}
}

type running struct {
	*follower
	cancel context.CancelFunc
	done   chan struct{}
}

// Observe takes the outcome of a call to the project's server that another part of the program made. If one succeeds
// after failures, the project's feed is read at once instead of after the pause.
func (p *Poller) Observe(project string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r, ok := p.followers[project]; ok {
		r.observe(err)
	}
}

// Run follows the feeds until ctx ends. A change of the registry, or of the leader, takes effect at once.
func (p *Poller) Run(ctx context.Context) error {
	for {
		changed, led := p.o.Projects.Changed(), p.o.Leadership.Changed()
		registry := p.o.Projects.Registry()
		token, leads := p.o.Leadership.Token()
		p.stop(registry, token, leads)
		for _, project := range registry.Projects {
			if _, runs := p.followers[project.Name]; leads && !runs {
				p.start(ctx, project, token)
			}
		}
		select {
		case <-changed:
		case <-led:
		case <-ctx.Done():
			p.stop(&domain.Registry{}, 0, false)
			return nil
		}
	}
}

func (p *Poller) start(ctx context.Context, project domain.Project, token int64) {
	ctx, cancel := context.WithCancel(ctx)
	r := running{newFollower(p.o, p.slots, p.reads, project, token), cancel, make(chan struct{})}
	p.mu.Lock()
	p.followers[project.Name] = r
	p.mu.Unlock()
	name := "feed of " + project.Name
	supervise.Go(p.o.Log, name, func() {
		defer close(r.done) // stop waits for it
		supervise.Run(ctx, p.o.Log, name, r.run)
	})
}

// stop ends the followers of projects that were removed or changed, and all that do not follow under the token. It
// returns when none of them can record any more, so that each project has only one follower at a time.
func (p *Poller) stop(registry *domain.Registry, token int64, leads bool) {
	var ending, handedOver []running
	p.mu.Lock()
	for name, r := range p.followers {
		project, registered := registry.Find(name)
		switch {
		case !registered || project != r.project:
		case !leads || token != r.token:
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
	for _, r := range handedOver { // the pipeline version in its last answer no longer counts
		p.o.Pipelines.RefetchIfChanged(r.project, domain.FeedResult{Failed: true})
	}
}
