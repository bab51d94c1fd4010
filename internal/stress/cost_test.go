//go:build stress

package stress

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	// honestTime is what 99 of 100 honest requests may take while somebody else costs as much as they can.
	honestTime = 250 * time.Millisecond
	// dearestCaller is the memory, in MiB, that one caller may cost in the following tests, beyond what the gateway takes anyway.
	dearestCaller = 100
)

// besides runs cost, and returns how much more memory the gateway took meanwhile, in MiB. An honest client asks all the time.
func besides(t *testing.T, g *server, cost func(ctx context.Context)) (grown float64) {
	t.Helper()
	before := g.memory("RssAnon:")
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	var others sync.WaitGroup
	others.Go(func() { cost(ctx) })
	var took []time.Duration
	for ctx.Err() == nil {
		began := time.Now()
		if status, err := ask(t, g.url+"/", rightToken); status != http.StatusOK {
			t.Errorf("an honest request: %d, %v", status, err)
		}
		took = append(took, time.Since(began))
		grown = max(grown, g.memory("RssAnon:")-before)
		pause(ctx, 20*time.Millisecond)
	}
	others.Wait()
	slices.Sort(took)
	p99 := took[len(took)*99/100]
	t.Logf("%d honest requests, p99 %v; %.0f MiB more", len(took), p99, grown)
	if p99 > honestTime {
		t.Errorf("the p99 of honest requests is %v", p99)
	}
	return grown
}

// memory returns a value of /proc/PID/status in MiB.
func (s *server) memory(key string) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.current.Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), key)
	var kib float64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		s.t.Fatal(err)
	}
	return kib / 1024
}

// roomy starts a gateway that has an admin token and all the descriptors it wants, with additional variables.
func roomy(t *testing.T, more ...string) *server {
	program, dir := build(t), t.TempDir()
	tokenFile := filepath.Join(dir, "token")
	if err := os.WriteFile(tokenFile, []byte(rightToken), 0o600); err != nil {
		t.Fatal(err)
	}
	g := newServer(t, "gateway", loopback(t, 1), program, "gateway", "--data", filepath.Join(dir, "data"), "--admin-token-file", tokenFile)
	g.more = more
	g.start()
	return g
}

// TestHalfBodiesCostLittle: bodies of strangers that never end.
func TestHalfBodiesCostLittle(t *testing.T) {
	g := roomy(t)
	body := bytes.Repeat([]byte("x"), 1<<20-1)
	grown := besides(t, g, func(ctx context.Context) {
		var all sync.WaitGroup
		defer all.Wait()
		for i := range 900 {
			path := []string{"/login", "/bot/team/events", "/gateway/agents"}[i%3]
			all.Go(func() {
				conn := connect(t, g)
				conn.SetDeadline(time.Now().Add(15 * time.Second))
				_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n"+
					"X-Slack-Signature: v0=1\r\nX-Slack-Request-Timestamp: 1\r\nContent-Length: %d\r\n\r\n", path, 1<<20)
				_, _ = conn.Write(body)
				<-ctx.Done()
			})
		}
	})
	if grown > dearestCaller {
		t.Errorf("half bodies cost %.0f MiB", grown)
	}
}

const (
	// heldCalls is how many calls a gateway holds, heldByOne how many of them for one caller.
	heldCalls, heldByOne = 1024, 64
	// dearestCall is the memory that a held call may keep, in KiB, and dearestWithGarbage the private memory that it may
	// take, with what Go keeps free for the garbage of pages asked for meanwhile.
	dearestCall, dearestWithGarbage = 32, 64
)

// kept returns the gateway's heap and stacks in MiB, without what is garbage: the median of what five collections find,
// since pages leave more or less in pools.
func kept(t *testing.T, g *server) float64 {
	const collections = "go_gc_duration_seconds_count"
	var found []float64
	for n := metric(t, g.url, collections); len(found) < 5; { // each call leaves garbage of its own
		if now := metric(t, g.url, collections); now > n {
			n, found = now, append(found, metric(t, g.url, "go_gc_heap_live_bytes")+metric(t, g.url, "go_memstats_stack_inuse_bytes"))
		}
	}
	slices.Sort(found)
	return found[2] / (1 << 20)
}

