package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"switchyard/internal/domain"
	"switchyard/internal/upstream"
	"switchyard/internal/waittest"
)

func stagesOf(stages, items int) string {
	var b strings.Builder
	b.WriteString(`{"stages":[`)
	for i := range stages {
		fmt.Fprintf(&b, `{"name":"%d_stage","extra":1,"items":[`, i)
		for j := range items {
			fmt.Fprintf(&b, `{"story_id":"%d_%d"},`, i, j)
		}
		b.WriteString(`]},`)
	}
	return strings.ReplaceAll(b.String()+`]}`, ",]", "]")
}

func TestOversizePipelineIsCutAndSaysSo(t *testing.T) {
	for _, c := range []struct {
		body                string
		stages, items, last int
		note                string
	}{
		{stagesOf(50, 400), 50, 20_000, 400, ""},
		{stagesOf(51, 2), 50, 100, 2, "only the first 50 of 51 stages are shown"},
		{stagesOf(9000, 0), 50, 0, 0, "only the first 50 of 9000 stages are shown"},
		{stagesOf(3, 9000), 3, 20_000, 2000, "only the first 20,000 of 27,000 stories are shown"},
		{stagesOf(1, 40_000), 1, 20_000, 20_000, "only the first 20,000 of 40,000 stories are shown"},
		{`{"left":80000,` + stagesOf(3, 2)[1:], 3, 6, 2, "only the first 6 of 80,006 stories are shown"},
		{`{"left":"out",` + stagesOf(1, 2)[1:], 1, 2, 2, ""},
	} {
		answer, err := newClient(t).Pipeline(t.Context(), serve(t, body(c.body)), nil)
		if err != nil {
			t.Fatal(err)
		}
		var raw []struct {
			Extra int
			Items []json.RawMessage
		}
		if err := json.Unmarshal(answer.Raw, &raw); err != nil {
			t.Fatal(err)
		}
		items, passed := 0, 0
		for i, stage := range answer.Stages {
			items += len(stage.Items)
			passed += len(raw[i].Items)
		}
		if len(answer.Stages) != c.stages || items != c.items || len(answer.Stages[c.stages-1].Items) != c.last || answer.Note != c.note {
			t.Errorf("%d stages, %d items, note %q, want %+v", len(answer.Stages), items, answer.Note, c.note)
		}
		if len(raw) != c.stages || passed != c.items || (raw[0].Extra == 1) != (c.note == "") {
			t.Errorf("%q: passed on are %d stages, %d items, extra %d", c.note, len(raw), passed, raw[0].Extra)
		}
	}
}

func TestLongNamesAndReasonsAreCut(t *testing.T) {
	cut, end := strings.Repeat("é", 1000), strings.Repeat("ü", 1000)
	long := strings.Repeat("é", 400_000) + end
	text := func(s string) string {
		return fmt.Sprintf(`{"stages":[{"name":%q,"items":[{"story_id":%[1]q,"story_name":%[1]q,"blocked":%[1]q,"merge_failure":%[1]q,"since_ms":1}]}]}`, s)
	}
	answer, err := newClient(t).Pipeline(t.Context(), serve(t, body(text(long))), nil)
	if err != nil {
		t.Fatal(err)
	}
	stage := answer.Stages[0]
	item := stage.Items[0]
	for _, got := range []string{stage.Name, item.StoryID, item.StoryName} {
		if got != cut {
			t.Errorf("%d characters are kept", utf8.RuneCountInString(got))
		}
	}
	if item.Blocked != end || item.MergeFailure != end {
		t.Errorf("the reasons kept are %q and %q", item.Blocked, item.MergeFailure)
	}
	if len(answer.Raw) > 11_000 || !strings.Contains(string(answer.Raw), `"story_id":"`+cut+`"`) {
		t.Errorf("%d bytes are passed on", len(answer.Raw))
	}
	if answer, err = newClient(t).Pipeline(t.Context(), serve(t, body(text(cut))), nil); err != nil || `{"stages":`+string(answer.Raw)+`}` != text(cut) {
		t.Errorf("what fits does not pass as it came: %v", err)
	}
}

