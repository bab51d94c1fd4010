package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"switchyard/internal/pgtest"
	"switchyard/internal/waittest"
)

// TestGatewaysGoByTheClockOfTheirDatabase: times stored by one gateway agree with the clocks of all others.
func TestGatewaysGoByTheClockOfTheirDatabase(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := sharing(t, pgtest.WrongClock(t, ahead), name)
			p.awaitStatus(t, "/readyz", 200)
			at := func(what string, ms int64, want time.Duration) {
				t.Helper()
				if got := time.Until(time.UnixMilli(ms)); (got - ahead - want).Abs() > 5*time.Minute {
					t.Errorf("%s is in %v, want %v", what, got, ahead+want)
				}
			}
			ask := func(method, path, body string, into any) {
				t.Helper()
				if _, text := p.do(t, method, path, body); json.Unmarshal([]byte(text), into) != nil {
					t.Fatalf("%s %s: %s", method, path, text)
				}
			}
			feed := newFeedServer(t)
			remote{t, p.url}.register("alpha", feed.URL)
			feed.say()
			var stream struct {
				Events []struct {
					ReceivedAt int64 `json:"received_at_ms"`
				}
			}
			waittest.Until(t, "the event is there", func() bool {
				ask("GET", "/api/gateway/events", "", &stream)
				return len(stream.Events) > 0
			})
			at("the arrival of an event", stream.Events[0].ReceivedAt, 0)

			var token struct {
				ExpiresAt int64 `json:"expires_at_ms"`
			}
			ask("POST", "/api/gateway/tokens", `{"name":"script","role":"viewer","expires_in":"24h"}`, &token)
			at("the end of a named token", token.ExpiresAt, 24*time.Hour)

			var join struct{ Token string }
			ask("POST", "/gateway/tokens", "", &join)
			var joined struct {
				Agent struct {
					JoinedAt int64 `json:"joined_at_ms"`
					LastSeen int64 `json:"last_seen_ms"`
				}
			}
			ask("POST", "/gateway/agents", `{"token":"`+join.Token+`"}`, &joined)
			at("when an agent joined", joined.Agent.JoinedAt, 0)
			at("when it was seen", joined.Agent.LastSeen, 0)
			var agents []json.RawMessage
			if ask("GET", "/gateway/agents", "", &agents); len(agents) != 1 {
				t.Errorf("%d agents are alive", len(agents))
			}

			var audit struct {
				Entries []struct {
					At     int64 `json:"at_ms"`
					Action string
				}
			}
			ask("GET", "/api/gateway/audit", "", &audit)
			for _, e := range audit.Entries {
				at("the audit of "+e.Action, e.At, 0)
			}
			if len(audit.Entries) == 0 || !strings.Contains(p.stderr.String(), "clocks of this machine and the database differ") {
				t.Errorf("%d entries; the log: %s", len(audit.Entries), &p.stderr)
			}
		})
	}
}
