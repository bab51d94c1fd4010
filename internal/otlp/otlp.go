// Package otlp takes the calls of models out of OpenTelemetry's log records, as coding agents send them. Nothing else
// leaves it: prompts, commands and outputs stay in the body, which is never decoded as a whole, since empty messages of
// a few bytes would become objects of hundreds. It must know neither HTTP nor the store.
package otlp

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchyard/internal/domain"
)

// MaxRecords is how many records a body may have.
const MaxRecords = 10_000

var (
	ErrMany      = errors.New("the body has over 10,000 log records")
	ErrMalformed = errors.New("the body is no valid export of logs")
)

// Names of attributes.
const (
	project   = "switchyard.project"
	story     = "switchyard.story_id"
	event     = "event.name"
	kind      = "event.kind"
	timestamp = "event.timestamp"
	sequence  = "event.sequence"
	session   = "session.id"
	thread    = "conversation.id" // Codex's session
	request   = "request_id"
	model     = "model"
	usd       = "cost_usd"
	usdMicros = "cost_usd_micros"
)

// client says how the record of a client's call is read.
type client struct {
	name, session string
	counts        []count
}

// count says what kind of tokens an attribute counts. Some clients also include them in another attribute, from which
// they are subtracted.
type count struct {
	attribute string
	of        domain.Tokens
}

// clients has each client by the name of the event that reports a call.
var clients = map[string]client{
	"api_request": {domain.ClaudeCode, session, []count{
		{"input_tokens", domain.Tokens{Input: 1}},
		{"cache_read_tokens", domain.Tokens{CacheRead: 1}},
		{"cache_creation_tokens", domain.Tokens{CacheCreation: 1}},
		{"output_tokens", domain.Tokens{Output: 1}},
	}},
	"codex.sse_event": {domain.Codex, thread, []count{
		{"input_token_count", domain.Tokens{Input: 1}},
		{"cached_token_count", domain.Tokens{Input: -1, CacheRead: 1}},
		{"cache_write_token_count", domain.Tokens{Input: -1, CacheCreation: 1}},
		{"output_token_count", domain.Tokens{Output: 1}},
	}},
	"gemini_cli.api_response": {"gemini-cli", session, []count{
		{"input_token_count", domain.Tokens{Input: 1}},
		{"tool_token_count", domain.Tokens{Input: 1}},
		{"cached_content_token_count", domain.Tokens{Input: -1, CacheRead: 1}},
		{"output_token_count", domain.Tokens{Output: 1}},
		{"thoughts_token_count", domain.Tokens{Output: 1}},
	}},
}

// wanted are the names of all attributes that are read.
var wanted = func() map[string]bool {
	names := map[string]bool{}
	for _, name := range []string{
		project, story, event, kind, timestamp, sequence, session, thread, request, model, usd, usdMicros,
	} {
		names[name] = true
	}
	for _, c := range clients {
		for _, n := range c.counts {
			names[n.attribute] = true
		}
	}
	return names
}()

// record is a log record, as far as it is read.
type record struct {
	attributes
	resource       attributes
	time, observed uint64 // Unix nanoseconds, 0 for unknown
}

func (r *record) get(name string) string {
	if value, given := r.attributes[name]; given {
		return value
	}
	return r.resource[name]
}

// Decode returns the calls in a request for the export of logs, and how many records were dropped because what they say
// about a call is impossible. At of a call is its time as sent, Project and StoryID are as the record names them. It
// returns ErrMalformed and ErrMany, which reveal nothing of the body.
func Decode(body []byte, isJSON bool) (calls []domain.Call, dropped int, err error) {
	err = message{body, isJSON}.records(func(resource attributes, sent message) error {
		r := record{resource: resource}
		call, valid, err := r.read(sent)
		if !valid {
			dropped++
		} else if call != nil {
			calls = append(calls, *call)
		}
		return err
	})
	switch err {
	case nil:
		return calls, dropped, nil
	case ErrMany:
		return nil, 0, ErrMany
	}
	return nil, 0, ErrMalformed
}

