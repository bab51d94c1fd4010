package store_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/store/sqlite"
)

func usd(m domain.Micros) *domain.Micros { return &m }

// sums returns the sums of all calls by a part of theirs.
func sums(t *testing.T, db database, times []time.Time, part func(domain.CallSum) string) map[string]domain.CostSum {
	t.Helper()
	all := map[string]domain.CostSum{}
	err := db.EachCost(t.Context(), times, nil, func(c domain.CallSum) {
		sum := all[part(c)]
		sum.Plus(c.CostSum)
		all[part(c)] = sum
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestCallsAreStoredOnce(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		ctx, at := t.Context(), time.UnixMilli(1_800_000_000_000)
		call := func(key, story, model string, cost *domain.Micros, later time.Duration) domain.Call {
			return domain.Call{
				Key: key, At: at.Add(later), Client: "codex", Session: "s\x00" + story, Model: model, Project: "alpha", StoryID: story,
				Tokens: domain.Tokens{Input: 1, CacheRead: 2, CacheCreation: 3, Output: 4}, Stated: cost, Cost: cost, Holder: "h", By: "builder",
			}
		}
		calls := []domain.Call{
			call("1", "1_pay", "m", usd(5), 0), call("1", "1_pay", "m", usd(5), 0), call("2", "1_pay", "m", nil, time.Hour),
			call("3", "1_pay", "n", usd(7), 25*time.Hour), call("4", "", "m", usd(1), 0),
		}
		for n, want := range []int{4, 0, 1} {
			if n == 2 {
				calls = append(calls, call("5", "2_cart", "m", usd(math.MaxInt32), 0))
			}
			if added, err := db.AddCalls(ctx, calls); err != nil || len(added) != want {
				t.Fatalf("%d. time: %d, %v", n, len(added), err)
			}
		}
		models, sessions, err := db.StoryModels(ctx, "alpha", "1_pay")
		if err != nil || sessions != 1 || len(models) != 2 {
			t.Fatalf("%+v, %d, %v", models, sessions, err)
		}
		for _, m := range models {
			want := map[string]string{
				"m": "{0.000005 {2 4 6 8} 2 1} 1800000000000 1800003600000", "n": "{0.000007 {1 2 3 4} 1 0} 1800090000000 1800090000000",
			}[m.Name]
			if got := fmt.Sprint(m.CostSum, m.First.UnixMilli(), m.Last.UnixMilli()); got != want {
				t.Errorf("%s: %s, want %s", m.Name, got, want)
			}
		}
		days := []time.Time{at, at.Add(24 * time.Hour), at.Add(48 * time.Hour)}
		byDay := sums(t, db, days, func(c domain.CallSum) string { return fmt.Sprint(c.Span) })
		if byDay["0"].USD != 5+1+math.MaxInt32 || byDay["0"].Unpriced != 1 || byDay["1"].USD != 7 {
			t.Errorf("by day %v", byDay)
		}
		wantSpent := func(what, want string, spent []domain.Spending, err error) {
			t.Helper()
			got := fmt.Sprint(err)
			for _, s := range spent {
				got += fmt.Sprint(" ", s.StoryKey, " ", s.USD, " ", s.Passed.UnixMilli())
			}
			if got != "<nil> "+want {
				t.Errorf("%s: %s, want %s", what, got, want)
			}
		}
		const pay, cart = "alpha/1_pay 0.000012 1800090000000", "alpha/2_cart 2147.483647 1800000000000"
		spent, err := db.StoriesOver(ctx, 12)
		wantSpent("what a story costs is not more than that", cart, spent, err)
		spent, err = db.StoriesOver(ctx, 5)
		slices.SortFunc(spent, func(a, b domain.Spending) int { return strings.Compare(a.ID, b.ID) })
		wantSpent("two stories", pay+" "+cart, spent, err)
		for limit, passed := range map[domain.Micros]time.Time{math.MaxInt32: at, math.MaxInt32 + 6: {}} {
			spent, err = db.SpentBetween(ctx, at, at.Add(time.Hour), limit)
			wantSpent("a project", fmt.Sprint("alpha/ 2147.483653 ", passed.UnixMilli()), spent, err)
		}
	})
}

func TestPricesCountForWhatIsKept(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		ctx, at := t.Context(), time.UnixMilli(1_800_000_000_000)
		var calls []domain.Call
		for n := range 10 {
			c := domain.Call{Key: fmt.Sprint(n), At: at.Add(time.Duration(n) * time.Hour), Client: "codex", Model: "m", Project: "alpha", StoryID: "1_pay", Tokens: domain.Tokens{Input: 1}}
			if n%5 == 4 {
				c.Stated, c.Cost = usd(1000), usd(1000)
			}
			calls = append(calls, c)
		}
		if _, err := db.AddCalls(ctx, calls); err != nil {
			t.Fatal(err)
		}
		want := func(what string, usd domain.Micros, unpriced int64) {
			t.Helper()
			models, _, err := db.StoryModels(ctx, "alpha", "1_pay")
			if err != nil || len(models) != 1 || models[0].USD != usd || models[0].Unpriced != unpriced || models[0].Calls != 10 {
				t.Errorf("%s: %+v, %v; want %v, %d without a price", what, models, err, usd, unpriced)
			}
		}
		reprice := func(input int64) {
			t.Helper()
			if err := db.Reprice(ctx, map[string]domain.Price{"m": {Input: input}, "other": {}}); err != nil {
				t.Fatal(err)
			}
		}
		want("without prices", 2000, 8)
		reprice(400_000)
		want("at under half a millionth a call", 2000, 0)
		reprice(500_000)
		want("at half a millionth a call", 2008, 0)
		if removed, err := db.RemoveCalls(ctx, 0, at.Add(5*time.Hour), 100); err != nil || removed != 5 {
			t.Fatalf("removed %d, %v", removed, err)
		}
		want("after the first were removed", 2008, 0)
		reprice(3_000_000)
		want("the others at another price", 2004+4*3, 0)
		if err := db.Reprice(ctx, nil); err != nil {
			t.Fatal(err)
		}
		want("the others without one", 2004, 4)
		kept := sums(t, db, []time.Time{at, at.Add(10 * time.Hour)}, func(domain.CallSum) string { return "all" })["all"]
		if kept.USD != 1000 || kept.Unpriced != 4 || kept.Calls != 5 {
			t.Errorf("what is kept costs %+v", kept)
		}
	})
}

