package domain

import (
	"time"
	"unicode/utf8"
)

// FeedCursor is the reading position in one feed, kept for a project name and URL even when the project is removed.
type FeedCursor struct {
	Project string
	URL     string
	// Since is the greatest timestamp_ms read so far, leaving out those more than MaxClockAhead ahead of the gateway's clock.
	Since int64
	// Instance and Sequence are Feed-Instance and Feed-Sequence of the last stored read;
	// both empty for a server that sends none.
	Instance string
	Sequence int64
}

// FeedRead is one answer of a project's feed, with the position that it leads to.
type FeedRead struct {
	Cursor FeedCursor // after this read
	// Records are in the order in which they enter the merged stream, a feed_gap record first where one is due.
	Records    []Record
	ReceivedAt time.Time
	// Ahead is the newest stamp in the project's buffer when that is more than MaxClockAhead after ReceivedAt, else zero.
	Ahead time.Time
	// Epoch is that of the duty to follow the feed under which the read began, 0 where no duty is needed.
	Epoch int64
}

// Appended is the result of storing reads.
type Appended struct {
	Added []Event // those that are new, with consecutive ids
	Last  int64   // the last id before them
	// Refused are the indexes of reads that were not stored, since another gateway follows their feeds by now.
	Refused []int
}

// FeedResult is what a read of a project's feed says about its pipeline.
type FeedResult struct {
	// Version is the pipeline's, as its server names it; "" for one that does not, and after a read that failed.
	Version string
	News    bool // events came
	Failed  bool
}

// EventPage holds the first events that an EventQuery selects.
type EventPage struct {
	Events []Event
	More   bool // further events are selected, past the last of these in the query's direction
}

// GatewayUserAgent is how a gateway names itself to the servers that it follows. A gateway does not let itself be followed: its
// own records would come back to it, again and again.
const GatewayUserAgent = "switchyard-gateway"

// EventQuery selects events of the merged stream.
type EventQuery struct {
	After    int64 // events with a greater id, oldest first
	Before   int64 // when Backward: events with a smaller id, newest first; 0 is the newest page
	Backward bool
	Limit    int       // at most this many, and fewer of huge ones
	Bytes    int       // of huge ones, no more after records of so many bytes in all; 0 is the most that a page may have
	Project  string    // only this project's, "" for all
	Type     EventType // only this type, "" for all
	Text     string    // only events whose record or project holds this text, case-insensitively; "" for all
}

// MaxFilter is the longest text in a filter, in characters.
const MaxFilter = 200

// Check returns an Invalid error for a filter that is too long.
func (q EventQuery) Check() error {
	for name, text := range map[string]string{"project": q.Project, "type": string(q.Type), "q": q.Text} {
		if err := CheckFilter(name, text); err != nil {
			return err
		}
	}
	return nil
}

// CheckFilter returns an Invalid error that names the parameter when a filter's text is too long.
func CheckFilter(name, text string) error {
	if utf8.RuneCountInString(text) > MaxFilter {
		return Errorf(Invalid, "%s: must be at most %d characters", name, MaxFilter)
	}
	return nil
}

// Expired selects the events of a project that are no longer kept.
type Expired struct {
	Project     string
	Before, Now time.Time // received before that; a time after Now is one of a clock that was wrong
	Keep        int       // but the newest so many
	Needed      int64     // and but those from this id on
}
