// Package feed keeps the latest notifications of one project as encoded events: a ring that is written by the board
// and read by any number of concurrent requests. It must never know where notifications come from, nor HTTP.
package feed

import (
	"crypto/rand"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"switchyard/internal/domain"
)

// Capacity is the number of events that a ring keeps; the oldest are dropped first.
const Capacity = 500

// Ring holds the latest events. An event is encoded once, when it is recorded; readers share immutable snapshots,
// take no lock and copy nothing.
type Ring struct {
	instance string
	now      func() time.Time

	writing  sync.Mutex
	last     int64    // the newest stamp
	sequence uint64   // events ever recorded
	records  []record // of the events kept; append-only, so that snapshots may share it
	encoded  []byte   // their JSON, each followed by a comma; append-only likewise
	start    int      // offset of encoded[0] in everything ever encoded

	current atomic.Pointer[Snapshot]
}

type record struct {
	stamp int64
	start int // offset of its JSON in everything ever encoded
}

// New returns an empty ring whose stamps come from now, usually time.Now.
func New(now func() time.Time) *Ring {
	r := &Ring{instance: rand.Text(), now: now}
	r.current.Store(&Snapshot{SequenceText: "0", replaced: make(chan struct{})})
	return r
}

// Instance identifies this ring; it changes whenever the server restarts.
func (r *Ring) Instance() string { return r.instance }

func (r *Ring) Snapshot() *Snapshot { return r.current.Load() }

// Record adds the events of the notifications, all at once: a waiting reader wakes up once for all of them.
// Stamps are the time of recording in Unix milliseconds, raised where needed so that each is greater than
// the one before, whatever the clock does.
func (r *Ring) Record(notifications ...Notification) {
	r.writing.Lock()
	defer r.writing.Unlock()
	now, before := r.now().UnixMilli(), r.sequence
	for _, notification := range notifications {
		if notification.Type == domain.StageTransition && notification.FromStage == "" {
			continue
		}
		stamp := max(now, r.last+1)
		notification.TimestampMS = stamp
		r.records = append(r.records, record{stamp, r.start + len(r.encoded)})
		r.encoded = append(append(r.encoded, domain.EncodeJSON(notification)...), ',')
		r.last = stamp
		r.sequence++
	}
	if r.sequence > before {
		r.publish()
	}
}

// publish drops the events beyond Capacity and publishes the new state. Dropping only moves the front of the slices:
// the next append that finds no room copies the rest to a new array, and old snapshots keep theirs.
func (r *Ring) publish() {
	if excess := len(r.records) - Capacity; excess > 0 {
		r.records = r.records[excess:]
		r.encoded = r.encoded[r.records[0].start-r.start:]
		r.start = r.records[0].start
	}
	old := r.current.Load()
	r.current.Store(&Snapshot{
		SequenceText: strconv.FormatUint(r.sequence, 10),
		records:      r.records,
		encoded:      r.encoded,
		replaced:     make(chan struct{}),
	})
	close(old.replaced)
}

// Snapshot is one state of a ring. It is immutable.
type Snapshot struct {
	// SequenceText is the count of events recorded since the ring was made, in decimal.
	SequenceText string

	records  []record
	encoded  []byte
	replaced chan struct{} // closed when there is a newer snapshot

	build sync.Once
	array []byte
}

// Has reports whether an event is stamped later than since.
func (s *Snapshot) Has(since uint64) bool {
	return len(s.records) > 0 && uint64(s.records[len(s.records)-1].stamp) > since
}

// Replaced is closed once the ring holds events that this snapshot does not.
func (s *Snapshot) Replaced() <-chan struct{} { return s.replaced }

// After returns the JSON array of the events stamped later than since, oldest first, as two consecutive pieces.
// The caller must not change them.
func (s *Snapshot) After(since uint64) (head, tail []byte) {
	first, _ := slices.BinarySearchFunc(s.records, since, func(r record, since uint64) int {
		if uint64(r.stamp) > since {
			return 1
		}
		return -1
	})
	switch first {
	case len(s.records):
		return []byte("[]"), nil
	case 0:
		return s.whole(), nil
	}
	return []byte("["), s.whole()[1+s.records[first].start-s.records[0].start:]
}

// whole returns the array of all events, built on first use.
func (s *Snapshot) whole() []byte {
	s.build.Do(func() {
		s.array = make([]byte, 0, len(s.encoded)+1)
		s.array = append(s.array, '[')
		s.array = append(s.array, s.encoded[:len(s.encoded)-1]...) // without the last comma
		s.array = append(s.array, ']')
	})
	return s.array
}

// Notification is something that happened to a story on a board, and its event; the fields are in the order in which
// they are written. A move has both stages and trouble has a reason, none of them empty. A move from no stage is a new
// story, which is not an event.
type Notification struct {
	Type        domain.EventType `json:"type"`
	StoryID     string           `json:"story_id"`
	Name        string           `json:"story_name"`
	FromStage   string           `json:"from_stage,omitempty"`
	ToStage     string           `json:"to_stage,omitempty"`
	Reason      string           `json:"reason,omitempty"`
	TimestampMS int64            `json:"timestamp_ms"` // set when it is recorded
}
