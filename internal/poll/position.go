package poll

import (
	"hash/maphash"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/upstream"
)

// position is how far a project's feed has been read and stored, with the rules by which an answer moves it.
type position struct {
	cursor domain.FeedCursor   // of this name and URL; at the beginning if none is stored
	known  []domain.FeedCursor // every stored one of this name, cursor included
	last   uint64              // hash of the records of the last stored answer
}

func newPosition(project domain.Project, known []domain.FeedCursor, now time.Time) *position {
	p := &position{cursor: domain.FeedCursor{Project: project.Name, URL: project.URL}, known: slices.Clone(known)}
	if i := p.find(); i >= 0 {
		p.cursor = known[i]
	}
	if p.cursor.Since > now.Add(domain.MaxClockSkew).UnixMilli() {
		p.cursor.Since = 0 // it was stored while the gateway's clock was wrong
	}
	return p
}

// find returns the index of the position among the stored ones, -1 if it is not stored.
func (p *position) find() int {
	return slices.IndexFunc(p.known, func(c domain.FeedCursor) bool { return c.URL == p.cursor.URL })
}

// since returns the ?since= of the next request. Without Feed-Instance stamps may repeat, so the last one is requested
// again.
func (p *position) since() int64 {
	if p.cursor.Instance == "" {
		return max(p.cursor.Since-1, 0)
	}
	return p.cursor.Since
}

// restart goes to the beginning of a new buffer, without storing anything.
func (p *position) restart() {
	p.cursor = domain.FeedCursor{Project: p.cursor.Project, URL: p.cursor.URL}
}

// continues reports whether the answer, to a request with this since, belongs to the buffer that has been read so
// far. The answer of another buffer is complete only if it was requested from the beginning.
func (p *position) continues(answer upstream.FeedAnswer, since int64) bool {
	return answer.Instance == p.cursor.Instance || since == 0
}

// repeats reports whether the answer has nothing new: no records, or just those of the last stored answer, as from a
// server that ignores since.
func (p *position) repeats(answer upstream.FeedAnswer) bool {
	return answer.Instance == p.cursor.Instance && p.find() >= 0 &&
		(len(answer.Records) == 0 || hash(answer.Records) == p.last)
}

// read returns the read to record for an answer that arrived at now: its records in the order of their stamps, after a
// marker for those that were dropped before they could be read, and the position that it leads to.
func (p *position) read(answer upstream.FeedAnswer, now time.Time) domain.FeedRead {
	read := domain.FeedRead{Cursor: p.cursor, ReceivedAt: now}
	before, after := p.count(answer)
	read.Cursor.Instance, read.Cursor.Sequence = answer.Instance, max(after-int64(answer.Left), 0)
	if len(answer.Records) == 0 {
		if len(p.known) > 0 && answer.Left == 0 {
			read.Cursor.Sequence = before // the gap is reported with the next record
		}
		return read
	}
	records := slices.Clone(answer.Records)
	slices.SortStableFunc(records, func(a, b domain.Record) int { return a.At.Compare(b.At) })
	// A stamp far ahead of the clock would hide all events until then, so it does not move the position.
	limit := now.Add(domain.MaxClockSkew)
	for _, r := range records {
		if r.At.After(limit) {
			read.ClockSkewed = true
		} else {
			read.Cursor.Since = max(read.Cursor.Since, r.At.UnixMilli())
		}
	}
	// The first read of a project begins its history: earlier records are not missing.
	if missed := after - before - int64(answer.Received); missed > 0 && len(p.known) > 0 {
		records = slices.Insert(records, 0, domain.NewFeedGap(missed, records[0].At))
	}
	read.Records = records
	return read
}

// count returns the sequence of the answer's buffer at its last stored read, under whichever URL, and after the answer.
func (p *position) count(answer upstream.FeedAnswer) (before, after int64) {
	if answer.Instance == "" {
		return 0, 0
	}
	for _, c := range p.known {
		if c.Instance == answer.Instance {
			before = max(before, c.Sequence)
		}
	}
	if answer.Sequence < 0 { // unknown: nothing is missing
		return before, min(before, math.MaxInt64-int64(answer.Received)) + int64(answer.Received)
	}
	return before, answer.Sequence
}

