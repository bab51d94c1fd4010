// Package otlp takes the calls of models out of OpenTelemetry's log records, as coding agents send them. Nothing else
// leaves it: prompts, commands and outputs stay in the body, which is never decoded as a whole. It must know neither
// HTTP nor the store.
package otlp

import (
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

// MaxRecords is how many records a body may have. They are counted before anything is decoded.
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

// count says of which kind the tokens of an attribute are. Some clients count them in another attribute as well, from
// which they are taken.
type count struct {
	attribute string
	of        domain.Tokens
}

// clients are by the name of the event that tells of a call.
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

// maxText is how much of a value is read, in bytes: more than any value may have that is used.
const maxText = 8 << 10

// tooLong stands for a longer one, and is one that no attribute may have.
var tooLong = strings.Repeat("?", 300)

// attributes are the values of the attributes that are wanted, as texts.
type attributes map[string]string

func (a *attributes) set(name, value string) {
	if *a == nil { // most messages have nothing that is wanted
		*a = attributes{}
	}
	(*a)[name] = value
}

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

// result is what has been read of a body.
type result struct {
	calls   []domain.Call
	dropped int
}

// Decode returns the calls in a request for the export of logs, and how many records were dropped since what they say
// of a call cannot be. At of a call is its time as sent, Project and StoryID are as the record names them. It returns
// ErrMalformed and ErrMany, which say nothing of the body.
func Decode(body []byte, isJSON bool) (calls []domain.Call, dropped int, err error) {
	var found result
	walk := walkProtobuf
	if isJSON {
		walk = walkJSON
	}
	records := 0
	err = walk(body, func() error {
		if records++; records > MaxRecords {
			return ErrMany
		}
		return nil
	}, nil)
	if err == nil {
		err = walk(body, nil, found.add)
	}
	switch {
	case errors.Is(err, ErrMany):
		return nil, 0, ErrMany
	case err != nil:
		return nil, 0, ErrMalformed
	}
	return found.calls, found.dropped, nil
}

// add adds the call that a record tells of, if any.
func (f *result) add(r *record) {
	of, known := clients[strings.TrimPrefix(r.attributes[event], "claude_code.")]
	if !known || of.name == domain.Codex && (r.attributes[kind] != "response.completed" || !of.isCounted(r)) {
		return
	}
	c := domain.Call{
		Client: of.name, Session: r.get(of.session), Model: r.attributes[model],
		Project: r.get(project), StoryID: r.get(story),
	}
	var counted, priced bool
	c.Tokens, counted = of.tokens(r)
	c.Stated, priced = stated(r)
	if !counted || !priced || !c.Valid() {
		f.dropped++
		return
	}
	var sent string
	c.At, sent = r.when()
	switch {
	case c.Session != "" && r.attributes[request] != "":
		c.Key = domain.CallKey("request", c.Session, r.attributes[request])
	case c.Session != "" && r.attributes[sequence] != "":
		c.Key = domain.CallKey("sequence", c.Session, r.attributes[sequence], sent)
	default:
		c.Key = domain.CallKey("call", c.Client, c.Session, sent, c.Model, fmt.Sprint(c.Tokens))
	}
	f.calls = append(f.calls, c)
}

// isCounted reports whether the record has counts of tokens: Codex sends the end of each call twice, once without them.
func (of client) isCounted(r *record) bool {
	return slices.ContainsFunc(of.counts, func(n count) bool { return r.attributes[n.attribute] != "" })
}

// tokens adds up the tokens of a call. ok is false for what is no count.
func (of client) tokens(r *record) (t domain.Tokens, ok bool) {
	for _, n := range of.counts {
		text, given := r.attributes[n.attribute]
		if !given {
			continue
		}
		tokens, err := strconv.ParseFloat(text, 64) // exact for every count that may be
		if err != nil || tokens != math.Trunc(tokens) || tokens < 0 || tokens > domain.MaxTokens {
			return t, false
		}
		t = t.Plus(n.of.Times(int64(tokens)))
	}
	return t, true
}

// stated returns what the record says that its call costs, nil if it says nothing. ok is false for what is no price.
func stated(r *record) (*domain.Micros, bool) {
	var cost *domain.Micros
	if text, given := r.attributes[usd]; given {
		exact, ok := domain.ParseMicros(text, domain.MaxUSD)
		if !ok {
			return nil, false
		}
		cost = &exact
	}
	if text, given := r.attributes[usdMicros]; given {
		exact, err := strconv.ParseUint(text, 10, 62)
		if err != nil {
			return nil, false
		}
		cost = new(domain.Micros(exact))
	}
	return cost, true
}

// when returns the time of a call, zero if it is unknown, and as it was sent.
func (r *record) when() (at time.Time, sent string) {
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
