package service_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/domain"
)

// lastDigest is the digest that was told last.
func (g *told) lastDigest() domain.DigestRecord {
	g.t.Helper()
	g.mu.Lock()
	all := g.all
	g.mu.Unlock()
	if len(all) == 0 {
		g.t.Fatal("nothing was told")
	}
	link := all[len(all)-1].message.Link
	digest, _, err := g.Deliveries.Digest(g.t.Context(), link[strings.LastIndexByte(link, '/')+1:], 1)
	if err != nil {
		g.t.Fatal(err)
	}
	return digest
}

// TestADigestKnowsWhenItWasTold, one of alerts only, too, which ends with the same event as the one before.
func TestADigestKnowsWhenItWasTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which begins on 1 January 2000, 00:00 UTC
		g := newTold(t)
		g.add("hourly", domain.TargetRules{
			Events: []domain.EventType{domain.StoryBlocked}, Alerts: []domain.AlertKind{domain.AlertQuestion}, Digest: domain.HourlyDigest,
		})
		time.Sleep(time.Minute)
		var digests []domain.DigestRecord
		for hour := 1; hour <= 3; hour++ {
			if hour == 2 {
				g.happens("alpha", domain.StoryBlocked, 1)
			} else {
				g.asks("Which?")
			}
			until(t, "UTC", fmt.Sprintf("2000-01-01 0%d:10:00", hour))
			digests = append(digests, g.lastDigest())
		}
		for i, digest := range digests {
			told, err := g.Deliveries.DigestDelivery(t.Context(), digest)
			if err != nil || told == nil || told.At.Sub(digest.At).Abs() > time.Minute {
				t.Errorf("%q, digest %d of %v, was told at %+v, %v", digest.Text, i, digest.At, told, err)
			}
		}
	})
}

// TestADigestKnowsWhatIsUsual: the median of those before it with the same rules, as soon as there are five of them.
func TestADigestKnowsWhatIsUsual(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which begins on 1 January 2000, 00:00 UTC
		g := newTold(t)
		daily := g.add("daily", domain.TargetRules{
			Events: []domain.EventType{domain.StageTransition, domain.StoryBlocked}, Digest: domain.DailyDigest,
		})
		usual := func() (finished, digests int) {
			t.Helper()
			finished, digests, err := g.Deliveries.Usual(t.Context(), g.lastDigest())
			if err != nil {
				t.Fatal(err)
			}
			return finished, digests
		}
		day := func(n int) {
			g.happens("alpha", domain.StageTransition, n)
			g.happens("alpha", domain.StoryBlocked, 1)
			time.Sleep(24 * time.Hour)
		}
		for _, n := range []int{9, 1, 7, 0, 12} {
			day(n)
			if finished, digests := usual(); digests != 0 {
				t.Errorf("%d are usual after %d digests", finished, digests)
			}
		}
		day(3)
		if finished, digests := usual(); finished != 7 || digests != 5 {
			t.Errorf("usual are %d of %d digests", finished, digests)
		}
		g.change(daily, func(t *domain.Target) { t.Rules.Projects = []string{"alpha"} })
		day(4)
		if _, digests := usual(); digests != 0 {
			t.Errorf("%d digests of other projects count", digests)
		}
	})
}