// moved notes that a read which led to cursor has been stored.
func (p *position) moved(cursor domain.FeedCursor) {
	p.cursor = cursor
	if i := p.find(); i >= 0 {
		p.known[i] = cursor
	} else {
		p.known = append(p.known, cursor)
	}
}

var seed = maphash.MakeSeed()

func hash(records []domain.Record) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, r := range records {
		_, _ = h.Write(r.JSON) // never fails
	}
	return h.Sum64()
}

// split splits a read into parts of at most size records, each with the position that it leads to, so that storing a
// huge feed does not hold up the others.
func split(read domain.FeedRead, size int) []domain.FeedRead {
	var parts []domain.FeedRead
	for len(read.Records) > size {
		part := read
		part.Records, read.Records = read.Records[:size], read.Records[size:]
		// The remaining records have later stamps, or the same one.
		since := max(min(part.Records[size-1].At.UnixMilli(), read.Records[0].At.UnixMilli()-1), 0)
		part.Cursor.Since = min(since, read.Cursor.Since)
		part.Cursor.Sequence = max(part.Cursor.Sequence-int64(len(read.Records)), 0)
		parts = append(parts, part)
	}
	return append(parts, read)
}

// minPause is the least time from one read to the next: even the busiest feed is read at most 500 times a second.
const minPause = 2 * time.Millisecond

// movedPause is the least time to the next read after an answer that only says that the pipeline has changed.
const movedPause = 50 * time.Millisecond

type pace struct {
	interval time.Duration
	// wait is how long the server is asked to hold its answer: 0 at first, to find out at once whether it still has the
	// same buffer.
	wait   time.Duration
	opened time.Time // when the server's current buffer was first read
	moved  bool      // the pipeline has changed
}

// pause returns the time from the beginning of a read, which moved the position from one to another, to the next read.
// The next one follows at once only if more is to be expected. A server that answers early with nothing, repeats itself
// or has a new buffer each time is read at the interval.
func (p *pace) pause(answer upstream.FeedAnswer, from, to domain.FeedCursor, began time.Time) time.Duration {
	pause := p.interval
	newBuffer := answer.Instance != from.Instance
	switch {
	case answer.Left > 0:
		pause = minPause
	case answer.Instance == "":
	case newBuffer && began.Sub(p.opened) > p.interval,
		!newBuffer && to.Since > from.Since,
		!newBuffer && p.wait == 0:
		pause = minPause
	case p.moved:
		pause = min(pause, movedPause)
	}
	if newBuffer {
		p.opened = began
	}
	if answer.Instance != "" {
		p.wait = longPoll
		pause = min(pause, longPoll)
	}
	return pause - rand.N(pause/4+1) // so that feeds do not stay in step
}

const (
	// recordsPerSecond is how much is read of one project on average; the rest waits in its buffer. A record counts
	// once more for each whole KiB of its size.
	recordsPerSecond = 1000
	// burst is how much may be read at once: twice the most that one read returns of records of the usual size.
	burst = 10_000
)

// rateLimit is a token bucket that limits how much is read of a project.
type rateLimit struct {
	used float64 // at the time at; over burst when too much was read
	at   time.Time
}

// spend records what an answer cost and returns how long to wait before the next read.
func (l *rateLimit) spend(answer upstream.FeedAnswer, now time.Time) time.Duration {
	cost := answer.Received - answer.Left
	for _, r := range answer.Records {
		cost += len(r.JSON) >> 10
	}
	l.used = max(l.used-now.Sub(l.at).Seconds()*recordsPerSecond, 0) + float64(cost)
	l.at = now
	return time.Duration(max(l.used-burst, 0) / recordsPerSecond * float64(time.Second))
}
