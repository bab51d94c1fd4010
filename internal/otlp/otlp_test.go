package otlp_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"switchyard/internal/domain"
	"switchyard/internal/otlp"
)

// captured returns what a client sent, in JSON and the same in protobuf.
func captured(t testing.TB, name string) (asJSON, asProtobuf []byte) {
	t.Helper()
	asJSON, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var all logs.LogsData
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(asJSON, &all); err != nil {
		t.Fatal(err)
	}
	asProtobuf, err = proto.Marshal(&all)
	if err != nil {
		t.Fatal(err)
	}
	return asJSON, asProtobuf
}

func decode(t testing.TB, body []byte, isJSON bool) []domain.Call {
	t.Helper()
	calls, dropped, err := otlp.Decode(body, isJSON)
	if err != nil || dropped != 0 {
		t.Fatalf("%d dropped, %v", dropped, err)
	}
	return calls
}

func TestTheCallsOfThreeClientsAreRead(t *testing.T) {
	claude := domain.Tokens{Input: 1200, CacheRead: 7000, CacheCreation: 500, Output: 34}
	others := domain.Tokens{Input: 1200, CacheRead: 7000, Output: 34}
	for _, c := range []struct {
		file, client, session, model string
		calls                        int
		tokens                       domain.Tokens
		usd                          domain.Micros
	}{
		{"claude-code-1", "claude-code", "39397a2c-195b-4286-ad9c-363ba96c4cec", "claude-opus-5-5", 1, claude, 9380},
		{"claude-code-2", "claude-code", "39397a2c-195b-4286-ad9c-363ba96c4cec", "claude-opus-5-5", 1, claude, 9380},
		{"codex-1", "codex", "01a2239e-071e-70a3-b0fa-671137aeee2c", "gpt", 1, others, 0},
		{"codex-2", "codex", "01a2239e-071e-70a3-b0fa-671137aeee2c", "gpt", 1, others, 0},
		{"gemini-1", "gemini-cli", "b8811c5a-eba9-49cc-8ce5-310d8323da39", "gemini-2.5-pro", 3, others, 0},
	} {
		asJSON, asProtobuf := captured(t, c.file)
		calls := decode(t, asJSON, true)
		if len(calls) != c.calls {
			t.Errorf("%s: %d calls", c.file, len(calls))
		}
		keys := map[string]bool{}
		for _, call := range calls {
			keys[call.Key] = true
			if call.Client != c.client || call.Session != c.session || call.Model != c.model || call.Tokens != c.tokens ||
				call.Project != "webshop" || call.StoryID != "12_story_pay" || call.At.Year() != 2026 {
				t.Errorf("%s: %+v", c.file, call)
			}
			if (c.usd != 0) != (call.Stated != nil) || call.Stated != nil && *call.Stated != c.usd {
				t.Errorf("%s: it costs %v", c.file, call.Stated)
			}
		}
		if len(keys) != c.calls {
			t.Errorf("%s: %d calls have %d keys", c.file, c.calls, len(keys))
		}
		if same := decode(t, asProtobuf, false); fmt.Sprint(texts(same)) != fmt.Sprint(texts(calls)) {
			t.Errorf("%s: in protobuf %v, in JSON %v", c.file, texts(same), texts(calls))
		}
	}
}

func texts(calls []domain.Call) (all []string) {
	for _, c := range calls {
		text, _ := json.Marshal(c)
		all = append(all, string(text))
	}
	return all
}

// one returns a body with a record of these attributes in OTLP's JSON, "name: value".
func one(attributes ...string) []byte {
	var pairs []string
	for _, a := range attributes {
		name, value, _ := strings.Cut(a, ": ")
		pairs = append(pairs, fmt.Sprintf(`{"key":%q,"value":%s}`, name, value))
	}
	return fmt.Appendf(nil, `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"1795893677199000000","attributes":[%s]}]}]}]}`,
		strings.Join(pairs, ","))
}

func claudes(attributes ...string) []byte {
	return one(append([]string{
		`event.name: {"stringValue":"api_request"}`, `session.id: {"stringValue":"s"}`,
		`model: {"stringValue":"m"}`,
	}, attributes...)...)
}

