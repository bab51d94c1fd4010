package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"switchyard/handlers"
	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/service"
)

// eventGateway is a gateway over a real store and sockets.
type eventGateway struct {
	*service.Service
	url  string
	stop context.CancelFunc // begins to shut the server down
}

func startEventGateway(t testing.TB) eventGateway {
	t.Helper()
	g := gatewaytest.New(t, service.Options{}, handlers.Gateway{})
	server, stop := g.ServeUntil(t)
	return eventGateway{g.Service, server.URL, stop}
}

// record stores records of a project, given as JSON.
func (g eventGateway) record(t testing.TB, project string, records ...string) {
	t.Helper()
	read := domain.FeedRead{Cursor: domain.FeedCursor{Project: project}, ReceivedAt: time.UnixMilli(77)}
	for _, text := range records {
		r, err := domain.ParseRecord(json.RawMessage(text))
		if err != nil {
			t.Fatal(err)
		}
		read.Records = append(read.Records, r)
	}
	if err := g.Events.Record(context.Background(), read); err != nil {
		t.Fatal(err)
	}
}

func (g eventGateway) get(t testing.TB, path string) (status int, body string) {
	t.Helper()
	response, err := http.Get(g.url + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(data)
}

// page returns an answer of /api/gateway/events in short: its ids and next.
func (g eventGateway) page(t testing.TB, query string) string {
	t.Helper()
	status, body := g.get(t, "/api/gateway/events"+query)
	var answer struct {
		Events []struct{ ID int64 }
		Next   *int64
	}
	if err := json.Unmarshal([]byte(body), &answer); status != 200 || err != nil || answer.Events == nil || answer.Next == nil {
		t.Fatalf("%s: %d %s", query, status, body)
	}
	ids := []string{}
	for _, e := range answer.Events {
		ids = append(ids, fmt.Sprint(e.ID))
	}
	return fmt.Sprintf("%s next %d", strings.Join(ids, " "), *answer.Next)
}

const (
	blocked = `{"type":"story_blocked","story_id":"%d","timestamp_ms":%d}`
	failed  = `{"type":"merge_failure","story_id":"%d","timestamp_ms":%d}`
)

func TestEventIsTheRecordWithIDProjectAndTimeAdded(t *testing.T) {
	g := startEventGateway(t)
	if status, body := g.get(t, "/api/gateway/events"); status != 200 || body != `{"events":[],"next":0}` {
		t.Errorf("empty stream: %d %s", status, body)
	}
	g.record(t, `a "b"/ü`, `{"kind":"Odd","id":"theirs","reason":"<&>","timestamp_ms":5,"deep":{"x":[1,null]}}`)
	_, body := g.get(t, "/api/gateway/events")
	want := `{"events":[{"id":1,"project":"a \"b\"/ü","received_at_ms":77,"deep":{"x":[1,null]},"reason":"<&>","timestamp_ms":5,"type":"Odd"}],"next":1}`
	if body != want {
		t.Errorf("got\n%s\nwant\n%s", body, want)
	}
}

func TestPagesOfTheStream(t *testing.T) {
	g := startEventGateway(t)
	for i := 1; i <= 3; i++ { // ids 1 to 9
		g.record(t, "alpha", fmt.Sprintf(blocked, i, i), fmt.Sprintf(failed, i, i))
		g.record(t, "b/ß", fmt.Sprintf(blocked, i, i))
	}
	for query, want := range map[string]string{
		"":                                     "1 2 3 4 5 6 7 8 9 next 9",
		"?after=0&limit=2":                     "1 2 next 2",
		"?after=7":                             "8 9 next 9",
		"?after=9":                             " next 9",
		"?before=":                             "9 8 7 6 5 4 3 2 1 next 1",
		"?before=&limit=4":                     "9 8 7 6 next 6",
		"?before=6&limit=4":                    "5 4 3 2 next 2",
		"?before=2&limit=4":                    "1 next 1",
		"?before=1":                            " next 1",
		"?before=0":                            " next 0",
		"?project=alpha&after=4":               "5 7 8 next 8",
		"?project=" + url.QueryEscape("b/ß"):   "3 6 9 next 9",
		"?project=nobody&after=3":              " next 3",
		"?type=merge_failure":                  "2 5 8 next 8",
		"?type=merge_failure&before=8&limit=1": "5 next 5",
		"?type=merge_failure&project=alpha&limit=1000": "2 5 8 next 8",
		"?type=nothing&before=":                        " next 0",
		"?wait=60s&after=1&limit=1":                    "2 next 2",
		"?wait=0s&after=9":                             " next 9",
		"?wait=1ms&after=9":                            " next 9",
		"?wait=1h&before=&limit=1":                     "9 next 9",
	} {
		if got := g.page(t, query); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}

func TestMalformedQueriesAreRefused(t *testing.T) {
	g := startEventGateway(t)
	for _, query := range []string{
		"after=", "after=x", "after=-1", "after=+1", "after=1.0", "after=9223372036854775808", "after=0x1", "after=%201",
		"before=x", "before=-1", "before=9223372036854775808", "after=1&before=2", "after=&before=", "before=&after=0",
		"limit=", "limit=0", "limit=1001", "limit=-1", "limit=x",
		"wait=", "wait=5", "wait=-1s", "wait=x", "wait=1s%20", "wait=1e3s",
		"after=%zz", "after=1;limit=2",
	} {
		if status, body := g.get(t, "/api/gateway/events?"+query); status != 400 || body == "" {
			t.Errorf("%s: %d %q, want 400", query, status, body)
		}
	}
	for _, query := range []string{"after=", "after=x", "after=-1", "%zz"} {
		if status, _ := g.get(t, "/api/gateway/events/stream?"+query); status != 400 {
			t.Errorf("stream?%s: %d, want 400", query, status)
		}
	}
	for _, id := range []string{"x", "-1", "1.5", "9223372036854775808"} {
		r, _ := http.NewRequest(http.MethodGet, g.url+"/api/gateway/events/stream", nil)
		r.Header.Set("Last-Event-ID", id)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != 400 {
			t.Errorf("Last-Event-ID %s: %d, want 400", id, response.StatusCode)
		}
	}
}

// TestAPositionAheadOfTheStreamIsTold: after a restore a client would otherwise wait without end.
func TestAPositionAheadOfTheStreamIsTold(t *testing.T) {
	g := startEventGateway(t)
	g.record(t, "alpha", fmt.Sprintf(blocked, 1, 1), fmt.Sprintf(blocked, 2, 2))
	for _, query := range []string{"after=3", "after=5000&wait=60s", "after=9223372036854775807&project=alpha"} {
		if status, body := g.get(t, "/api/gateway/events?"+query); status != 400 || !strings.Contains(body, "the newest event is 2") {
			t.Errorf("%s: %d %s", query, status, body)
		}
	}
	for _, s := range []eventReader{g.stream(t, "?after=5000", ""), g.stream(t, "", "5000"), g.stream(t, "?after=2", "3")} {
		const reset = "event: reset\ndata: {\"newest\": 2}\nid: 2\n\n"
		got := make([]byte, len(reset))
		if _, err := io.ReadFull(s.lines, got); err != nil || string(got) != reset {
			t.Errorf("a stream begins with %q, %v", got, err)
		}
		defer func() {
			if id, _ := s.next(t); id != "3" {
				t.Errorf("it goes on with %s", id)
			}
		}()
	}
	g.record(t, "alpha", fmt.Sprintf(blocked, 3, 3))
}

func TestHeldRequestIsAnsweredByNewsOrByTheServersEnd(t *testing.T) {
	g := startEventGateway(t)
	pages := make(chan string)
	ask := func(query string) { go func() { pages <- g.page(t, query) }() }
	ask("?wait=60s&project=alpha")
	g.record(t, "beta", `{"type":"x","timestamp_ms":1}`)
	g.record(t, "alpha", `{"type":"x","timestamp_ms":1}`)
	if got := <-pages; got != "2 next 2" {
		t.Errorf("woken with %s", got)
	}
	ask("?wait=60s&after=2")
	g.stop()
	if got := <-pages; got != " next 2" {
		t.Errorf("at the end %s", got)
	}
}

// TestTheMergedStreamAsAFeed: in the form of a project server, the newest 500 records that are newer than since.
func TestTheMergedStreamAsAFeed(t *testing.T) {
	g := startEventGateway(t)
	feed := func(query string) string {
		t.Helper()
		status, body := g.get(t, "/api/events"+query)
		var events []struct {
			ID      int64
			Project string
		}
		if err := json.Unmarshal([]byte(body), &events); status != 200 || err != nil || events == nil {
			t.Fatalf("%s: %d %s", query, status, body)
		}
		ids := make([]string, len(events))
		for i, e := range events {
			ids[i] = fmt.Sprint(e.ID)
		}
		return strings.Join(ids, " ")
	}
	if got := feed(""); got != "" {
		t.Errorf("an empty stream: %s", got)
	}
	g.record(t, "alpha", fmt.Sprintf(blocked, 1, 1000), fmt.Sprintf(blocked, 2, 3000))
	g.record(t, "beta", fmt.Sprintf(blocked, 1, 2000))
	for query, want := range map[string]string{
		"": "1 2 3", "?since=0": "1 2 3", "?since=999": "1 2 3", "?since=1000": "2 3", "?since=2000": "2", "?since=3000": "",
		"?since=18446744073709551615": "", "?since=2999&wait=60s": "2", "?since=3000&wait=1ms": "", "?wait=1h": "1 2 3",
	} {
		if got := feed(query); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	_, body := g.get(t, "/api/events?since=2000")
	if _, page := g.get(t, "/api/gateway/events?after=1&limit=1"); page != `{"events":`+body+`,"next":2}` {
		t.Errorf("a record is %s in the one and %s in the other form", body, page)
	}
	for _, query := range []string{"since=", "since=x", "since=-1", "since=+1", "since=18446744073709551616", "wait=", "wait=5", "wait=-1s", "since=%zz"} {
		if status, body := g.get(t, "/api/events?"+query); status != 400 || body == "" {
			t.Errorf("%s: %d %q, want 400", query, status, body)
		}
	}
	held := make(chan string)
	go func() { held <- feed("?since=3000&wait=60s") }()
	g.record(t, "beta", fmt.Sprintf(blocked, 2, 2500)) // not newer
	g.record(t, "beta", fmt.Sprintf(blocked, 3, 3500))
	if got := <-held; got != "5" {
		t.Errorf("woken with %s", got)
	}
	var many []string
	for i := range 600 {
		many = append(many, fmt.Sprintf(blocked, i, 4000+i))
	}
	g.record(t, "alpha", many...)
	if ids := strings.Fields(feed("")); len(ids) != 500 || ids[0] != "106" || ids[499] != "605" {
		t.Errorf("%d records, from %s to %s", len(ids), ids[0], ids[len(ids)-1])
	}
}

// eventReader reads server-sent events.
type eventReader struct {
	*http.Response
	lines *bufio.Reader
}

func (g eventGateway) stream(t testing.TB, query, lastEventID string) eventReader {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, g.url+"/api/gateway/events/stream"+query, nil)
	if lastEventID != "" {
		r.Header.Set("Last-Event-ID", lastEventID)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	if kind := response.Header.Get("Content-Type"); response.StatusCode != 200 || kind != "text/event-stream" {
		t.Fatalf("%d, %s", response.StatusCode, kind)
	}
	return eventReader{response, bufio.NewReader(response.Body)}
}

// next returns the id and the data of the next event; messages without data are not events.
func (e eventReader) next(t testing.TB) (id, data string) {
	t.Helper()
	for {
		line, err := e.lines.ReadString('\n')
		if err != nil {
			t.Fatalf("stream ended: %v", err)
		}
		switch name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": "); name {
		case "id":
			id = value
		case "data":
			data = value
		case "":
			if data != "" {
				return id, data
			}
		}
	}
}

func TestStreamBeginsWhereItIsAskedTo(t *testing.T) {
	g := startEventGateway(t)
	for i := 1; i <= 3; i++ {
		g.record(t, "alpha", fmt.Sprintf(blocked, i, i), fmt.Sprintf(failed, i, i))
	}
	streams := []struct {
		query, lastEventID, want string
		eventReader
	}{
		{query: "", want: "7 8"},
		{query: "?after=0", want: "1 2 3 4 5 6 7 8"},
		{query: "?after=5", want: "6 7 8"},
		{query: "", lastEventID: "4", want: "5 6 7 8"},
		{query: "?after=1", lastEventID: "6", want: "7 8"},
		{query: "?after=0&type=merge_failure", want: "2 4 6 8"},
		{query: "?project=beta", want: "8"},
		{query: "?after=0&project=alpha&type=story_blocked", want: "1 3 5 7"},
	}
	for i := range streams {
		streams[i].eventReader = g.stream(t, streams[i].query, streams[i].lastEventID) // returns with the headers
	}
	g.record(t, "alpha", fmt.Sprintf(blocked, 4, 4))
	g.record(t, "beta", fmt.Sprintf(failed, 4, 4))
	for _, s := range streams {
		var got []string
		for range strings.Fields(s.want) {
			id, data := s.next(t)
			var event struct {
				ID          int64
				TimestampMS int64 `json:"timestamp_ms"`
			}
			if err := json.Unmarshal([]byte(data), &event); err != nil || fmt.Sprint(event.ID) != id || event.TimestampMS == 0 {
				t.Errorf("id %s with data %s", id, data)
			}
			got = append(got, id)
		}
		if strings.Join(got, " ") != s.want {
			t.Errorf("stream%s after %q: %v, want %s", s.query, s.lastEventID, got, s.want)
		}
	}
}

// TestStreamBeginsWithItsPosition: a client that is disconnected before its first event knows where to resume.
func TestStreamBeginsWithItsPosition(t *testing.T) {
	g := startEventGateway(t)
	for i := 1; i <= 3; i++ {
		g.record(t, "alpha", fmt.Sprintf(blocked, i, i))
	}
	for _, c := range []struct{ query, lastEventID, want string }{
		{"", "", "id: 3\n\n"}, {"?after=1", "", "id: 1\n\n"}, {"?after=1", "2", "id: 2\n\n"}, {"?project=none", "", "id: 3\n\n"},
	} {
		s := g.stream(t, c.query, c.lastEventID)
		got := make([]byte, len(c.want))
		if _, err := io.ReadFull(s.lines, got); err != nil || string(got) != c.want {
			t.Errorf("stream%s after %q begins with %q, %v, want %q", c.query, c.lastEventID, got, err, c.want)
		}
	}
}

func TestStreamCatchesUpOverManyPagesThenFollows(t *testing.T) {
	g := startEventGateway(t)
	for i := range 5 {
		var records []string
		for n := range 100 {
			records = append(records, fmt.Sprintf(blocked, n, 1000*i+n))
		}
		g.record(t, "alpha", records...)
	}
	s := g.stream(t, "?after=0", "")
	for want := 1; want <= 501; want++ {
		if want == 501 {
			g.record(t, "beta", fmt.Sprintf(blocked, 1, 1))
		}
		if id, _ := s.next(t); id != fmt.Sprint(want) {
			t.Fatalf("id %s, want %d", id, want)
		}
	}
}

func TestStreamEndsWithTheServer(t *testing.T) {
	g := startEventGateway(t)
	s := g.stream(t, "", "")
	g.stop()
	if rest, err := io.ReadAll(s.lines); err != nil || string(rest) != "id: 0\n\n" {
		t.Errorf("rest %q, %v: want a clean end", rest, err)
	}
}

func TestHeadOfTheStreamIsAnsweredAtOnce(t *testing.T) {
	g := startEventGateway(t)
	client := http.Client{Timeout: time.Minute}
	response, err := client.Head(g.url + "/api/gateway/events/stream")
	if err != nil || response.StatusCode != 200 || response.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("%v, %v", response, err)
	}
}
