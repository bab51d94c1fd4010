//go:build stress

package stress

import (
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
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
	devices, deviceStories = 20, 20_000
	// blockedFor is how long all stories are blocked, and then free, by turns: longer than an alert must be gone to be another.
	blockedFor = 7 * time.Second
	// dearestDevices is how much the database may grow meanwhile, in MiB: by the list of alerts, which all targets share.
	dearestDevices = 32
	// toldWithin is how soon another's alert must be told beside all these.
	toldWithin = 5 * time.Second
)

// blocks is a project server all of whose stories are blocked, or none, by turns.
type blocks struct{ bodies [2]string }

func newBlocks() *blocks {
	b := &blocks{}
	for i, blocked := range []string{`null`, `"for a reason of some length, as people and agents write them"`} {
		b.bodies[i] = `{"stages":[{"name":"1_backlog","items":[]},{"name":"2_current","items":[` + repeat(deviceStories, func(i int) string {
			return fmt.Sprintf(`{"story_id":"%d_story","story_name":"Story %[1]d","blocked":%s,"merge_failure":null}`, i, blocked)
		}) + `]},{"name":"5_done","items":[]}]}`
	}
	return b
}

func (b *blocks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	turn := (time.Now().UnixMilli()/blockedFor.Milliseconds() + 1) % 2
	w.Header().Set("Pipeline-Version", fmt.Sprint(turn))
	w.Header().Set("ETag", fmt.Sprintf(`"%d"`, turn))
	if r.URL.Path == "/api/pipeline" {
		_, _ = io.WriteString(w, b.bodies[turn])
		return
	}
	pause(r.Context(), 200*time.Millisecond)
	w.Header().Set("Feed-Instance", "blocks")
	_, _ = io.WriteString(w, `[]`)
}

// told is a receiver that knows when it was told what.
type told struct {
	mu   sync.Mutex
	at   map[string]time.Time // by the last word of each message
	sent int
}

func (r *told) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent++
	for _, word := range strings.FieldsFunc(string(body), func(c rune) bool { return c == '"' || c == ' ' || c == '\\' }) {
		if _, before := r.at[word]; strings.HasPrefix(word, "honest-") && !before {
			r.at[word] = time.Now()
		}
	}
}

// TestManyDevicesAndBlocksCostLittle: a viewer has 20 browsers told of 20,000 stories that are blocked and unblocked by turns. Another's
// alerts are told beside that, one by one or in a digest that names them.
func TestManyDevicesAndBlocksCostLittle(t *testing.T) {
	var pushed atomic.Int64
	push := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		pushed.Add(1)
		w.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(push.Close)
	authority := filepath.Join(t.TempDir(), "push.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: push.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	receiver := &told{at: map[string]time.Time{}}
	hook := httptest.NewServer(receiver)
	t.Cleanup(hook.Close)
	board := httptest.NewServer(newBlocks())
	t.Cleanup(board.Close)

	g := roomy(t, "SSL_CERT_FILE="+authority, "SWITCHYARD_NOTIFICATIONS_ALLOW_PRIVATE=true")
	as := func(bearer, path string, body, reply any) {
		t.Helper()
		if status, err := call(t.Context(), "POST", g.url+path, bearer, body, reply); err != nil || status >= 300 {
			t.Fatalf("%s: %d, %v", path, status, err)
		}
	}
	as(rightToken, "/api/gateway/projects", map[string]string{"name": "blocks", "url": board.URL}, nil)
	size := func() float64 {
		var sum int64
		files, _ := filepath.Glob(filepath.Join(g.command[slices.Index(g.command, "--data")+1], "switchyard.db*"))
		for _, path := range files {
			if info, err := os.Stat(path); err == nil {
				sum += info.Size()
			}
		}
		return float64(sum) / (1 << 20)
	}
	alone := besides(t, g, func(ctx context.Context) { <-ctx.Done() }) // what such a board takes anyway
	var viewer struct{ Token string }
	as(rightToken, "/api/gateway/tokens", map[string]string{"name": "viewer", "role": "viewer"}, &viewer)
	for i := range devices {
		key, err := ecdh.P256().GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		encode := base64.RawURLEncoding.EncodeToString
		as(viewer.Token, "/api/gateway/push", map[string]any{
			"endpoint": fmt.Sprint(push.URL, "/", i), "keys": map[string]string{"p256dh": encode(key.PublicKey().Bytes()), "auth": encode(make([]byte, 16))},
			"events": []string{"story_blocked"}, "alerts": []string{"blocked", "question"},
		}, nil)
	}
	as(rightToken, "/api/gateway/targets", map[string]any{"name": "hook", "url": hook.URL, "alerts": []string{"blocked", "question"}}, nil)
	before, asked := size(), map[string]time.Time{}
	for range 3 { // a minute
		grown := besides(t, g, func(ctx context.Context) {
			for ; ctx.Err() == nil; pause(ctx, 5*time.Second) {
				prompt := fmt.Sprint("honest-", len(asked))
				asked[prompt] = time.Now()
				as(rightToken, "/api/gateway/questions", map[string]string{"kind": "text", "prompt": prompt}, nil)
			}
		})
		if grown > alone+dearestCaller {
			t.Errorf("20 devices cost %.0f MiB beside %.0f", grown, alone)
		}
	}
	late := func() (slowest time.Duration) {
		receiver.mu.Lock()
		defer receiver.mu.Unlock()
		for prompt, at := range asked {
			took := forever.Sub(at)
			if when, ok := receiver.at[prompt]; ok {
				took = when.Sub(at)
			}
			slowest = max(slowest, took)
		}
		return slowest
	}
	until(toldWithin, func() bool { return late() < toldWithin })
	grew := size() - before
	t.Logf("%d pushes and %d messages; of %d alerts of others the last was told after %v; the database grew by %.1f MiB", pushed.Load(), receiver.sent,
		len(asked), late().Round(time.Millisecond), grew)
	if slowest := late(); slowest > toldWithin {
		t.Errorf("another's alert was told after %v", slowest)
	}
	if pushed.Load() < devices || grew > dearestDevices {
		t.Errorf("%d pushes; the database grew by %.1f MiB", pushed.Load(), grew)
	}
}

// TestHeldClaimsCostLittle: as many claims as there may be wait for a board of 20,000 stories that changes meanwhile.
func TestHeldClaimsCostLittle(t *testing.T) {
	board := httptest.NewServer(newBlocks())
	t.Cleanup(board.Close)
	g := roomy(t)
	project := map[string]string{"name": "blocks", "url": board.URL}
	if status, err := call(t.Context(), "POST", g.url+"/api/gateway/projects", rightToken, project, nil); err != nil || status != http.StatusOK {
		t.Fatalf("%d, %v", status, err)
	}
	tokens := tokensFor(t, g, "operator")
	alone := besides(t, g, func(ctx context.Context) { <-ctx.Done() })
	var held atomic.Int64
	grown := besides(t, g, func(context.Context) {
		hold(t, g, tokens, heldCall{"POST", "/api/gateway/projects/blocks/stories/claim", `{"wait":"50s"}`}, &held).Wait()
	})
	if held.Load() != heldCalls || grown > alone+dearestCaller {
		t.Errorf("%d claims were held for %.0f MiB", held.Load(), grown)
	}
}
