package domain

import (
	"encoding/json"
	"slices"
	"time"
)

// TargetProgress is how far a target is. It is stored with each delivery.
type TargetProgress struct {
	// Position is the id of an event: those up to it have been told, or do not concern the target.
	Position int64 `json:"-"`
	// Alerts is the position in the list of alerts: those up to it have been told, or do not concern the target, except
	// for Left, by key, which were acknowledged or not visible when their turn came.
	Alerts int64            `json:"alerts,omitempty"`
	Left   map[string]int64 `json:"left,omitempty"`
	// AlertsFrom is when people chose the alerts that the target gets, until the leader knows its position.
	AlertsFrom time.Time `json:"alerts_from,omitzero"`
	// Over counts, by kind and project, the alerts beyond those that are told singly within the minute OverAt.
	Over   map[string]int `json:"over,omitempty"`
	OverAt time.Time      `json:"over_at,omitzero"`

	// Revision is the target's, when this was last stored.
	Revision int64 `json:"revision,omitempty"`

	Message    string    `json:"message,omitempty"`  // the id of the next message, once it has been tried
	Attempts   int       `json:"attempts,omitempty"` // since the last message was accepted or skipped
	Parts      int       `json:"parts,omitempty"`    // how many of the requests for the next one were accepted
	FirstAt    time.Time `json:"first_at,omitzero"`  // of the first attempt to send it
	NextAt     time.Time `json:"next_at,omitzero"`   // of the next attempt
	FailingAt  time.Time `json:"failing_at,omitzero"`
	Error      string    `json:"error,omitempty"` // of the last attempt
	Gone       bool      `json:"gone,omitempty"`  // the receiver wants no more messages, and nobody has enabled it since
	Skipped    int       `json:"skipped,omitempty"`
	SentAt     time.Time `json:"sent_at,omitzero"` // when the last message was accepted
	SentMS     int64     `json:"sent_ms,omitempty"`
	DigestedAt time.Time `json:"digested_at,omitzero"` // until when digests are settled
	// DigestEvent is the last event before the last digest.
	DigestEvent int64     `json:"digest_event,omitempty"`
	HeldAt      time.Time `json:"held_at,omitzero"` // since when something has been held back for a digest
}

// Message is one message to a target.
type Message struct {
	ID   string          `json:"id"` // the same at each attempt
	Type string          `json:"type"`
	At   time.Time       `json:"at"`
	Data json.RawMessage `json:"data"`
	// Title and Text are for people, without markup; Text may have several lines.
	Title  string `json:"title"`
	Text   string `json:"text"`
	Link   string `json:"link,omitempty"` // an absolute address, "" for none
	Signal Signal `json:"signal,omitempty"`
}

// QueuedMessage is a message that waits until the events up to After have been told.
type QueuedMessage struct {
	ID    int64 // increasing
	After int64
	Message
}

// SendResult is the result of an attempt to send a message.
type SendResult struct {
	Status     int // of the answer, 0 without one
	Took       time.Duration
	RetryAfter time.Duration
	Parts      int   // how many of the message's requests have been accepted so far
	Err        error // nil once all were accepted
}

func (s SendResult) Gone() bool { return s.Err != nil && s.Status == 410 }

// Refused reports whether the receiver rejected this particular message.
func (s SendResult) Refused() bool {
	return s.Err != nil && slices.Contains([]int{400, 413, 422, 431}, s.Status)
}

// retries are the pauses after failed attempts; the last one repeats.
var retries = []time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour,
}

const (
	// maxRetryAfter is the longest pause that a receiver may ask for.
	maxRetryAfter = time.Hour
	// SkipAfter is how long a rejected message is retried.
	SkipAfter = 24 * time.Hour
	// FailingFor is how long a target must fail before that is an alert.
	FailingFor = 10 * time.Minute
)

// Begin prepares p for an attempt to send the message with an id.
func (p *TargetProgress) Begin(id string, now time.Time) {
	if p.Message != id {
		p.Message, p.FirstAt, p.Parts = id, now, 0
	}
}