func TestUnknownFieldsCannotMakeAPipelineHuge(t *testing.T) {
	huge := `{"stages":[{"name":"1_a","padding":"` + strings.Repeat("x", 7<<20) + `","items":[{"story_id":"1"}]}]}`
	answer, err := newClient(t).Pipeline(t.Context(), serve(t, body(huge)), nil)
	if err != nil || len(answer.Raw) > 300 || answer.Stages[0].Items[0].StoryID != "1" {
		t.Errorf("%d bytes are passed on, %v", len(answer.Raw), err)
	}
}

// TestSlowLargeAnswersOfOneProjectLeaveSlotsToOthers: 40 answers of 1.2 MB hang while 48 boards of 300 kB are fetched.
func TestSlowLargeAnswersOfOneProjectLeaveSlotsToOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("takes over a second of processor time")
	}
	var requested atomic.Int64
	slow := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1200000")
		requested.Add(1)
		_, _ = w.Write(make([]byte, 1_100_000))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	large := serve(t, body(stagesOf(1, 12_000)))
	client := newClient(t)
	ctx, cancel := context.WithCancel(t.Context())
	var reads, fetches sync.WaitGroup
	defer reads.Wait()
	defer cancel()
	for n := range 40 {
		reads.Go(func() { _, _ = client.Story(ctx, slow, fmt.Sprint(n)) })
	}
	waittest.Until(t, "all stories are requested", func() bool { return requested.Load() == 40 })
	for n := range 48 {
		fetches.Go(func() {
			project := large
			project.Name = fmt.Sprint("honest ", n)
			if _, err := client.Pipeline(t.Context(), project, nil); err != nil {
				t.Error(err)
			}
		})
	}
	fetches.Wait()
}

func TestRecordsThatAreTooLargeOrDeepCostOnlyThemselves(t *testing.T) {
	nested := func(levels int) string { // the record itself is one level
		return `{"timestamp_ms":2,"deep":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + `}`
	}
	padded := func(size int) string {
		head := `{"timestamp_ms":3,"pad":"`
		return head + strings.Repeat("x", size-len(head)-2) + `"}`
	}
	answer, err := askFeed(t, body(`[`+strings.Join([]string{
		nested(100), nested(101), nested(900), padded(64 << 10), padded(64<<10 + 1), padded(900_000), `{"timestamp_ms":4}`,
		`{"timestamp_ms":5,"not_utf_8":"` + strings.Repeat("\xff", 60<<10) + `"}`,
	}, ",")+`]`), 0, 0)
	if err != nil || len(answer.Records) != 3 || answer.Received != 8 || len(answer.Refused) != 5 {
		t.Fatalf("%d records, %d refused of %d, %v", len(answer.Records), len(answer.Refused), answer.Received, err)
	}
	for i, want := range []string{"more than 100 levels", "more than 100 levels", "over 64 KiB", "over 64 KiB", "over 64 KiB"} {
		if refused := answer.Refused[i]; !strings.Contains(refused.Why.Error(), want) || len(refused.JSON) > 1024 {
			t.Errorf("refused: %v, %d bytes kept", refused.Why, len(refused.JSON))
		}
	}
}

func TestTheGatewaysOwnMarkCannotBeForged(t *testing.T) {
	answer, err := askFeed(t, body(`[{"type":"feed_gap","missed":1000000,"timestamp_ms":1},{"kind":"feed_gap","timestamp_ms":2}]`), 0, 0)
	if err != nil || len(answer.Records) != 2 {
		t.Fatal(answer, err)
	}
	for _, r := range answer.Records {
		if r.Type != "foreign_feed_gap" || !strings.Contains(string(r.JSON), `"type":"foreign_feed_gap"`) {
			t.Errorf("%s is kept as %s", r.JSON, r.Type)
		}
	}
}

