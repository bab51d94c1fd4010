package handlers_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/handlers"
	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/service"
	"switchyard/internal/waittest"
	"switchyard/internal/web"
)

// readingTeam reads requests before it checks their signatures, like the bot.
func readingTeam(w http.ResponseWriter, r *http.Request) {
	if _, err := web.ReadBody(w, r, web.MaxBody); err != nil {
		w.WriteHeader(web.StatusOf(err))
	}
}

// halfBodies sends count bodies of 1 MiB without their last byte, each over a connection of its own, and counts the answers with
// 503 that come.
func halfBodies(t *testing.T, server string, count int, path string) *atomic.Int64 {
	t.Helper()
	body := bytes.Repeat([]byte("x"), web.MaxBody-1)
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n", path, web.MaxBody)
	refused := &atomic.Int64{}
	var sent sync.WaitGroup
	for range count {
		conn, err := net.Dial("tcp", server)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		sent.Go(func() {
			conn.SetDeadline(time.Now().Add(time.Minute))
			_, _ = io.WriteString(conn, head)
			_, _ = conn.Write(body) // the server may close the connection
		})
		go func() {
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err == nil && response.StatusCode == http.StatusServiceUnavailable {
				refused.Add(1)
			}
		}()
	}
	sent.Wait()
	return refused
}

// heap returns the bytes of live objects.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// TestHalfBodiesCostLittle: strangers send bodies that never end, and others are served all the same.
func TestHalfBodiesCostLittle(t *testing.T) {
	if testing.Short() {
		t.Skip("takes over a second of processor time")
	}
	for _, c := range []struct {
		path  string
		count int
		most  uint64
	}{
		{"/login", 500, 24 << 20},
		{"/gateway/agents", 500, 24 << 20},
		{"/bot/team/events", 400, 48 << 20},
	} {
		t.Run(strings.ReplaceAll(c.path[1:], "/", " "), func(t *testing.T) {
			g := gatewaytest.New(t, service.Options{}, handlers.Gateway{AdminToken: domain.Secret(gatewaytest.AdminToken), Chat: http.HandlerFunc(readingTeam)})
			server := g.Serve(t)
			before := heap()
			halfBodies(t, strings.TrimPrefix(server.URL, "http://"), c.count, c.path)
			if grown := int64(heap() - before); grown > int64(c.most) {
				t.Errorf("%d half bodies hold %d MiB, want %d", c.count, grown>>20, c.most>>20)
			}
			client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
			response, err := client.PostForm(server.URL+"/login", url.Values{"token": {gatewaytest.AdminToken}})
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != http.StatusSeeOther {
				t.Errorf("an honest login is answered %d", response.StatusCode)
			}
		})
	}
}

// TestStrangersBodiesShareABudget: 16 MiB in all may be under way; one more is refused until another has ended.
func TestStrangersBodiesShareABudget(t *testing.T) {
	g := gatewaytest.New(t, service.Options{}, handlers.Gateway{AdminToken: domain.Secret(gatewaytest.AdminToken), Chat: http.HandlerFunc(readingTeam)})
	server := g.Serve(t)
	address := strings.TrimPrefix(server.URL, "http://")
	refused := halfBodies(t, address, 40, "/bot/team/events")
	waittest.Until(t, "503 for what is beyond the budget", func() bool { return refused.Load() >= 24 })
}

// TestALoginTakesASmallFormOnly states the limit of its body.
func TestALoginTakesASmallFormOnly(t *testing.T) {
	g := newGuarded(t, gatewaytest.AdminToken, "key")
	for padding, want := range map[int]int{3000: http.StatusSeeOther, 4096: http.StatusRequestEntityTooLarge} {
		body := url.Values{"token": {gatewaytest.AdminToken}, "next": {"/" + strings.Repeat("x", padding)}}.Encode()
		if got := g.send("192.0.2.1:1", "POST", "/login", body, "Content-Type", "application/x-www-form-urlencoded"); got.StatusCode != want {
			t.Errorf("a form of %d bytes: %d, want %d", len(body), got.StatusCode, want)
		}
	}
}
