package upstream_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/upstream"
)

// askFeed requests the feed of a project server with this handler.
func askFeed(t *testing.T, handler http.HandlerFunc, since int64, wait time.Duration) (upstream.FeedAnswer, error) {
	t.Helper()
	return askFeedWithin(t, time.Minute, handler, since, wait)
}

func askFeedWithin(t *testing.T, timeout time.Duration, handler http.HandlerFunc, since int64, wait time.Duration) (upstream.FeedAnswer, error) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	client := upstream.NewClient(timeout)
	t.Cleanup(client.Close)
	return client.Feed(context.Background(), domain.Project{Name: "alpha", URL: server.URL + "/base/", Token: "t0ken"}, upstream.FeedRequest{Since: since, Wait: wait})
}

func TestFeedIsAskedAsDocumented(t *testing.T) {
	var got []string
	handler := func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Method+" "+r.URL.String()+" "+r.Header.Get("Authorization"))
		w.Header().Set("Feed-Instance", "abc")
		w.Header().Set("Feed-Sequence", "7")
		fmt.Fprint(w, `[{"type":"story_blocked","story_id":"1","timestamp_ms":5}]`)
	}
	answer, err := askFeed(t, handler, 4, 25*time.Second)
	if err != nil || answer.Instance != "abc" || answer.Sequence != 7 || answer.Received != 1 || answer.Records[0].Type != domain.StoryBlocked {
		t.Errorf("answer %+v, %v", answer, err)
	}
	if _, err = askFeed(t, handler, 0, 0); err != nil {
		t.Error(err)
	}
	want := "GET /base/api/events?since=4&wait=25s Bearer t0ken, GET /base/api/events?since=0 Bearer t0ken"
	if strings.Join(got, ", ") != want {
		t.Errorf("asked %q, want %q", got, want)
	}
}

func TestRecordsAreReadTolerantly(t *testing.T) {
	for _, c := range []struct {
		name, body string
		records    []string // in the form in which they are stored
		refused    int
	}{
		{"nothing", ` [ ] `, nil, 0},
		{
			"CamelCase names, and kind for type", `[{"type":"StageTransition","timestamp_ms":1},{"kind":"MergeFailure","timestamp_ms":2},{"kind":"StoryBlocked","type":"x","timestamp_ms":3}]`,
			[]string{`{"timestamp_ms":1,"type":"stage_transition"}`, `{"timestamp_ms":2,"type":"merge_failure"}`, `{"kind":"StoryBlocked","timestamp_ms":3,"type":"x"}`},
			0,
		},
		{
			"unknown types and our own keys", `[{"type":"deploy","id":3,"project":"p","received_at_ms":1,"deep":{"id":[1]},"timestamp_ms":9223372036854775807},{"timestamp_ms":0}]`,
			[]string{`{"deep":{"id":[1]},"timestamp_ms":9223372036854775807,"type":"deploy"}`, `{"timestamp_ms":0}`},
			0,
		},
		{
			"mistyped fields, large numbers, markup", `[{"type":5,"story_id":[],"n":123456789012345678901234567890,"reason":"<b>&\u2028","timestamp_ms":1}]`,
			[]string{`{"n":123456789012345678901234567890,"reason":"<b>&` + `\u2028","story_id":[],"timestamp_ms":1,"type":5}`},
			0,
		},
		{"any order, repeated stamps", `[{"timestamp_ms":2},{"timestamp_ms":1},{"timestamp_ms":2}]`, []string{`{"timestamp_ms":2}`, `{"timestamp_ms":1}`, `{"timestamp_ms":2}`}, 0},
		{
			"what is not a record", `[null,1,"x",[],{},{"timestamp_ms":"1"},{"timestamp_ms":-1},{"timestamp_ms":1.5},{"timestamp_ms":1e3},{"timestamp_ms":9223372036854775808},{"timestamp_ms":4}]`,
			[]string{`{"timestamp_ms":4}`},
			10,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer, err := askFeed(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, c.body) }, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			var records []string
			for _, r := range answer.Records {
				records = append(records, string(r.JSON))
			}
			if fmt.Sprint(records) != fmt.Sprint(c.records) || len(answer.Refused) != c.refused || answer.Received != len(c.records)+c.refused {
				t.Errorf("kept %s, refused %d of %d", records, len(answer.Refused), answer.Received)
			}
			if answer.Instance != "" || answer.Sequence != -1 {
				t.Errorf("instance %q, sequence %d without headers", answer.Instance, answer.Sequence)
			}
		})
	}
}

func TestSequenceThatIsNoCountIsNone(t *testing.T) {
	for _, text := range []string{"", "-1", "x", "1.5", "9223372036854775808", "0x10"} {
		answer, err := askFeed(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Feed-Sequence"] = []string{text}
			fmt.Fprint(w, `[]`)
		}, 0, 0)
		if err != nil || answer.Sequence != -1 {
			t.Errorf("%q: sequence %d, %v", text, answer.Sequence, err)
		}
	}
}