// Apply brings p up to date after an attempt to send a message. It reports whether the message is done with: accepted
// or skipped.
func (p *TargetProgress) Apply(s SendResult, now time.Time) (done bool) {
	if s.Err == nil {
		p.Reset()
		p.Skipped, p.SentAt, p.SentMS = 0, now, s.Took.Milliseconds()
		return true
	}
	p.Attempts++
	if p.FailingAt.IsZero() {
		p.FailingAt = now
	}
	p.Parts, p.Error, p.Gone = s.Parts, MessageOf(s.Err), s.Gone()
	p.NextAt = now.Add(max(retries[min(p.Attempts, len(retries))-1], min(s.RetryAfter, maxRetryAfter)))
	if !s.Refused() {
		return false
	}
	skip := p.FirstAt.Add(SkipAfter)
	if now.Before(skip) {
		if p.NextAt.After(skip) {
			p.NextAt = skip
		}
		return false
	}
	p.Skipped, p.Attempts, p.Message, p.Parts, p.NextAt = p.Skipped+1, 0, "", 0, now
	return true
}

func (p *TargetProgress) Reset() {
	p.Message, p.Attempts, p.Parts, p.FirstAt, p.NextAt = "", 0, 0, time.Time{}, time.Time{}
	p.FailingAt, p.Error, p.Gone = time.Time{}, "", false
}

// AlertRecord is an alert in the list from which targets are told of them. The list is in the order in which the leader
// noticed them.
type AlertRecord struct {
	Key     string // of the alert; the hash of a long one
	Kind    AlertKind
	Project string
	SinceMS int64
	Seq     int64 // its position, a time in Unix microseconds or shortly after it
}

type Delivery struct {
	At        time.Time
	MessageID string
	What      string // what the message is about
	Attempt   int    // 1 for the first
	Status    int    // of the answer, 0 without one
	Error     string // "" if it was accepted
	Took      time.Duration
	// Message is what was sent, nil unless the receiver has accepted it.
	Message *Message
}

type DeliveryHour struct {
	Target       string
	Hour         time.Time
	Sent, Failed int
}

// DigestRecord is what a target was told at once: events of the stream, and alerts that were open then.
type DigestRecord struct {
	ID          string
	Target      string
	Name        string // of the target
	At          time.Time
	After, Upto int64 // the events with ids over After, up to and including Upto
	DigestContent
}

// Began returns when the digest's time began, in a zone.
func (g *DigestRecord) Began(zone *time.Location) time.Time {
	at := g.At.In(zone)
	switch g.Rules.Digest {
	case HourlyDigest:
		return at.Add(-time.Hour)
	case DailyDigest:
		return at.AddDate(0, 0, -1)
	}
	if g.Rules.Quiet == nil {
		return at
	}
	began := atClock(at, g.Rules.Quiet.From, 0)
	if !began.Before(at) {
		began = atClock(at, g.Rules.Quiet.From, -1)
	}
	return began
}

// DigestContent is what a page shows of a digest. Its JSON form is stored.
type DigestContent struct {
	Span   string         `json:"span"` // what it is about: "The night"
	Text   string         `json:"text"`
	Counts map[string]int `json:"counts"`
	Rules  TargetRules    `json:"rules"` // decides which of the events it is about
	Alerts []DigestAlert  `json:"alerts"`
}

type DigestAlert struct {
	Key   string    `json:"key"`
	Text  string    `json:"text"`
	Link  string    `json:"link"`
	Since time.Time `json:"since"`
}

// TargetSave is what the leader stores about a target at once.
type TargetSave struct {
	Target   string // its id
	Progress TargetProgress
	// Disable disables the target, unless people have changed it since this revision.
	Disable  bool
	Revision int64
	Queued   []QueuedMessage // further messages
	Done     int64           // the finished queued message, 0 for none
	Delivery *Delivery       // an attempt
	Digest   *DigestRecord
	News     bool // other gateways should know
}

// MaxDeliveries is how many attempts for a target are kept, and MaxResent how many of its messages can be sent again.
const (
	MaxDeliveries = 200
	MaxResent     = 10
)

// TargetPreview is what a target with certain rules would have got in the last week. Of alerts it has those that come
// from events and questions; when others began is not kept.
type TargetPreview struct {
	Messages int
	Together int       // those in which digests or the end of quiet hours told everything
	Busiest  time.Time // the day with the most messages, Most
	Most     int
	More     bool    // there was more than was looked at
	Sample   Message // the last one, without a Title if there was none
}
