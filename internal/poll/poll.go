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
	// Feed asks the project for its records after since. With a wait it lets a server that can do so hold the answer for
	// that long, until there is one.
	Feed(ctx context.Context, project domain.Project, since int64, wait time.Duration) (domain.FeedAnswer, error)
}

// Options are what a Poller is built from.
type Options struct {
	Projects Projects
	Events   Events
	Feeds    Feeds
	// Interval is the time between two reads of a server that cannot hold its answer; it must be positive.
	Interval time.Duration
	Log      *slog.Logger
}

// Poller follows the feeds of all projects of the registry.
type Poller struct {
	o     Options
	turns turns
}

// New returns a Poller over what o holds.
func New(o Options) *Poller { return &Poller{o, make(turns, maxTurns)} }

// running is a follower at work.
type running struct {
	project domain.Project
	cancel  context.CancelFunc
	done    chan struct{}
}

// Run follows the feeds until ctx ends. A change of the registry takes effect at once.
func (p *Poller) Run(ctx context.Context) error {
	followers := map[string]running{}
	var all sync.WaitGroup
	defer all.Wait()
	for {
		changed := p.o.Projects.Changed()
		wanted := map[string]domain.Project{}
		for _, project := range p.o.Projects.Registry().Projects {
			wanted[project.Name] = project
		}
		p.stop(followers, wanted)
		for name, project := range wanted {
			if _, runs := followers[name]; runs {
				continue
			}
			follower := newFollower(p.o, p.turns, project)
			own, cancel := context.WithCancel(ctx)
			r := running{project, cancel, make(chan struct{})}
			followers[name] = r
			all.Go(func() {
				defer close(r.done)
				defer cancel()
				supervise.Run(own, p.o.Log, "feed of "+project.Name, follower.run)
			})
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// stop ends the followers of projects that are gone or have changed. It returns when none of them can record any more, so
// that a project has one reader at a time.
func (p *Poller) stop(followers map[string]running, wanted map[string]domain.Project) {
	var ending []running
	for name, r := range followers {
		if wanted[name] != r.project {
			r.cancel()
			ending = append(ending, r)
			delete(followers, name)
		}
	}
	for _, r := range ending {
		<-r.done
	}
}
