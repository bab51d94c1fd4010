package poll

import (
	"cmp"
	"hash/maphash"
	"math"
	"slices"

	"switchyard/internal/domain"
)

// position is how far a project's feed has been read and stored, and the rules by which an answer moves it.
type position struct {
	cursor domain.FeedCursor   // of this name and URL; without a stored one it is at the beginning
	known  []domain.FeedCursor // every stored one of this name, cursor included
	last   uint64              // hash of the records of the answer that was stored last
}

func newPosition(project domain.Project, known []domain.FeedCursor) *position {
	p := &position{cursor: domain.FeedCursor{Project: project.Name, URL: project.URL}, known: slices.Clone(known)}
	if i := p.find(); i >= 0 {
		p.cursor = known[i]
	}
	return p
}

// find returns where the position is among the stored ones, -1 when it is not.
func (p *position) find() int {
	return slices.IndexFunc(p.known, func(c domain.FeedCursor) bool { return c.URL == p.cursor.URL })
}

// since is what the feed is asked for. Without Feed-Instance stamps may repeat, so the last one is asked for again.
func (p *position) since() int64 {
	if p.cursor.Instance == "" {
		return max(p.cursor.Since-1, 0)
	}
	return p.cursor.Since
}

// restart goes to the beginning of a new buffer. Nothing is stored by that.
func (p *position) restart() {
	p.cursor = domain.FeedCursor{Project: p.cursor.Project, URL: p.cursor.URL}
}

// continues reports whether the answer, to a request for what follows since, belongs to the buffer that has been read so
// far. The answer of another buffer is whole only when it was asked for from the beginning.
func (p *position) continues(answer domain.FeedAnswer, since int64) bool {
	return answer.Instance == p.cursor.Instance || since == 0
}

// repeats reports whether the answer brings nothing that was not stored already: no record, or just those of the answer
// that was stored last, as from a server that ignores since.
func (p *position) repeats(answer domain.FeedAnswer) bool {
	return answer.Instance == p.cursor.Instance && p.find() >= 0 && (len(answer.Records) == 0 || hash(answer.Records) == p.last)
}

// read returns what an answer brings: its records in the order of their stamps, behind a mark for those that were dropped
// before they could be read, and the position that it leads to.
func (p *position) read(answer domain.FeedAnswer) domain.FeedRead {
	cursor := p.cursor
	before, sequence := p.count(answer)
	cursor.Instance, cursor.Sequence = answer.Instance, sequence
	if len(answer.Records) == 0 {
		if len(p.known) > 0 {
			cursor.Sequence = before // what is missing stays due until a record follows it
		}
		return domain.FeedRead{Cursor: cursor}
	}
	records := slices.Clone(answer.Records)
	slices.SortStableFunc(records, func(a, b domain.Record) int { return cmp.Compare(a.TimestampMS, b.TimestampMS) })
	cursor.Since = max(cursor.Since, records[len(records)-1].TimestampMS)
	// The first read of a project begins its history: what was before is not missing.
	if missed := sequence - before - int64(answer.Received); missed > 0 && len(p.known) > 0 {
		records = slices.Insert(records, 0, domain.NewFeedGap(missed, records[0].TimestampMS))
	}
	return domain.FeedRead{Cursor: cursor, Records: records}
}

// count returns the sequence of the answer's buffer at its last stored read, under whichever URL, and after the answer.
func (p *position) count(answer domain.FeedAnswer) (before, after int64) {
	if answer.Instance == "" {
		return 0, 0
	}
	for _, c := range p.known {
		if c.Instance == answer.Instance {
			before = max(before, c.Sequence)
		}
	}
	if answer.Sequence < 0 { // not told: nothing is missing
		return before, min(before, math.MaxInt64-int64(answer.Received)) + int64(answer.Received)
	}
	return before, answer.Sequence
}

// moved notes that a read which led to cursor is in the store.
func (p *position) moved(cursor domain.FeedCursor) {
	p.cursor = cursor
	if i := p.find(); i >= 0 {
		p.known[i] = cursor
	} else {
		p.known = append(p.known, cursor)
	}
}

// split cuts a read into parts of at most size records, each with the position that it leads to, so that a huge feed does
// not hold up the others while it is stored.
func split(read domain.FeedRead, size int) []domain.FeedRead {
	var parts []domain.FeedRead
	for len(read.Records) > size {
		part := read
		part.Records, read.Records = read.Records[:size], read.Records[size:]
		// What is left has later stamps, or this one as well.
		part.Cursor.Since = max(min(part.Records[size-1].TimestampMS, read.Records[0].TimestampMS-1), 0)
		part.Cursor.Sequence = max(part.Cursor.Sequence-int64(len(read.Records)), 0)
		parts = append(parts, part)
	}
	return append(parts, read)
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
