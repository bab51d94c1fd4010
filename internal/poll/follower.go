package poll

import (
	"context"
	"errors"
	"hash/maphash"
	"math/rand/v2"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

const (
	// longPoll is how long a server that can do so is asked to hold its answer.
	longPoll = 25 * time.Second
	// minPause is the least time from one read to the next: one feed that never falls silent costs no more than 500 a second.
	minPause = 2 * time.Millisecond
	// firstRetry and maxRetry bound the pause after a failed read.
	firstRetry = 100 * time.Millisecond
	maxRetry   = 30 * time.Second
	// steady is how long reading must have gone well for the next failure to be followed by the first pause again.
	steady = time.Second
	// maxPart is the number of records of one feed that are stored in one transaction.
	maxPart = 1000
	// maxRefused is the number of different refused records that are logged for one feed.
	maxRefused = 100
)

// errChanged says that the project was removed or changed while its feed was read.
var errChanged = errors.New("the project has changed")

// follower reads the feed of one project under one URL.
type follower struct {
	Options
	turns    turns
	project  domain.Project
	position *position // nil until it was loaded, or when the store may know better
	failing  bool
	retry    supervise.Backoff
	refused  map[uint64]bool // hashes of the refused records that were logged
}

func newFollower(o Options, t turns, project domain.Project) *follower {
	return &follower{
		Options: o, turns: t, project: project,
		retry:   supervise.Backoff{First: firstRetry, Max: maxRetry},
		refused: map[uint64]bool{},
	}
}

// run follows until ctx ends. After any failure it begins anew, after a pause.
func (f *follower) run(ctx context.Context) error {
	f.position = nil
	for {
		began := time.Now()
		err := f.follow(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(began) > steady {
			f.retry.Reset()
		}
		if !f.failing && !errors.Is(err, errChanged) {
			f.failing = true
			f.Log.WarnContext(ctx, "feed cannot be read", "project", f.project.Name, "error", err)
		}
		supervise.Sleep(ctx, f.retry.Next())
	}
}

// follow reads and records until something fails.
func (f *follower) follow(ctx context.Context) error {
	if f.position == nil {
		cursors, err := f.Events.Cursors(ctx, f.project.Name)
		if err != nil {
			return err
		}
		f.position = newPosition(f.project, cursors)
	}
	var wait time.Duration // none at first: whether the server still has the same buffer must be known at once
	var opened time.Time   // when this server's current buffer was first read
	for {
		began, before := time.Now(), f.position.cursor
		answer, continued, err := f.read(ctx, wait)
		if err != nil {
			return err
		}
		if !continued {
			wait = 0
			continue
		}
		f.succeeded(ctx)

		// The next read follows at once only if this one promises something. A server that answers early with nothing,
		// repeats itself or has a new buffer each time is read at the interval.
		pause := f.Interval
		newBuffer := answer.Instance != before.Instance
		switch {
		case answer.Instance == "":
		case newBuffer && began.Sub(opened) > f.Interval,
			!newBuffer && f.position.cursor.Since > before.Since,
			!newBuffer && wait == 0:
			pause = minPause
		}
		if newBuffer {
			opened = began
		}
		if answer.Instance != "" {
			wait = longPoll
			pause = min(pause, longPoll)
		}
		if !supervise.Sleep(ctx, time.Until(began.Add(pause-rand.N(pause/4+1)))) {
			return ctx.Err()
		}
	}
}

// read asks for what follows the position and stores it. It returns false when the server has another buffer now, which the
// next read takes from its beginning.
func (f *follower) read(ctx context.Context, wait time.Duration) (answer domain.FeedAnswer, continued bool, err error) {
	answered := func() {}
	if wait == 0 {
		turn, err := f.turns.take(ctx)
		if err != nil {
			return answer, false, err
		}
		defer turn.give()
		answered = turn.answered
	}
	since := f.position.since()
	answer, err = f.Feeds.Feed(ctx, f.project, since, wait)
	answered()
	if err != nil {
		return answer, false, err
	}
	if !f.position.continues(answer, since) {
		f.position.restart()
		return answer, false, nil
	}
	if err := f.record(ctx, answer); err != nil {
		f.position = nil // whether it was stored is not certain
		return answer, false, err
	}
	return answer, true, nil
}

// record stores what the answer brings and moves the position.
func (f *follower) record(ctx context.Context, answer domain.FeedAnswer) error {
	position := f.position
	f.logRefused(ctx, answer)
	if position.repeats(answer) {
		return nil
	}
	read := position.read(answer)
	read.ReceivedAtMS = time.Now().UnixMilli()
	for _, part := range split(read, maxPart) {
		// What was asked of a project that has gone meanwhile is no part of the stream; its position stays where it was.
		if now, ok := f.Projects.Registry().Find(f.project.Name); !ok || now != f.project {
			return errChanged
		}
		if err := f.Events.Record(ctx, part); err != nil {
			return err
		}
		position.moved(part.Cursor)
	}
	position.last = hash(answer.Records)
	return nil
}

func (f *follower) succeeded(ctx context.Context) {
	if f.failing {
		f.failing = false
		f.Log.InfoContext(ctx, "feed is read again", "project", f.project.Name)
	}
}

// logRefused logs each record that cannot be kept once, however often the server sends it.
func (f *follower) logRefused(ctx context.Context, answer domain.FeedAnswer) {
	for _, refused := range answer.Refused {
		key := maphash.Bytes(seed, refused.JSON)
		if f.refused[key] || len(f.refused) == maxRefused {
			continue
		}
		f.refused[key] = true
		f.Log.WarnContext(ctx, "record of a feed skipped", "project", f.project.Name, "error", refused.Why)
	}
}