type heldCall struct{ method, path, body string }

// tokensFor returns as many tokens of a role as hold as many calls as there may be.
func tokensFor(t *testing.T, g *server, role string) (tokens []string) {
	t.Helper()
	for i := range heldCalls / heldByOne {
		var made struct{ Token string }
		body := map[string]string{"name": fmt.Sprint(role, "-", i), "role": role}
		if _, err := call(t.Context(), "POST", g.url+"/api/gateway/tokens", rightToken, body, &made); err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, made.Token)
	}
	return tokens
}

// hold makes as many calls as a gateway holds, and counts those that it has held for 15 s.
func hold(t *testing.T, g *server, tokens []string, request heldCall, held *atomic.Int64) *sync.WaitGroup {
	var all sync.WaitGroup
	for i := range heldCalls {
		conn := connect(t, g)
		all.Go(func() {
			_, err := fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nAccept: application/json, text/event-stream\r\n"+
				"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
				request.method, request.path, tokens[i/heldByOne], len(request.body), request.body)
			_ = conn.SetReadDeadline(time.Now().Add(15 * time.Second))
			answer, _ := io.ReadAll(conn)
			if err == nil && (len(answer) == 0 || strings.HasPrefix(string(answer), "HTTP/1.1 200 ")) {
				held.Add(1)
			}
		})
	}
	return &all
}

// TestEachHeldCallCostsLittle: as many callers as needed hold as many calls as there may be, of each kind.
func TestEachHeldCallCostsLittle(t *testing.T) {
	for name, request := range map[string]heldCall{
		"wait of the API": {"GET", "/api/gateway/events?after=0&wait=50s", ""},
		"wait of MCP": {"POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call",` +
			`"params":{"name":"wait_for_events","arguments":{"wait":"50s"}}}`},
		"stream": {"GET", "/api/gateway/events/stream", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := roomy(t)
			tokens := tokensFor(t, g, "viewer")
			var held atomic.Int64
			var before, alone float64
			besides(t, g, func(context.Context) { before = kept(t, g) }) // what pages take anyway
			grown := besides(t, g, func(ctx context.Context) {
				all := hold(t, g, tokens, request, &held)
				defer all.Wait()
				pause(ctx, time.Second) // until all are held
				alone = kept(t, g) - before
			})
			t.Logf("each takes %.1f KiB, with the garbage of pages %.1f", alone*1024/heldCalls, grown*1024/heldCalls)
			if n := held.Load(); n != heldCalls {
				t.Errorf("%d calls were held", n)
			}
			if alone > dearestCall*heldCalls/1024 || grown > dearestWithGarbage*heldCalls/1024 {
				t.Errorf("held calls cost %.0f MiB, with the garbage of pages %.0f", alone, grown)
			}
		})
	}
}

// TestHeldCallsCostLittle: one viewer sends a thousand batches of 16 calls that wait.
func TestHeldCallsCostLittle(t *testing.T) {
	g := roomy(t)
	var viewer struct{ Token string }
	_, err := call(t.Context(), "POST", g.url+"/api/gateway/tokens", rightToken, map[string]string{"name": "v", "role": "viewer"}, &viewer)
	if err != nil {
		t.Fatal(err)
	}
	var calls []string
	for i := range 16 {
		calls = append(calls, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"wait_for_events","arguments":{"wait":"50s"}}}`, i))
	}
	batch := "[" + strings.Join(calls, ",") + "]"
	grown := besides(t, g, func(ctx context.Context) {
		var all sync.WaitGroup
		defer all.Wait()
		for range 1000 {
			all.Go(func() {
				request, err := http.NewRequestWithContext(ctx, "POST", g.url+"/mcp", strings.NewReader(batch))
				if err != nil {
					t.Error(err)
					return
				}
				request.Header = http.Header{
					"Authorization": {"Bearer " + viewer.Token}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
				}
				if response, err := http.DefaultClient.Do(request); err == nil {
					_, _ = io.Copy(io.Discard, response.Body)
					response.Body.Close()
				}
			})
		}
	})
	if grown > dearestCaller {
		t.Errorf("held calls cost %.0f MiB", grown)
	}
}