func TestLongTextsOfEventsAreCut(t *testing.T) {
	long := strings.Repeat("é", 1000) + strings.Repeat("ü", 500)
	answer, err := askFeed(t, body(fmt.Sprintf(`[{"type":"StoryBlocked","story_id":%q,"story_name":%[1]q,"reason":%[1]q,"other":%[1]q,"timestamp_ms":1},{"type":"x","reason":%[1]q,"timestamp_ms":2}]`, long)), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	d := answer.Records[0].Details()
	for _, text := range []string{d.StoryID, d.StoryName} {
		if text != long[:2000] {
			t.Errorf("%d characters are kept", utf8.RuneCountInString(text))
		}
	}
	if d.Reason != long[1000:] {
		t.Errorf("the reason kept is %q", d.Reason)
	}
	if !strings.Contains(string(answer.Records[0].JSON), `"other":"`+long+`"`) || answer.Records[1].Details().Reason != long {
		t.Error("what is unknown is not kept as it is")
	}
}

// feedOf returns n records, the last one first, two for each timestamp except the first, which is 10.
func feedOf(n int) string {
	var b strings.Builder
	for i := n - 1; i >= 0; i-- {
		fmt.Fprintf(&b, `,{"n":%d,"timestamp_ms":%d}`, i, 10+(i+1)/2)
	}
	return "[" + b.String()[1:] + "]"
}

func TestHugeFeedIsTakenFromItsOldestRecords(t *testing.T) {
	for _, c := range []struct{ records, taken int }{{5000, 5000}, {5001, 5001}, {5002, 5001}, {15_000, 5001}} {
		answer, err := askFeed(t, body(feedOf(c.records)), 0, 0)
		if err != nil || len(answer.Records) != c.taken || answer.Left != c.records-c.taken || answer.Received != c.records {
			t.Errorf("of %d: took %d, left %d of %d, %v", c.records, len(answer.Records), answer.Left, answer.Received, err)
			continue
		}
		newest := int64(0)
		for _, r := range answer.Records {
			newest = max(newest, r.At.UnixMilli())
		}
		if want := int64(10 + c.taken/2); newest != want {
			t.Errorf("of %d: the newest taken is %d, want %d", c.records, newest, want)
		}
	}
	// A server that ignores since can be read further all the same.
	answer, err := askFeed(t, body(feedOf(15_000)), 10+5_000, 0)
	if last := answer.Records[len(answer.Records)-1]; err != nil || last.At.UnixMilli() < 10+5_000+2400 {
		t.Errorf("%v, up to %d", err, last.At.UnixMilli())
	}
}

// TestFeedOfTinyPartsTakesLittleMemory decodes a third of what once took 785 MiB.
func TestFeedOfTinyPartsTakesLittleMemory(t *testing.T) {
	for name, text := range map[string]string{
		"no stamps":     `[` + strings.Repeat(`{"a":{}},`, 60_000) + `{}]`,
		"too many":      `[` + strings.Repeat(`{"a":{}},`, 300_000) + `{}]`,
		"in one record": `[{"timestamp_ms":1,"a":[` + strings.Repeat(`{"a":{}},`, 300_000) + `{}]}]`,
		"stamped":       `[` + strings.Repeat(`{"timestamp_ms":1},`, 60_000) + `{"timestamp_ms":1}]`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		answer, err := upstream.DecodeFeed(http.Header{}, []byte(text))
		runtime.ReadMemStats(&after)
		if grown := (after.TotalAlloc - before.TotalAlloc) >> 20; grown > 200 {
			t.Errorf("%s: %d MiB allocated", name, grown)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if held := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) >> 20; held > 20 {
			t.Errorf("%s: %d MiB held", name, held)
		}
		if (name == "too many") != (err != nil) || err != nil && !strings.Contains(domain.MessageOf(err), "too large") {
			t.Errorf("%s: %v", name, err)
		}
		runtime.KeepAlive(answer)
	}
}

func TestFoundTextsOfTinyPartsTakeLittleMemory(t *testing.T) {
	project := serve(t, body(`{"texts":[`+strings.Repeat(`{},`, 2_500_000)+`{}]}`))
	client := newClient(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := client.FindTexts(t.Context(), project, "refund", 20)
	runtime.ReadMemStats(&after)
	if grown := (after.TotalAlloc - before.TotalAlloc) >> 20; grown > 64 || domain.CodeOf(err) != domain.BadGateway {
		t.Errorf("%d MiB allocated, %v", grown, err)
	}
}

// BenchmarkFeedOfTinyParts measures the time for the most expensive answer.
func BenchmarkFeedOfTinyParts(b *testing.B) {
	text := []byte(`[` + strings.Repeat(`{"timestamp_ms":1},`, 190_000) + `{"timestamp_ms":1}]`)
	for b.Loop() {
		if _, err := upstream.DecodeFeed(http.Header{}, text); err != nil {
			b.Fatal(err)
		}
	}
}
