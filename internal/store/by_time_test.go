package store_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"switchyard/internal/domain"
)

// TestEventsAreReadInTheOrderOfTime compares pages by time with those of sorting all events. Projects bring their
// history late, and many events have the same time.
func TestEventsAreReadInTheOrderOfTime(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		var reads []domain.FeedRead
		for n := range 300 {
			at := []int{n, 1000 - n, 500}[n%3]
			reads = append(reads, feedRead([]string{"alpha", "beta"}[n%2], eventRecord(t, fmt.Sprintf(
				`{"type":"%s","story_id":"%d_common","story_name":"Common %d","reason":"because of %d","timestamp_ms":%d}`,
				[]string{"story_blocked", "merge_failure"}[n/2%2], n, n, n%7, at))))
		}
		at := map[int64]int64{}
		for _, e := range appendEvents(t, db, reads...) {
			at[e.ID] = e.At.UnixMilli()
		}
		for _, q := range []domain.EventQuery{
			{},
			{Project: "beta"},
			{Type: domain.MergeFailure},
			{Type: domain.MergeFailure, Project: "alpha"},
			{Text: "because of 3"},
			{Text: "because of 3", Project: "alpha", Type: domain.StoryBlocked},
			{Text: "17"},
			{Text: "bet"},
			{Text: "zz"},
			{Text: "because of 1", Type: domain.MergeFailure},
			{Type: "none"},
		} {
			for _, window := range [][2]int64{{0, 0}, {100, 500}, {500, 501}, {2000, 0}} {
				want := selected(domain.EventQuery{Project: q.Project, Type: q.Type, Text: q.Text, Backward: true}, reads)
				want = slices.DeleteFunc(want, func(id int64) bool {
					return at[id] < window[0] || window[1] > 0 && at[id] >= window[1]
				})
				slices.SortFunc(want, func(a, b int64) int { return cmp.Or(cmp.Compare(at[b], at[a]), cmp.Compare(b, a)) })
				q.ByTime, q.Limit, q.From, q.To = true, 17, window[0], window[1]
				q.Before, q.BeforeAt = 0, 0
				for more := true; more; {
					page, err := db.Events(t.Context(), q)
					if err != nil {
						t.Fatal(err)
					}
					n := min(len(want), q.Limit)
					if got := ids(page.Events); !slices.Equal(got, want[:n]) || page.More != (len(want) > n) {
						t.Fatalf("%+v: %v, more: %t, want %v", q, got, page.More, want[:n])
					}
					if want, more = want[n:], page.More; more {
						last := page.Events[n-1]
						q.Before, q.BeforeAt = last.ID, last.At.UnixMilli()
					}
				}
			}
		}
	})
}
