package service

import (
	"context"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

// Changes reports what other gateways change in the same database.
type Changes interface {
	// Changed returns a channel that is closed when a topic may have changed. Call it before reading the topic.
	Changed(topic domain.Topic) <-chan struct{}
	// Version returns a value that differs after each change of a topic. It costs less than reading the topic.
	Version(ctx context.Context, topic domain.Topic) (string, error)
	// VisitsSince returns the visits that have changed since a position, each story's in order, the projects whose
	// visits have been replaced, and the next position; no visits for 0.
	VisitsSince(ctx context.Context, position int64) (
		changed []domain.Visit, replaced []string, next int64, err error)
}

const (
	// reloadInterval is how often a topic is checked even without a notification, so that changes made elsewhere apply
	// within a second.
	reloadInterval = 800 * time.Millisecond
	// The pause after reading a topic is reloadShare times as long as reading it took, between reloadPause and
	// maxReloadPause, so that neither unknown ids nor a busy gateway keep this one reading all the time.
	reloadPause, maxReloadPause = 20 * time.Millisecond, 250 * time.Millisecond
	reloadShare                 = 4
	// reloadLimit is how long reading may take.
	reloadLimit = 5 * time.Second
)

// reloader keeps memory up to date with one topic of the store, which other gateways change as well.
type reloader struct {
	changes Changes // nil if no other gateway shares the store
	topic   domain.Topic
	read    func(context.Context) error

	lock         chan struct{} // full during a read; guards the fields below
	began, ended time.Time     // of the last read
	forced       bool          // it did not check the version
	failed       error         // its error
	version      string
}

func newReloader(changes Changes, topic domain.Topic, read func(context.Context) error) *reloader {
	return &reloader{changes: changes, topic: topic, read: read, lock: make(chan struct{}, 1)}
}

// refresh reads the topic again, unless another caller has begun to since the call. It does nothing if no other gateway
// shares the store. The caller must not hold a lock that read takes.
func (r *reloader) refresh(ctx context.Context) error { return r.readSince(ctx, time.Now(), true) }

// refreshStale is refresh for a caller that found something missing: it reads only if the topic's version has changed.
func (r *reloader) refreshStale(ctx context.Context) error {
	return r.readSince(ctx, time.Now(), false)
}

func (r *reloader) readSince(ctx context.Context, asked time.Time, forced bool) error {
	if r.changes == nil {
		return nil
	}
	select {
	case r.lock <- struct{}{}:
		defer func() { <-r.lock }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if r.began.After(asked) && (r.forced || !forced) {
		return r.failed
	}
	pause := min(max(reloadShare*r.ended.Sub(r.began), reloadPause), maxReloadPause)
	if !supervise.Sleep(ctx, time.Until(r.ended.Add(pause))) {
		return ctx.Err()
	}
	// A caller whose context ends must not make the others fail that wait for the same read.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reloadLimit)
	defer cancel()
	r.began, r.forced = time.Now(), forced
	r.failed = r.reload(ctx)
	r.ended = time.Now()
	return r.failed
}

func (r *reloader) reload(ctx context.Context) error {
	version, err := r.changes.Version(ctx, r.topic)
	if err != nil || version == r.version && !r.forced {
		return err
	}
	if err := r.read(ctx); err != nil {
		return err
	}
	r.version = version
	return nil
}

// run refreshes whenever the topic may have changed, until ctx ends.
func (r *reloader) run(ctx context.Context) {
	tick := time.NewTicker(reloadInterval)
	defer tick.Stop()
	for read := r.refresh; ; {
		changed := r.changes.Changed(r.topic)
		_ = read(ctx) // a failure is retried, and the store logs it
		select {
		case <-changed:
			read = r.refresh
		case <-tick.C:
			read = r.refreshStale
		case <-ctx.Done():
			return
		}
	}
}

// retry makes a change and, if it fails, refreshes the topics and tries once more: another gateway may have changed
// them.
func retry[T any](ctx context.Context, change func() (T, error), stale ...*reloader) (T, error) {
	result, err := change()
	switch domain.CodeOf(err) {
	case domain.NotFound, domain.Conflict, domain.Invalid, domain.Unauthorized:
	default:
		return result, err
	}
	if stale[0].changes == nil {
		return result, err
	}
	if err := refresh(ctx, stale...); err != nil {
		return result, err
	}
	return change()
}

// notFound returns err, with another message if it is NotFound.
func notFound(err error, message string) error {
	if domain.CodeOf(err) == domain.NotFound {
		return domain.WrapError(domain.NotFound, err, message)
	}
	return err
}

func refresh(ctx context.Context, topics ...*reloader) error {
	for _, r := range topics {
		if err := r.refresh(ctx); err != nil {
			return err
		}
	}
	return nil
}
