package service_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/waittest"
)

// TestTargetsAtRestCostLittle: 200 of them take under a hundredth of a core while nothing happens. The clock is virtual, the
// processor's time is not.
func TestTargetsAtRestCostLittle(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of processor time")
	}
	synctest.Test(t, func(t *testing.T) {
		g := newTold(t)
		for n := range 20 {
			g.asks(fmt.Sprintf("Question %d?", n))
		}
		alerts := []domain.AlertKind{domain.AlertQuestion, domain.AlertBlocked, domain.AlertStuck, domain.AlertTarget}
		events := []domain.EventType{domain.StoryBlocked, domain.StageTransition}
		for n := range 50 {
			for name, rules := range map[string]domain.TargetRules{
				"plain":  {Events: events, Alerts: alerts},
				"some":   {Events: events, Alerts: alerts, Projects: []string{"alpha", "beta"}},
				"hourly": {Events: events, Alerts: alerts, Digest: domain.HourlyDigest, TimeZone: "Asia/Kolkata"},
				"quiet":  {Events: events, Alerts: alerts, Quiet: &domain.Quiet{From: "00:00", To: "12:00"}, TimeZone: "Europe/Vienna"},
			} {
				g.add(fmt.Sprint(name, n), rules)
			}
		}
		g.happens("alpha", domain.StoryBlocked, 5)
		time.Sleep(time.Minute)
		const rest = 10 * time.Minute
		before := waittest.CPUTime()
		time.Sleep(rest)
		share := float64(waittest.CPUTime()-before) / float64(rest)
		t.Logf("200 targets at rest: %.3f %% of a core", 100*share)
		if share > 0.01 {
			t.Error("they cost over a hundredth of a core")
		}
	})
}

// TestEventsDoNotWaitForTargets: 5,000 events a second are recorded at once while some receivers answer nothing and others are slow;
// one that works gets all that concerns it, in order.
func TestEventsDoNotWaitForTargets(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of processor time")
	}
	synctest.Test(t, func(t *testing.T) {
		g := newTold(t)
		g.takes, g.troubled = 10*time.Second, "hangs"
		g.says(func(target string, m domain.Message) domain.SendResult {
			if target == "hangs" {
				return refuses(0)(target, m)
			}
			return domain.SendResult{Status: 200}
		})
		moves := domain.TargetRules{Events: []domain.EventType{domain.StageTransition}}
		for range 20 {
			g.add("hangs", moves)
		}
		g.add("blocked", blockedOnly)
		g.add("hourly", domain.TargetRules{Events: []domain.EventType{domain.StageTransition}, Digest: domain.HourlyDigest})
		time.Sleep(time.Second)
		const seconds, batch = 2, 500
		for range seconds * 5000 / batch {
			began := time.Now()
			g.happens("alpha", domain.StageTransition, batch-1)
			g.happens("alpha", domain.StoryBlocked, 1)
			if waited := time.Since(began); waited > 0 {
				t.Fatalf("recording waited %v", waited)
			}
			time.Sleep(time.Second * batch / 5000)
		}
		time.Sleep(time.Second)
		var ids []string
		for _, m := range g.posts() {
			if m.target == "blocked" {
				ids = append(ids, fmt.Sprintf("%09s", m.message.ID[strings.LastIndexByte(m.message.ID, '_')+1:]))
			}
		}
		if n := seconds * 5000 / batch; len(ids) != n || !slices.IsSorted(ids) {
			t.Errorf("%d of %d messages a second later, in order: %v", len(ids), n, slices.IsSorted(ids))
		}
		for _, hanging := range g.list("hangs") {
			if err := g.Targets.Remove(t.Context(), hanging.ID); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour)
		want(t, "hourly", g.take("hourly"), fmt.Sprintf("The hour: %s finished", domain.Thousands(seconds*5000-seconds*5000/batch)))
	})
}

// list returns the targets of a name.
func (g *told) list(name string) []domain.Target {
	g.t.Helper()
	all, err := g.Targets.List(g.t.Context())
	if err != nil {
		g.t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(t domain.Target) bool { return t.Name != name })
}