func TestACallIsToldByWhatWasSent(t *testing.T) {
	key := func(attributes ...string) string {
		t.Helper()
		return decode(t, claudes(attributes...), true)[0].Key
	}
	const id, other = `request_id: {"stringValue":"req_1"}`, `request_id: {"stringValue":"req_2"}`
	const early, late = `event.timestamp: {"stringValue":"2026-11-28T19:21:17.199Z"}`, `event.timestamp: {"stringValue":"2026-11-28T20:21:17.199Z"}`
	const first, second = `event.sequence: {"intValue":"1"}`, `event.sequence: {"intValue":2}`
	for what, same := range map[string]bool{
		"a request whatever its time":               key(id, early, first) == key(id, late, second),
		"a sequence at its time":                    key(early, first) == key(early, first, `input_tokens: {"intValue":"1"}`),
		"the tokens, where there is nothing else":   key(early) == key(early, `user.id: {"stringValue":"u"}`),
		"an integer in either form":                 key(early, `event.sequence: {"intValue":1}`) == key(early, first),
		"not two requests":                          key(id) != key(other),
		"not a sequence begun again":                key(early, first) != key(late, first),
		"not two numbers of a sequence":             key(early, first) != key(early, second),
		"not other tokens, where nothing else says": key(early) != key(early, `output_tokens: {"intValue":"5"}`),
	} {
		if !same {
			t.Errorf("one call is: %s", what)
		}
	}
}

func TestMoneyIsRoundedHalfUpToAMillionth(t *testing.T) {
	for attribute, want := range map[string]domain.Micros{
		`cost_usd: {"doubleValue":0.03752}`:      37520,
		`cost_usd: {"doubleValue":0.0000005}`:    1,
		`cost_usd: {"doubleValue":1.5e-6}`:       2,
		`cost_usd: {"doubleValue":1e-999999999}`: 0,
		`cost_usd: {"intValue":"10000"}`:         domain.MaxUSD,
		`cost_usd_micros: {"intValue":"9380"}`:   9380,
		`cost_usd_micros: {"intValue":0}`:        0,
	} {
		if got := decode(t, claudes(attribute), true)[0].Stated; got == nil || *got != want {
			t.Errorf("%s: %v, want %v", attribute, got, want)
		}
	}
	both := decode(t, claudes(`cost_usd: {"doubleValue":0.1}`, `cost_usd_micros: {"intValue":"99999"}`), true)
	if *both[0].Stated != 99999 {
		t.Errorf("with both it costs %v", both[0].Stated)
	}
}

func TestWhatCannotBeIsDropped(t *testing.T) {
	long := strings.Repeat("ä", 201)
	for _, attribute := range []string{
		`input_tokens: {"intValue":"-1"}`, `input_tokens: {"doubleValue":1.5}`, `input_tokens: {"intValue":"1000000001"}`,
		`input_tokens: {"stringValue":"1e3"}`, `input_tokens: {"stringValue":"+5"}`, `input_tokens: {"stringValue":"5.0"}`,
		`input_tokens: {"stringValue":"0x10"}`, `cost_usd_micros: {"stringValue":"1e3"}`,
		`input_tokens: {"stringValue":"NaN"}`, `input_tokens: {"stringValue":"many"}`, `output_tokens: {"doubleValue":"Infinity"}`,
		`input_tokens: {"boolValue":true}`, `cost_usd: {"arrayValue":{}}`, `cost_usd: {"doubleValue":-0.1}`, `cost_usd: {"doubleValue":"NaN"}`, `cost_usd: {"doubleValue":10000.000001}`,
		`cost_usd: {"doubleValue":1e999999999}`, `cost_usd: {"stringValue":"1/3"}`, `cost_usd: {"stringValue":"0x1p-2"}`,
		`cost_usd_micros: {"intValue":"-1"}`, `cost_usd_micros: {"intValue":"10000000001"}`,
		`model: {"stringValue":"` + long + `"}`, `session.id: {"stringValue":"` + long + `"}`,
		`model: {"stringValue":"` + strings.Repeat("x", 100_000) + `"}`,
	} {
		if calls, dropped, err := otlp.Decode(claudes(attribute), true); len(calls) != 0 || dropped != 1 || err != nil {
			t.Errorf("%.60s: %v, %d, %v", attribute, texts(calls), dropped, err)
		}
	}
	if calls := decode(t, claudes(`input_tokens: {"doubleValue":1e6}`, `output_tokens: {"stringValue":"007"}`), true); calls[0].Tokens != (domain.Tokens{Input: 1_000_000, Output: 7}) {
		t.Errorf("whole numbers: %v", texts(calls))
	}
	if calls, dropped, err := otlp.Decode(claudes(`model: {"stringValue":"`+long[:400]+`"}`), true); len(calls) != 1 || dropped != 0 || err != nil {
		t.Errorf("200 characters: %v, %d, %v", calls, dropped, err)
	}
	codex := []string{`event.name: {"stringValue":"codex.sse_event"}`, `event.kind: {"stringValue":"response.completed"}`}
	if calls, dropped, err := otlp.Decode(one(codex...), true); len(calls) != 0 || dropped != 0 || err != nil {
		t.Errorf("the end of a call without counts: %v, %d, %v", calls, dropped, err)
	}
	impossible := append(codex, `input_token_count: {"stringValue":"5"}`, `cached_token_count: {"stringValue":"6"}`)
	if calls, dropped, err := otlp.Decode(one(impossible...), true); len(calls) != 0 || dropped != 1 || err != nil {
		t.Errorf("more from the cache than at all: %v, %d, %v", calls, dropped, err)
	}
}

