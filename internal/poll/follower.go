package poll

import (
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/supervise"
	"switchyard/internal/upstream"
)

const (
	// longPoll is how long a server that supports it is asked to hold its answer.
	longPoll = 25 * time.Second
	// firstRetry and maxRetry bound the pause after a failed read.
	firstRetry = 100 * time.Millisecond
	maxRetry   = 30 * time.Second
	// storeRetry is the longest pause after the store failed: reading resumes within seconds of its return.
	storeRetry = 3 * time.Second
	// steady is how long reading must have succeeded for the back-off to start over at firstRetry.
	steady = time.Second
	// maxPart is the number of records of one feed that are stored in one transaction.
	maxPart = 1000
)

// errChanged says that the project was removed or changed while its feed was read.
var errChanged = errors.New("the project has changed")

// follower reads the feed of one project under one URL.
type follower struct {
	Options
	slots     slots
	history   history
	project   domain.Project
	token     int64     // under which this gateway leads
	position  *position // nil until loaded, and when the stored one may differ
	failing   bool
	readSince time.Time // start of the current run of successful reads; zero for none
	retry     supervise.Backoff
	refused   refusals
	rateLimit rateLimit

	wake    chan struct{} // of capacity 1; ends a pause after a failure
	mayWake atomic.Bool   // whether a successful call of another kind ends that pause
}

func newFollower(o Options, s, reads slots, project domain.Project, token int64) *follower {
	return &follower{
		Options: o, slots: s, project: project, token: token, refused: refusals{}, wake: make(chan struct{}, 1),
		history: history{slots: reads, failing: supervise.Backoff{First: historyPause, Max: maxHistoryPause}},
		retry:   supervise.Backoff{First: firstRetry, Max: maxRetry},
	}
}

