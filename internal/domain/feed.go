package domain

import (
	"cmp"
	"context"
	"iter"
	"time"
	"unicode/utf8"
)

// FeedCursor is the reading position in a feed. It is kept by project name and URL, even after the project has been
// removed.
type FeedCursor struct {
	Project string
	URL     string
	// Since is the greatest timestamp_ms read so far, ignoring those more than MaxClockSkew ahead of the gateway's clock.
	Since int64
	// Instance and Sequence are Feed-Instance and Feed-Sequence of the last stored read, empty for a server that does not
	// send them.
	Instance string
	Sequence int64
}

// FeedRead is a response of a project's feed, with the position after it.
type FeedRead struct {
	Cursor FeedCursor // after this read
	// Records are in their order in the merged stream, beginning with a feed_gap record if there was a gap.
	Records     []Record
	ReceivedAt  time.Time
	ClockSkewed bool // a timestamp is more than MaxClockSkew after ReceivedAt
	// Review, unless nil, is what the gateway stores with its own record; the reading position then stays.
	Review *ReviewRecord
	// Token is the leader's fencing token, 0 if none is needed.
	Token int64
}

type AppendResult struct {
	Added []Event // the new events, with consecutive ids
	Last  int64   // the last id before them
	// Visits are those that the events have changed, each story's in order.
	Visits []Visit
	// Refused are the indexes of reads that were not stored because another gateway leads now.
	Refused []int
}

// FeedResult is what a read of a project's feed says about its pipeline.
type FeedResult struct {
	// Version is the pipeline's version, "" if the server does not send one or the read failed.
	Version string
	News    bool // there were new events
	Failed  bool
}

// EventPage holds the first events that match an EventQuery.
type EventPage struct {
	Events []Event
	More   bool // more events match, beyond the last of these in the query's direction
}

// GatewayUserAgent is the User-Agent of a gateway's requests to project servers.
const GatewayUserAgent = "switchyard-gateway"

// HopHeader marks a gateway's requests to project servers. Another gateway, or the same one registered as its own
// project, does not pass them on: they would go round in circles.
const HopHeader = "Switchyard-Hop"

// ByHeader says whose change a gateway's change of a story is: a name of at most MaxBy characters, percent-encoded.
const (
	ByHeader = "Switchyard-By"
	MaxBy    = 100
)

// EventQuery selects events of the merged stream.
type EventQuery struct {
	// ByTime orders by timestamp, newest first, and then by id, as people read: Before is then used with BeforeAt, and
	// After and Backward are ignored.
	ByTime   bool
	BeforeAt int64 // Unix milliseconds
	From, To int64 // when ByTime: timestamps from From up to, but excluding, To, in Unix milliseconds; To 0 is no limit
	After    int64 // events with a greater id, oldest first
	Before   int64 // when Backward: events with a smaller id, newest first; 0 is the newest page
	Backward bool
	Limit    int       // at most this many events, fewer if they are huge
	Bytes    int       // of records, after which the page ends; 0 for the maximum
	Project  string    // only this project's, "" for all
	Type     EventType // only this type, "" for all
	Finished bool      // only what finished a story, as Finishes says
	Finishes func(Event) bool
	Text     string // only events whose record or project contains this text, ignoring case; "" for all
}

// EventsBetween yields the events with ids over after, up to and including upto, by increasing id. It ends with an
// error of page.
func EventsBetween(
	ctx context.Context, page func(context.Context, EventQuery) (EventPage, error), after, upto int64,
) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for after < upto {
			p, err := page(ctx, EventQuery{After: after, Limit: 1000})
			if err != nil {
				yield(Event{}, err)
				return
			}
			if len(p.Events) == 0 {
				return
			}
			for _, e := range p.Events {
				if after = e.ID; e.ID > upto || !yield(e, nil) {
					return
				}
			}
		}
	}
}

// MaxFilter is the longest text in a filter, in characters.
const MaxFilter = 200

// Check returns an Invalid error for a filter that is too long.
func (q EventQuery) Check() error {
	return cmp.Or(CheckFilter("project", q.Project), CheckFilter("type", string(q.Type)), CheckFilter("q", q.Text))
}

// CheckFilter returns an Invalid error that names the parameter if its text is too long.
func CheckFilter(name, text string) error {
	if utf8.RuneCountInString(text) > MaxFilter {
		return Errorf(Invalid, "%s: must be at most %d characters", name, MaxFilter)
	}
	return nil
}

// ExpiryQuery selects the events of a project that have expired.
type ExpiryQuery struct {
	Project     string
	Before, Now time.Time // received before Before; or after Now, when a clock was wrong
	Keep        int       // except the newest Keep events
	Needed      int64     // and except those from this id on
}

// Topic is what a change was about. If several gateways share a database, each notifies the others of the topics of its
// changes.
type Topic string

const (
	TopicProjects         Topic = "projects" // the registry, and which project is active
	TopicAgents           Topic = "agents"   // agents, their states and assignments, and join tokens
	TopicAccess           Topic = "access"   // named tokens and sessions
	TopicAcknowledgements Topic = "acknowledgements"
	TopicClaims           Topic = "claims" // who works on which story
	TopicQuestions        Topic = "questions"
	TopicSessions         Topic = "agent_sessions" // of coding agents
	TopicTargets          Topic = "targets"        // of notifications, and whether they fail
	TopicBot              Topic = "bot"            // the bot's configuration
	TopicEvents           Topic = "events"
	TopicVisits           Topic = "visits" // the stages in which stories are and have been
	TopicUsage            Topic = "usage"  // calls of models
	TopicLease            Topic = "lease"  // the leader's lease was granted or released
)

// LiveGateway is one of the gateways that share a database.
type LiveGateway struct {
	ID    string
	Name  string // of its host
	Since time.Time
	Leads bool // it follows the projects and runs the bot
	Asked bool // it is handling this request
}

// ErrNotLeader is returned for a write that was refused because another gateway has taken over the lead.
var ErrNotLeader = Errorf(Unavailable, "another gateway has taken over")

// Leadership says whether this gateway leads. If several gateways share the store, one of them does at a time: it
// follows the feeds, keeps the visits, and runs the bot and retention.
type Leadership interface {
	Leads() bool
	// Token returns the fencing token for the leader's writes, which the store refuses once another gateway has taken
	// over; false if this gateway does not lead.
	Token() (token int64, leads bool)
	// Changed returns a channel that is closed when this gateway begins or ceases to lead. Call it before Leads or Token.
	Changed() <-chan struct{}
}

// SoleGateway is the leadership of a gateway that shares its store with no other. No write is refused under token 0.
type SoleGateway struct{}

func (SoleGateway) Leads() bool { return true }

func (SoleGateway) Token() (int64, bool) { return 0, true }

func (SoleGateway) Changed() <-chan struct{} { return nil }