func TestClaimsThatEndedAreKnownForADay(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		ctx, now := t.Context(), time.UnixMilli(1_000_000)
		if err := db.AddProjects(ctx, nil, "", domain.Project{Name: "alpha", URL: "http://a"}); err != nil {
			t.Fatal(err)
		}
		claims := map[string]domain.Claim{}
		for _, id := range []string{"ended", "passed", "undone", "removed"} {
			c := domain.Claim{Project: "alpha", StoryID: id, Holder: "h", Since: now}
			if _, _, err := db.AddClaim(ctx, &domain.AuditEntry{}, c); err != nil {
				t.Fatal(err)
			}
			claims[id] = c
		}
		passed := claims["passed"]
		passed.Holder = "other"
		for _, err := range []error{
			db.EndClaim(ctx, nil, claims["ended"]), db.PassClaim(ctx, nil, claims["passed"], passed),
			db.UndoClaim(ctx, domain.AuditEntry{ID: 3}, claims["undone"]), db.RemoveProject(ctx, nil, "alpha"),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		for holder, want := range map[string]int{"h": 3, "other": 1, "nobody": 0} {
			all, err := db.HeldClaims(ctx, []string{holder})
			held := all[holder]
			if err != nil || len(held) != want {
				t.Errorf("%s: %v, %v", holder, held, err)
			}
			for _, c := range held {
				if !c.Since.Equal(now) || c.Ended.IsZero() || c.ID == "undone" {
					t.Errorf("%s: %v", holder, c)
				}
			}
		}
	})
}

func BenchmarkAddCalls(b *testing.B) {
	db, err := sqlite.Open(b.Context(), b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	for n := 0; b.Loop(); n++ {
		_, err := db.AddCalls(b.Context(), []domain.Call{{
			Key: fmt.Sprint(n), At: time.Now(), Project: fmt.Sprint("project-", n%200), StoryID: fmt.Sprint("story-", n%5),
			Holder: fmt.Sprint("agent-", n%1000), Client: "claude", Session: "s", Model: "m", Cost: usd(5), Stated: usd(5),
		}})
		if err != nil {
			b.Fatal(err)
		}
	}
}