// run follows the feed until ctx ends. After a failure it pauses, then starts over.
func (f *follower) run(ctx context.Context) error {
	f.position = nil
	defer f.history.reading.Wait()
	for {
		f.readSince = time.Time{}
		err := f.follow(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if !f.readSince.IsZero() && time.Since(f.readSince) > steady {
			f.retry.Reset()
		}
		// Unavailable comes from the store
		if !f.failing && !errors.Is(err, errChanged) && domain.CodeOf(err) != domain.Unavailable {
			f.failing = true
			f.mayWake.Store(true)
			f.Pipelines.RefetchIfChanged(f.project, domain.FeedResult{Failed: true})
			f.Log.WarnContext(ctx, "feed cannot be read", "project", f.project.Name, "error", err)
		}
		next := f.retry.Next()
		if domain.CodeOf(err) == domain.Unavailable {
			next = min(next, storeRetry)
		}
		supervise.Await(ctx, f.wake, next)
	}
}

// observe takes the outcome of a call of another kind to the project's server. A success after a failure means that the
// server is back: its feed is read at once. A server whose feed alone fails is not read more often because of that.
func (f *follower) observe(err error) {
	if err != nil {
		f.mayWake.Store(true)
	} else if f.mayWake.CompareAndSwap(true, false) {
		select {
		case f.wake <- struct{}{}:
		default:
		}
	}
}

func (f *follower) follow(ctx context.Context) error {
	if f.position == nil {
		if err := f.load(ctx); err != nil {
			return err
		}
	}
	pace := pace{interval: f.Interval}
	var pipeline string // its version, "" while unknown
	for {
		began, before := time.Now(), f.position.cursor
		answer, continued, err := f.read(ctx, pace.wait, pipeline)
		if err != nil {
			return err
		}
		if !continued {
			pace.wait = 0
			continue
		}
		if f.failing {
			f.failing = false
			f.Log.InfoContext(ctx, "feed is read again", "project", f.project.Name)
		}
		if f.readSince.IsZero() {
			f.readSince = time.Now()
		}
		pace.moved, pipeline = answer.Pipeline != pipeline, answer.Pipeline
		f.Pipelines.RefetchIfChanged(f.project, domain.FeedResult{Version: pipeline, News: answer.Received > 0})
		f.readHistory(ctx)
		now := time.Now()
		next := began.Add(pace.pause(answer, before, f.position.cursor, began))
		if due := now.Add(f.rateLimit.spend(answer, now)); due.After(next) {
			next = due
		}
		if !supervise.Sleep(ctx, time.Until(next)) {
			return ctx.Err()
		}
	}
}

func (f *follower) load(ctx context.Context) error {
	_, release, err := f.slots.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	cursors, err := f.Events.Cursors(ctx, f.project.Name)
	if err == nil {
		f.position = newPosition(f.project, cursors, clock.Now())
	}
	return err
}

// read requests the records after the position and stores them; with a wait, the server also answers when the
// pipeline's version is no longer the given one. It returns false when the server has a new buffer, which the next read
// takes from its beginning.
func (f *follower) read(
	ctx context.Context, wait time.Duration, pipeline string,
) (answer upstream.FeedAnswer, continued bool, err error) {
	answered := func() {}
	if wait == 0 {
		var release func()
		if answered, release, err = f.slots.acquire(ctx); err != nil {
			return answer, false, err
		}
		defer release()
	}
	since := f.position.since()
	answer, err = f.Feeds.Feed(ctx, f.project, upstream.FeedRequest{Since: since, Wait: wait, Pipeline: pipeline})
	answered()
	if err != nil {
		return answer, false, err
	}
	if !f.position.continues(answer, since) {
		f.position.restart()
		return answer, false, nil
	}
	if err := f.record(ctx, answer); err != nil {
		f.position = nil // it may or may not have been stored
		return answer, false, err
	}
	return answer, true, nil
}

func (f *follower) record(ctx context.Context, answer upstream.FeedAnswer) error {
	position := f.position
	f.refused.log(ctx, f.Log, f.project.Name, answer.Refused)
	if position.repeats(answer) {
		return nil
	}
	for _, part := range split(position.read(answer, clock.Now()), maxPart) {
		// Records of a project that was removed or changed meanwhile are not part of the stream; its position stays.
		if now, ok := f.Projects.Registry().Find(f.project.Name); !ok || now != f.project {
			return errChanged
		}
		part.Token = f.token
		if err := f.Events.Record(ctx, part); err != nil {
			return err
		}
		position.moved(part.Cursor)
	}
	position.last = hash(answer.Records)
	return nil
}

const (
	// readSlots is how many feeds are read from their beginning at a time: each may return a whole buffer, and a gateway
	// that starts reads all of them.
	readSlots = 32
	// slotLimit is the time after which a server that has not answered loses its slot, so that slow ones do not hold up
	// others.
	slotLimit = 250 * time.Millisecond
)

// slots is a semaphore: it holds a value for each slot that is taken.
type slots chan struct{}

// acquire waits for a slot, the right to read a feed and to hold its records until they are stored. answered keeps it
// until release, unless the answer came too late for that. It returns ctx's error when that ends first.
func (s slots) acquire(ctx context.Context) (answered, release func(), err error) {
	select {
	case s <- struct{}{}:
		release = sync.OnceFunc(func() { <-s })
		limit := time.AfterFunc(slotLimit, release)
		return func() { limit.Stop() }, release, nil
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
}

// maxRefused is the most different refused records that are logged for one feed.
const maxRefused = 100

// refusals holds the hashes of a feed's refused records that have been logged.
type refusals map[uint64]bool

// log logs each refused record once, however often the server sends it.
func (r refusals) log(ctx context.Context, log *slog.Logger, project string, records []upstream.RefusedRecord) {
	for _, record := range records {
		key := maphash.Bytes(seed, record.JSON)
		if r[key] || len(r) == maxRefused {
			continue
		}
		r[key] = true
		log.WarnContext(ctx, "record of a feed skipped", "project", project, "error", record.Why)
	}
}
