package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/supervise"
	"switchyard/internal/wire"
)

const waitForEvents = "wait_for_events"

const (
	// maxWait is the longest wait; clients give up after a minute.
	maxWait = 50 * time.Second
	// storyInterval is how often a story is polled while waiting for it, since no event says that it was unblocked.
	storyInterval = 2 * time.Second
	// scanPage and maxScan are how many events are searched for a story's, at a time and in one call.
	scanPage, maxScan = 1000, 20_000
)

type eventsJSON struct {
	Events []domain.Event `json:"events"`
	Next   int64          `json:"next"`
	Story  *stateJSON     `json:"story,omitempty"`
}

type stateJSON struct {
	Stage        *string `json:"stage"`
	Blocked      *string `json:"blocked"`
	MergeFailure *string `json:"merge_failure"`
}

type eventFilter struct {
	After   *int64  `json:"after"`
	Project *string `json:"project"`
	StoryID string  `json:"story_id"`
	Wait    string  `json:"wait"`
}

func (s *Server) addEvents() {
	add(s, tool{
		name: waitForEvents, needs: domain.RoleViewer,
		description: "Events after the position after, oldest first; with wait, waits for the first. With project and " +
			"story_id it also returns as soon as the story is blocked or unblocked, " +
			"and story has its current state. Pass next as after in the next call: nothing is missed.",
		arguments: `"after":{"type":"integer","minimum":0,"description":"next from an earlier answer. By default, with ` +
			`wait: events from now on; without: the newest events"},` +
			`"project":{"type":"string"},"story_id":{"type":"string"},"wait":{"type":"string","description":"such as 30s; ` +
			`50s at most"}`,
	}, func(ctx context.Context, in eventFilter) (any, error) {
		if w, ok := ctx.Value(waitResultKey{}).(waitResult); ok {
			return w.answer, w.err
		}
		return s.waitForEvents(requestOf(ctx), in)
	})
}

// waitResult is the result of a wait that was held before the SDK got the request.
type waitResult struct {
	answer eventsJSON
	err    error
}

type waitResultKey struct{}

// waitIn returns what a message waits for that is a single call of wait_for_events; false for any other, and for
// arguments that the SDK refuses: a refusal must not wait.
func (s *Server) waitIn(r *http.Request, body []byte) (in eventFilter, ok bool) {
	var m message
	if json.Unmarshal(body, &m) != nil || m.Version != "2.0" {
		return in, false
	}
	call := m.toolCall()
	if call.Name != waitForEvents {
		return in, false
	}
	s.http() // by then the tools are known
	understood, err := s.understand(r, call.Name, call.Arguments)
	if err != nil {
		return in, false
	}
	arguments := json.NewDecoder(bytes.NewReader(understood))
	arguments.DisallowUnknownFields()
	err = arguments.Decode(&in)
	return in, err == nil && in.Wait != "" && (in.After == nil || *in.After >= 0)
}

// waitBefore waits before the SDK gets the request, and returns a context with the result, or the request's own if
// there is nothing to wait for. Such a wait costs its connection, while the SDK's four goroutines would cost 60 KiB.
// Decoding has its own stack, since the connection's would stay as large throughout the wait.
func (s *Server) waitBefore(r *http.Request, body []byte) context.Context {
	ctx := r.Context()
	var in eventFilter
	waits, decoded := false, make(chan struct{})
	supervise.Go(s.Log, "arguments of a wait", func() {
		defer close(decoded)
		in, waits = s.waitIn(r, body)
	})
	if <-decoded; waits {
		answer, err := s.waitForEvents(r, in)
		ctx = context.WithValue(ctx, waitResultKey{}, waitResult{answer, err})
	}
	return ctx
}

func (s *Server) waitForEvents(r *http.Request, in eventFilter) (eventsJSON, error) {
	wait, err := parseWait(in.Wait, "30s")
	if err != nil {
		return eventsJSON{}, err
	}
	w := s.newWaiter(in, wait)
	var release func()
	if w.ctx, release, err = s.held.HoldFor(r, wait); err != nil {
		return eventsJSON{}, err
	}
	defer release()
	if in.After == nil && wait == 0 {
		return w.newest()
	}
	return w.wait()
}

func (s *Server) newWaiter(in eventFilter, wait time.Duration) *waiter {
	w := &waiter{Server: s, filter: in, ends: time.Now().Add(min(wait, maxWait))}
	w.query = domain.EventQuery{Limit: scanPage, After: s.service.Events.LastID(), Project: wire.Text(in.Project)}
	if in.After != nil {
		w.query.After = *in.After
	}
	return w
}

type waiter struct {
	*Server
	ctx    context.Context // ends when waiting ends
	filter eventFilter
	query  domain.EventQuery
	ends   time.Time
}

func (w *waiter) newest() (eventsJSON, error) {
	answer := eventsJSON{Next: w.service.Events.LastID()}
	w.query.Backward, w.query.Before, w.query.After = true, answer.Next+1, 0
	page, err := w.service.Events.Page(w.ctx, w.query)
	if err != nil {
		return answer, err
	}
	found := w.matching(page.Events)
	answer.Events = found.shown()
	slices.Reverse(answer.Events)
	answer.Story, _ = w.state()
	return answer, nil
}

func (w *waiter) matching(events []domain.Event) (found list[domain.Event]) {
	for _, e := range events {
		if w.filter.StoryID == "" || e.Details().StoryID == w.filter.StoryID {
			found.add(e)
		}
	}
	return found
}

func (w *waiter) wait() (eventsJSON, error) {
	before, watched := w.state()
	now := before
	for scanned := 0; ; {
		step := time.Until(w.ends)
		if watched {
			step = min(step, storyInterval)
		}
		page, err := w.service.Events.Wait(w.ctx, w.query, max(step, 0))
		if err != nil {
			return eventsJSON{}, err
		}
		found := w.matching(page.Events)
		if n := len(page.Events); n > 0 {
			w.query.After = page.Events[n-1].ID
			scanned += n
		}
		if found.more > 0 {
			w.query.After = found.items[len(found.items)-1].ID
		}
		if watched {
			now, _ = w.state()
		}
		changed := watched && now != nil && before != nil && !reflect.DeepEqual(now, before)
		if len(found.items) > 0 || changed || scanned >= maxScan || w.ctx.Err() != nil ||
			len(page.Events) == 0 && !time.Now().Before(w.ends) {
			return eventsJSON{found.shown(), w.query.After, now}, nil
		}
	}
}

// state returns the state of the story that is waited for, nil if unknown, and whether the filter names a story.
func (w *waiter) state() (state *stateJSON, watched bool) {
	if w.filter.Project == nil || w.filter.StoryID == "" {
		return nil, false
	}
	story, err := w.service.Stories.Now(w.ctx, *w.filter.Project, w.filter.StoryID)
	if err != nil {
		return nil, true
	}
	return &stateJSON{wire.OrNull(story.Stage), shortOrNull(story.Blocked), shortOrNull(story.MergeFailure)}, true
}