func TestAnswersThatAreNoFeedAreErrorsInWords(t *testing.T) {
	text := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
	}
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, _ = z.Write(append([]byte("["), make([]byte, 9<<20)...))
	z.Close()
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		want    string
	}{
		{"empty", text(""), "is not an event feed"},
		{"page", text("<!doctype html>"), "is not an event feed"},
		{"object", text(`{"events":[]}`), "is not an event feed"},
		{"null", text(`null`), "is not an event feed"},
		{"string", text(`"[]"`), "is not an event feed"},
		{"cut off", text(`[{"timestamp_ms":1}`), "is not an event feed"},
		{"cut off in a record", text(`[{"timestamp_ms":1`), "is not an event feed"},
		{"no comma", text(`[{"timestamp_ms":1} {"timestamp_ms":2}]`), "is not an event feed"},
		{"trailing data", text(`[]]`), "is not an event feed"},
		{"two arrays", text(`[][]`), "is not an event feed"},
		{"100,000 levels", text(`[` + strings.Repeat(`{"a":`, 100_000)), "is not an event feed"},
		{"100,000 closed levels", text(strings.Repeat(`[`, 100_000) + strings.Repeat(`]`, 100_000)), "is not an event feed"},
		{"status 500", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, "HTTP status 500"},
		{"redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }, "redirect"},
		{"hanging", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "timed out"},
		{"cut connection", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, `[`)
		}, "before the answer was complete"},
		{"huge", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `[1`)
			for line := strings.Repeat(",1", 1<<15); ; {
				if _, err := io.WriteString(w, line); err != nil {
					return
				}
			}
		}, "too large"},
		{"gzip bomb", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb.Bytes())
		}, "too large"},
	} {
		t.Run(c.name, func(t *testing.T) {
			limit := time.Minute
			if c.want == "timed out" {
				limit = time.Second
			}
			answer, err := askFeedWithin(t, limit, c.handler, 0, 0)
			if domain.CodeOf(err) != domain.BadGateway || !strings.Contains(domain.MessageOf(err), c.want) {
				t.Errorf("error %q (%s), want one with %q", domain.MessageOf(err), domain.CodeOf(err), c.want)
			}
			if answer.Records != nil || answer.Received != 0 {
				t.Errorf("a failed call answers %+v", answer)
			}
		})
	}
}

func TestHeldAnswerMayTakeTheWaitLonger(t *testing.T) {
	t.Parallel()
	const timeout = time.Second
	answer, err := askFeedWithin(t, timeout, func(w http.ResponseWriter, r *http.Request) {
		timer := time.NewTimer(2 * timeout)
		defer timer.Stop()
		<-timer.C
		fmt.Fprint(w, `[]`)
	}, 0, time.Minute)
	if err != nil || answer.Received != 0 {
		t.Errorf("answer %+v, %v", answer, err)
	}
}

func TestEndedCallReturnsItsContextsError(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}))
	defer server.Close()
	client := upstream.NewClient(time.Minute)
	defer client.Close()
	if _, err := client.Feed(ctx, domain.Project{URL: server.URL}, upstream.FeedRequest{Wait: time.Minute}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// FuzzFeed checks that any answer is an error, or records that can be encoded, decoded again to the same
// content, and counted.
func FuzzFeed(f *testing.F) {
	for _, seed := range []string{
		`[]`, `null`, `[null]`, `{}`, `[{"timestamp_ms":1}`, `[[[[`, `[{"timestamp_ms":1}]x`,
		`[{"type":"StageTransition","story_id":"1","timestamp_ms":1},{"kind":"MergeFailure","reason":"\u0000\ud800","timestamp_ms":2}]`,
		`[{"type":"x","id":1,"id":2,"TIMESTAMP_MS":5,"timestamp_ms":9223372036854775807}]`,
		`[{"timestamp_ms":1e2},{"timestamp_ms":01},{"timestamp_ms":-0}]`, "[{\"a\":\"\xff\",\"timestamp_ms\":3}]",
	} {
		f.Add([]byte(seed), "i", "3")
	}
	f.Fuzz(func(t *testing.T, body []byte, instance, sequence string) {
		header := http.Header{"Feed-Instance": {instance}, "Feed-Sequence": {sequence}}
		answer, err := upstream.DecodeFeed(header, body)
		if err != nil {
			if domain.CodeOf(err) != domain.BadGateway || answer.Received != 0 {
				t.Fatalf("error %v with %+v", err, answer)
			}
			return
		}
		if answer.Sequence < -1 || answer.Instance != instance || answer.Received < len(answer.Records)+len(answer.Refused) {
			t.Fatalf("%+v", answer)
		}
		for _, r := range answer.Records {
			again, err := domain.ParseRecord(r.JSON)
			if err != nil || string(again.JSON) != string(r.JSON) || !again.At.Equal(r.At) || r.At.UnixMilli() < 0 {
				t.Fatalf("%s becomes %s: %v", r.JSON, again.JSON, err)
			}
			shown := domain.Event{ID: 1, Project: "p", Record: r}.AppendJSON(nil)
			if !json.Valid(shown) {
				t.Fatalf("shown as %s", shown)
			}
		}
	})
}
