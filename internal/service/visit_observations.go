package service

import (
	"time"

	"switchyard/internal/domain"
)

const (
	// observedAtOnce is how many stories one transaction changes, of one board or many: about 10 ms, for which events
	// wait.
	observedAtOnce = 200
	// observationBurst and observationRate limit how many changes of a project are stored that no event tells of: at
	// once, twice as many as a pipeline has stories, and then so many a second.
	observationBurst, observationRate = 40_000, 2
)

// observations are the pipelines to be observed, the newest of each project. Visits.mu guards them.
type observations struct {
	queue map[string]observation
	order []string
	news  chan struct{} // of capacity 1; holds a value when there is something in the queue
}

// add queues an observation, unless a newer one is queued and replace is not set.
func (o *observations) add(next observation, replace bool) {
	_, queued := o.queue[next.project]
	if !queued {
		o.order = append(o.order, next.project)
	}
	if !queued || replace {
		o.queue[next.project] = next
	}
	select {
	case o.news <- struct{}{}:
	default:
	}
}

func (o *observations) next() (next observation, ok bool) {
	if len(o.order) == 0 {
		o.order = nil // frees the underlying array
		return next, false
	}
	next = o.queue[o.order[0]]
	o.order = o.order[1:]
	delete(o.queue, next.project)
	return next, true
}

type observation struct {
	project string
	answer  *domain.PipelineAnswer
	asked   time.Time
	done    func(settled bool)

	seen    []domain.Sighting // to be stored next
	more    bool              // there are others
	settled bool              // newer events contradict none of it
}