func TestWhatIsNotReadMayBeBroken(t *testing.T) {
	for _, other := range []string{
		`prompt: {"stringValue":"half a face \ud83d"}`, `output: {"bytesValue":7}`, `x: {"arrayValue":[]}`, `not UTF-8: {"stringValue":"?"}`,
		`input_tokens: {"intValue":"5"}`, `cost_usd: {"doubleValue":"0.5"}`,
	} {
		body := bytes.Replace(claudes(other), []byte("?"), []byte("\xff"), 1)
		if calls := decode(t, body, true); len(calls) != 1 {
			t.Errorf("%s: %v", other, texts(calls))
		}
	}
}

func TestTheTimeIsTheEventsElseTheRecords(t *testing.T) {
	at := func(body []byte) time.Time { return decode(t, body, true)[0].At.UTC() }
	for want, got := range map[string]time.Time{
		"2026-11-28T19:21:18.5Z":   at(claudes(`event.timestamp: {"stringValue":"2026-11-28T20:21:18.5+01:00"}`)),
		"2026-11-28T19:21:17.199Z": at(claudes(`event.timestamp: {"stringValue":"yesterday"}`)),
		"2026-11-28T19:21:16Z": at(bytes.Replace(claudes(), []byte(`"timeUnixNano":"1795893677199000000"`),
			[]byte(`"timeUnixNano":"0","observedTimeUnixNano":1795893676000000000`), 1)),
		"0001-01-01T00:00:00Z": at(bytes.Replace(claudes(), []byte("1795893677199000000"), []byte("0"), 1)),
	} {
		if got.Format(time.RFC3339Nano) != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// hostile are bodies of 4 MiB whose decoding as a whole takes hundreds of MiB.
func hostile() map[string][]byte {
	const size = 4 << 20
	message := func(number byte, content []byte) []byte {
		length := []byte{byte(len(content))}
		if n := len(content); n > 127 {
			length = []byte{byte(n) | 0x80, byte(n>>7) | 0x80, byte(n>>14) | 0x80, byte(n >> 21)}
		}
		return append(append([]byte{number<<3 | 2}, length...), content...)
	}
	inRecord := func(content []byte) []byte { return message(1, message(2, message(2, content))) }
	fill := func(unit string, n int) []byte { return bytes.Repeat([]byte(unit), (size-64)/n) }
	inJSON := func(unit string) []byte {
		return fmt.Appendf(nil, `{"resourceLogs":[{"scopeLogs":[{"logRecords":[%s]}]}]}`,
			strings.TrimSuffix(strings.Repeat(unit+",", (size-100)/(len(unit)+1)), ","))
	}
	return map[string][]byte{
		"empty records":                 message(1, message(2, fill("\x12\x00", 2))),
		"empty attributes":              inRecord(fill("\x32\x00", 2)),
		"empty resources":               fill("\x0a\x00", 2),
		"empty scopes":                  message(1, fill("\x12\x00", 2)),
		"a list in a list":              inRecord(fill("\x32\x04\x12\x02\x2a\x00", 6)),
		"empty records in JSON":         inJSON("{}"),
		"empty resources in JSON":       fmt.Appendf(nil, `{"resourceLogs":[%s]}`, strings.TrimSuffix(strings.Repeat("{},", size/3-10), ",")),
		"one attribute again and again": inRecord(fill("\x32\x0b\x0a\x05model\x12\x02\x0a\x00", 13)),
		"a deep list in JSON":           []byte(strings.Repeat("[", size)),
		"a text of 4 MiB in JSON":       claudes(`model: {"stringValue":"` + strings.Repeat("x", size-400) + `"}`),
		"an unknown text of 4 MiB":      claudes(`prompt: {"stringValue":"` + strings.Repeat("x", size-400) + `"}`),
		"escapes":                       claudes(`model: {"stringValue":"` + strings.Repeat(`A`, size/6-100) + `"}`),
	}
}

func TestHostileBodiesTakeLittleMemory(t *testing.T) {
	for name, body := range hostile() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		start := time.Now()
		calls, _, err := otlp.Decode(body, strings.Contains(name, "JSON") || body[0] == '{')
		runtime.ReadMemStats(&after)
		grown := int64(after.HeapSys) - int64(before.HeapSys)
		t.Logf("%s: %d bytes, heap grew by %d KiB, %d KiB allocated, %v, %d calls, %v", name, len(body), grown>>10,
			(after.TotalAlloc-before.TotalAlloc)>>10, time.Since(start).Round(time.Millisecond), len(calls), err)
		if grown > 12*int64(len(body)) {
			t.Errorf("%s: %d MiB of memory for %d bytes", name, grown>>20, len(body))
		}
	}
	for _, empty := range []string{"empty records", "empty records in JSON"} {
		if _, _, err := otlp.Decode(hostile()[empty], strings.HasSuffix(empty, "JSON")); err != otlp.ErrMany {
			t.Errorf("%s: %v", empty, err)
		}
	}
}

func TestTenThousandRecordsAreTheLimit(t *testing.T) {
	for records, want := range map[int]error{10_000: nil, 10_001: otlp.ErrMany} {
		data := &logs.LogsData{ResourceLogs: []*logs.ResourceLogs{{ScopeLogs: []*logs.ScopeLogs{{}}}}}
		for range records {
			data.ResourceLogs[0].ScopeLogs[0].LogRecords = append(data.ResourceLogs[0].ScopeLogs[0].LogRecords, &logs.LogRecord{})
		}
		asProtobuf, err := proto.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		asJSON, err := protojson.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := otlp.Decode(asProtobuf, false); err != want {
			t.Errorf("%d records in protobuf: %v", records, err)
		}
		if _, _, err := otlp.Decode(asJSON, true); err != want {
			t.Errorf("%d records in JSON: %v", records, err)
		}
	}
}

func TestWhatIsNoExportIsRefused(t *testing.T) {
	for _, body := range []string{"", "[]", "7", `{"resourceLogs":7}`, `{"resourceLogs":[[]]}`, `{"resourceLogs":[`, `{} {}`} {
		if _, _, err := otlp.Decode([]byte(body), true); err != otlp.ErrMalformed {
			t.Errorf("%s: %v", body, err)
		}
	}
	if _, _, err := otlp.Decode([]byte("\x0a\x05hello"), false); err != otlp.ErrMalformed {
		t.Errorf("%v", err)
	}
	if calls, dropped, err := otlp.Decode(nil, false); len(calls)+dropped != 0 || err != nil {
		t.Errorf("an empty request: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, name := range []string{"claude-code-1", "codex-1"} {
		asJSON, asProtobuf := captured(f, name)
		f.Add(asJSON, true)
		f.Add(asProtobuf, false)
	}
	f.Add(claudes(`cost_usd: {"doubleValue":1e-9}`), true)
	f.Fuzz(func(t *testing.T, body []byte, isJSON bool) {
		calls, dropped, err := otlp.Decode(body, isJSON)
		if len(calls)+dropped > otlp.MaxRecords || err != nil && len(calls) > 0 {
			t.Fatalf("%d calls, %d dropped, %v", len(calls), dropped, err)
		}
		for _, c := range calls {
			if !c.Valid() || len(c.Key) != 32 || len(c.Project) > 1<<14 {
				t.Fatalf("%+v", c)
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	asJSON, asProtobuf := captured(b, "claude-code-1")
	for name, body := range map[string][]byte{"JSON": asJSON, "protobuf": asProtobuf} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				decode(b, body, name == "JSON")
			}
		})
	}
}
