//go:build stress

package stress

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// event is a record of a feed or of the merged stream.
type event struct {
	ID        int64  `json:"id"`
	Project   string `json:"project"`
	Type      string `json:"type"`
	StoryID   string `json:"story_id"`
	From      string `json:"from_stage"`
	To        string `json:"to_stage"`
	Missed    int    `json:"missed"`
	Timestamp int64  `json:"timestamp_ms"`
	Received  int64  `json:"received_at_ms"`
	Right     int64  `json:"right_ms"` // the right time, if Timestamp is from a wrong clock

	seen time.Time
}

// recorded returns when the project server recorded the event, in ms by this machine's clock.
func (e event) recorded() int64 { return cmp.Or(e.Right, e.Timestamp) }

func (e event) move() string { return moveName(e.StoryID, e.From, e.To) }

var client = http.Client{Timeout: 30 * time.Second}

// call makes a request with an optional JSON body and decodes the answer into reply, unless that is nil.
func call(ctx context.Context, method, url, bearer string, body, reply any) (status int, err error) {
	return callBy(ctx, &client, method, url, bearer, body, reply)
}

func callBy(ctx context.Context, by *http.Client, method, url, bearer string, body, reply any) (status int, err error) {
	var encoded bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&encoded).Encode(body); err != nil {
			return 0, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, url, &encoded)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	if bearer != "" {
		request.Header.Set("Authorization", "Bearer "+bearer)
	}
	response, err := by.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && reply != nil && response.StatusCode < 300 {
		err = json.Unmarshal(text, reply)
	}
	return response.StatusCode, err
}

// must is call for requests that have to succeed.
func must(t *testing.T, method, url string, body, reply any) {
	t.Helper()
	if status, err := call(t.Context(), method, url, "", body, reply); err != nil || status >= 300 {
		t.Fatalf("%s %s: %d, %v", method, url, status, err)
	}
}

// follow reads the merged stream from the beginning, whatever happens to the gateway, and passes each event to sees.
func follow(ctx context.Context, t *testing.T, gateway string, sees func(event)) {
	var after int64
	for ctx.Err() == nil {
		var page struct {
			Events []event `json:"events"`
			Next   int64   `json:"next"`
		}
		status, err := call(ctx, "GET", fmt.Sprintf("%s/api/gateway/events?limit=1000&wait=10s&after=%d", gateway, after), "", nil, &page)
		if err != nil {
			pause(ctx, 20*time.Millisecond)
			continue
		}
		if status != http.StatusOK {
			t.Errorf("the stream answers %d", status)
			pause(ctx, time.Second)
		}
		for _, e := range page.Events {
			if e.ID <= after {
				t.Errorf("event %d came after %d", e.ID, after)
			}
			after = e.ID
			e.seen = time.Now()
			sees(e)
		}
	}
}

func pause(ctx context.Context, duration time.Duration) {
	select {
	case <-time.After(duration):
	case <-ctx.Done():
	}
}

// wholeStream reads the merged stream at once.
func wholeStream(t *testing.T, gateway string) (all []event) {
	t.Helper()
	for after := int64(0); ; {
		var page struct {
			Events []event `json:"events"`
			Next   int64   `json:"next"`
		}
		must(t, "GET", fmt.Sprintf("%s/api/gateway/events?limit=1000&after=%d", gateway, after), nil, &page)
		if len(page.Events) == 0 {
			return all
		}
		all, after = append(all, page.Events...), page.Next
	}
}

// metric returns an unlabelled metric of the gateway, whose token, if any is needed, is rightToken.
func metric(t *testing.T, gateway, name string) float64 {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, gateway+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+rightToken)
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

// until waits until holds returns true. It returns false if that takes longer than limit.
func until(limit time.Duration, holds func() bool) bool {
	for began := time.Now(); time.Since(began) < limit; time.Sleep(50 * time.Millisecond) {
		if holds() {
			return true
		}
	}
	return false
}
