package api_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/handlers"
	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/service"
	"switchyard/internal/waittest"
	"switchyard/internal/web"
)

// heldBeat returns the bytes of a heartbeat request with this wait.
func heldBeat(id, secret, wait string) string {
	return fmt.Sprintf("POST /gateway/agents/%s/heartbeat?assigned=&wait=%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", id, wait, secret)
}

const healthRequest = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"

// TestAHeldHeartbeatsConnectionGoesOn: the next request on it is answered, whether it is sent after the answer or before.
func TestAHeldHeartbeatsConnectionGoesOn(t *testing.T) {
	g := newAgentGateway(t, "")
	id, secret := g.join("a")
	conn, from := g.Dial()
	for _, send := range [][]string{
		{heldBeat(id, secret, "100ms"), healthRequest},
		{heldBeat(id, secret, "100ms") + healthRequest, ""},
		{heldBeat(id, secret, "100ms"), heldBeat(id, secret, "100ms")},
	} {
		io.WriteString(conn, send[0])
		response := g.ReadAnswer(from)
		if response.StatusCode != 200 || !strings.HasPrefix(response.Text, `{"id":"`+id) || response.Header.Get("Content-Type") != "application/json" ||
			response.Header.Get("X-Request-Id") == "" || response.Header.Get("Date") == "" || response.Close {
			t.Errorf("the held answer is %d %v %s", response.StatusCode, response.Header, response.Text)
		}
		io.WriteString(conn, send[1])
		if response := g.ReadAnswer(from); response.StatusCode != 200 {
			t.Errorf("the next answer on the connection is %d %s", response.StatusCode, response.Text)
		}
	}
}

// TestAHeldHeartbeatsConnectionMayRest: the next request on it may come at any time before the idle timeout.
func TestAHeldHeartbeatsConnectionMayRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gatewaytest.New(t, service.Options{}, handlers.Gateway{})
		token, _, err := g.Agents.CreateJoinToken(context.Background(), "")
		if err != nil {
			t.Fatal(err)
		}
		agent, secret, err := g.Agents.Join(context.Background(), token, nil, "")
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: g.HTTP.Handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute}
		defer server.Shutdown(context.Background())
		client, served := net.Pipe()
		defer client.Close()
		listener := make(waittest.Listener, 1)
		listener <- served
		close(listener)
		go server.Serve(listener)
		from := bufio.NewReader(client)
		for range 2 {
			io.WriteString(client, heldBeat(agent.ID, secret.Reveal(), "5s"))
			response, err := http.ReadResponse(from, nil)
			if err != nil {
				t.Fatal(err)
			}
			if io.Copy(io.Discard, response.Body); response.StatusCode != 200 {
				t.Errorf("answered %d", response.StatusCode)
			}
			time.Sleep(30 * time.Second)
		}
	})
}

// TestAHeldHeartbeatEndsWithItsClient: the agent no longer counts as connected, well before its answer is due.
func TestAHeldHeartbeatEndsWithItsClient(t *testing.T) {
	g := newAgentGateway(t, "")
	id, secret := g.join("a")
	conn, _ := g.Dial()
	connected := func() bool { a, _ := g.Agents.Find(id); return a.Connected }
	io.WriteString(conn, heldBeat(id, secret, "55s"))
	waittest.Until(t, "the agent is connected", connected)
	conn.Close()
	began := time.Now()
	waittest.Until(t, "the agent is gone", func() bool { return !connected() })
	if took := time.Since(began); took > 40*time.Second {
		t.Errorf("the agent was gone after %v", took)
	}
}

// TestAnAgentHoldsOneHeartbeat: a second one ends the first.
func TestAnAgentHoldsOneHeartbeat(t *testing.T) {
	g := newAgentGateway(t, "")
	id, secret := g.join("a")
	first, fromFirst := g.Dial()
	io.WriteString(first, heldBeat(id, secret, "55s"))
	waittest.Until(t, "the agent is connected", func() bool { a, _ := g.Agents.Find(id); return a.Connected })
	began := time.Now()
	second, fromSecond := g.Dial()
	io.WriteString(second, heldBeat(id, secret, "400ms"))
	if response := g.ReadAnswer(fromFirst); response.StatusCode != 200 || time.Since(began) > 40*time.Second { // it was held for 55
		t.Errorf("after %v: %d %s", time.Since(began), response.StatusCode, response.Text)
	}
	if response := g.ReadAnswer(fromSecond); response.StatusCode != 200 || time.Since(began) < 200*time.Millisecond {
		t.Errorf("after %v: %d %s", time.Since(began), response.StatusCode, response.Text)
	}
}

func TestAHeldHeartbeatOfARemovedAgentIsRefused(t *testing.T) {
	g := newAgentGateway(t, "")
	id, secret := g.join("a")
	conn, from := g.Dial()
	io.WriteString(conn, heldBeat(id, secret, "55s"))
	waittest.Until(t, "the agent is connected", func() bool { a, _ := g.Agents.Find(id); return a.Connected })
	if err := g.Agents.Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if response := g.ReadAnswer(from); response.StatusCode != 401 || response.Text != "no agent has this id and secret" {
		t.Errorf("answered %d %s", response.StatusCode, response.Text)
	}
	waittest.Until(t, "the answer is counted", func() bool { // it is counted when it is answered
		_, text := g.call("GET", "/metrics", "", "")
		return strings.Contains(text, `switchyard_http_requests_total{method="POST",route="/gateway/agents/{id}/heartbeat",status="401"} 1`)
	})
}

func TestAServerThatStopsAnswersHeldHeartbeats(t *testing.T) {
	g := newAgentGateway(t, "")
	stopping, stop := context.WithCancel(context.Background())
	defer stop()
	server := httptest.NewUnstartedServer(g.HTTP.Handler())
	server.Config.BaseContext = func(net.Listener) context.Context { return web.WithStopping(context.Background(), stopping) }
	server.Start()
	defer server.Close()
	id, secret := g.join("a")
	g.URL = server.URL
	conn, from := g.Dial()
	io.WriteString(conn, heldBeat(id, secret, "55s"))
	waittest.Until(t, "the agent waits, idle", func() bool { a, _ := g.Agents.Find(id); return a.Connected && a.State == domain.AgentIdle })
	began := time.Now()
	server.Config.RegisterOnShutdown(stop) // so that the connection ends with the answer
	go server.Config.Shutdown(context.Background())
	if response := g.ReadAnswer(from); response.StatusCode != 200 || !response.Close || time.Since(began) > 40*time.Second { // it is held for 55
		t.Errorf("after %v: %d, close %v, %s", time.Since(began), response.StatusCode, response.Close, response.Text)
	}
}