// read returns the call that a record reports, nil for none. It is not valid if what the record says about it is
// impossible.
func (r *record) read(sent message) (call *domain.Call, valid bool, err error) {
	if !isModelCall(sent) {
		return nil, true, nil
	}
	err = sent.each(
		field{"timeUnixNano", 1, func(at message) error { r.time = at.number(); return nil }},
		field{"observedTimeUnixNano", 11, func(at message) error { r.observed = at.number(); return nil }},
		field{"attributes", 6, r.attributes.add},
	)
	of, known := clients[strings.TrimPrefix(r.attributes[event], "claude_code.")]
	if err != nil || !known || of.name == domain.Codex && !of.isCounted(r) {
		return nil, true, err
	}
	c := &domain.Call{
		Client: of.name, Session: r.get(of.session), Model: r.attributes[model],
		Project: r.get(project), StoryID: r.get(story),
	}
	var counted, priced bool
	c.Tokens, counted = of.tokens(r)
	c.Stated, priced = r.statedCost()
	if !counted || !priced || !c.Valid() {
		return nil, false, nil
	}
	var sentAt string
	c.At, sentAt = r.callTime()
	switch {
	case c.Session != "" && r.attributes[request] != "":
		c.Key = domain.CallKey("request", c.Session, r.attributes[request])
	case c.Session != "" && r.attributes[sequence] != "":
		c.Key = domain.CallKey("sequence", c.Session, r.attributes[sequence], sentAt)
	default:
		c.Key = domain.CallKey("call", c.Client, c.Session, sentAt, c.Model, fmt.Sprint(c.Tokens))
	}
	return c, true, nil
}

// isModelCall reports whether a record may be of a call. Few of those that agents send are.
func isModelCall(record message) bool {
	for name := range clients {
		if bytes.Contains(record.sent, []byte(name)) {
			return true
		}
	}
	return false
}

// isCounted reports whether the record is Codex's for the end of a call and has its token counts: it comes twice, once
// without them.
func (of client) isCounted(r *record) bool {
	given := func(n count) bool { return r.attributes[n.attribute] != "" }
	return r.attributes[kind] == "response.completed" && slices.ContainsFunc(of.counts, given)
}

// tokens adds up the tokens of a call. ok is false for anything that is not a count.
func (of client) tokens(r *record) (t domain.Tokens, ok bool) {
	for _, n := range of.counts {
		if text, given := r.attributes[n.attribute]; given {
			tokens, ok := whole(text, domain.MaxTokens)
			if !ok {
				return t, false
			}
			t = t.Plus(n.of.Times(tokens))
		}
	}
	return t, true
}

// whole reads a whole number from 0 to most, in digits.
func whole(text string, most uint64) (n int64, ok bool) {
	number, err := strconv.ParseUint(text, 10, 63)
	return int64(number), err == nil && number <= most
}

// statedCost returns what the record says that its call costs, nil if it says nothing. ok is false for anything that is
// not a price.
func (r *record) statedCost() (cost *domain.Micros, ok bool) {
	if text, given := r.attributes[usdMicros]; given {
		micros, ok := whole(text, uint64(domain.MaxUSD))
		return new(domain.Micros(micros)), ok
	}
	if text, given := r.attributes[usd]; given {
		exact, ok := domain.ParseMicros(text, domain.MaxUSD)
		return &exact, ok
	}
	return nil, true
}

// callTime returns the time of a call, zero if it is unknown, and as it was sent.
func (r *record) callTime() (at time.Time, sent string) {
	sent = r.attributes[timestamp]
	if at, err := time.Parse(time.RFC3339Nano, sent); err == nil {
		return at, sent
	}
	nanos := cmp.Or(r.time, r.observed)
	if nanos == 0 || nanos > math.MaxInt64 {
		return time.Time{}, sent
	}
	return time.Unix(0, int64(nanos)), strconv.FormatUint(nanos, 10)
}
