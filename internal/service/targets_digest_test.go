package service_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/domain"
)

// TestADigestKnowsWhatIsUsual: the median of those before it with the same rules, as soon as there are five of them.
func TestADigestKnowsWhatIsUsual(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which begins on 1 January 2000, 00:00 UTC
		g := newTold(t)
		daily := g.add("daily", domain.TargetRules{
			Events: []domain.EventType{domain.StageTransition, domain.StoryBlocked}, Digest: domain.DailyDigest,
		})
		usual := func() (finished, digests int) {
			t.Helper()
			g.mu.Lock()
			text := g.all[len(g.all)-1].message.Link
			g.mu.Unlock()
			digest, _, err := g.Deliveries.Digest(t.Context(), text[strings.LastIndexByte(text, '/')+1:], 1)
			if err == nil {
				finished, digests, err = g.Deliveries.Usual(t.Context(), digest)
			}
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
