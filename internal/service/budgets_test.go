package service_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/domain"
)

// TestADaysBudgetIsForADay: of its time zone. An acknowledgement stands while more is spent, and ends with the day.
func TestADaysBudgetIsForADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTold(t)
		zone, err := time.LoadLocation("Asia/Kathmandu")
		if err != nil {
			t.Fatal(err)
		}
		g.budgets = domain.Budgets{Day: 10_000_000, Zone: zone}
		g.restart(0)
		if _, err := g.Projects.Add(t.Context(), "alpha", "http://alpha", nil); err != nil {
			t.Fatal(err)
		}
		g.add("phone", domain.TargetRules{Alerts: []domain.AlertKind{domain.AlertBudget}})
		time.Sleep(time.Second)
		n := 0
		spend := func(usd domain.Micros) {
			t.Helper()
			n++
			_, err := g.Costs.RecordOne(t.Context(), domain.Call{Key: fmt.Sprint(n), Client: "mine", Model: "m", Stated: &usd, Project: "alpha"})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
		}
		over := func(what string, open, acknowledged int) (since time.Time) {
			t.Helper()
			got := g.Alerts.List(t.Context())
			if got.Open != open || len(got.Acknowledged) != acknowledged {
				t.Errorf("%s: %+v", what, got.Items)
			}
			for _, a := range got.Items {
				since = a.Since
			}
			return since
		}
		spend(6_000_000)
		spend(4_000_000)
		over("a budget that is reached", 0, 0)
		passed := time.Now()
		spend(1)
		if since := over("one that is passed", 1, 0); !since.Equal(passed.Truncate(time.Millisecond)) {
			t.Errorf("passed at %v, want %v", since, passed)
		}
		const said = "alpha: over budget"
		want(t, "phone", g.take("phone"), said)
		if err := g.Alerts.Acknowledge(t.Context(), "over_budget/alpha", 0); err != nil {
			t.Fatal(err)
		}
		spend(3_000_000)
		over("more", 0, 1)
		g.restart(time.Minute)
		if since := over("after a restart", 0, 1); !since.Equal(passed.Truncate(time.Millisecond)) {
			t.Errorf("after a restart it passed at %v, want %v", since, passed)
		}
		year, month, day := time.Now().In(zone).Date()
		time.Sleep(time.Until(time.Date(year, month, day+1, 0, 0, 0, 0, zone)))
		over("the day is over", 0, 0)
		spend(9_000_000)
		over("another day", 0, 0)
		spend(2_000_000)
		over("another day's budget", 1, 0)
		want(t, "phone", g.take("phone"), said)
	})
}

// TestADigestSaysWhatCallsHaveCostMeanwhile, of the projects that it is about.
func TestADigestSaysWhatCallsHaveCostMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which begins on 1 January 2000, 00:00 UTC
		g := newTold(t)
		for _, name := range []string{"alpha", "beta"} {
			if _, err := g.Projects.Add(t.Context(), name, "http://"+name, nil); err != nil {
				t.Fatal(err)
			}
		}
		g.add("hourly", domain.TargetRules{
			Events: []domain.EventType{domain.StoryBlocked}, Digest: domain.HourlyDigest, Projects: []string{"alpha"},
		})
		spend := func(project, id string, usd domain.Micros) {
			t.Helper()
			c := domain.Call{Key: project + id, Client: "mine", Model: "m", Stated: &usd, Project: project, StoryID: id}
			if _, err := g.Costs.RecordOne(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		spend("alpha", "old", 9_000_000)
		until(t, "UTC", "2000-01-01 01:10:00")
		spend("alpha", "7_pay", 3_000_000)
		spend("alpha", "8_cart", 1_000_000)
		spend("beta", "9_other", 5_000_000)
		g.happens("alpha", domain.StoryBlocked, 1)
		until(t, "UTC", "2000-01-01 02:10:00")
		if text := g.posts()[0].message.Text; !strings.HasSuffix(text, "\nCost: $4.00 at list price, $3.00 of it for 7_pay") {
			t.Errorf("%q", text)
		}
		for day := 2; day < 14; day++ {
			spend("alpha", fmt.Sprint(day, "_story"), 2_000_000)
			until(t, "UTC", fmt.Sprintf("2000-01-%02d 01:10:00", day))
		}
		spend("alpha", "last_story", 2_000_000)
		g.happens("alpha", domain.StoryBlocked, 2)
		until(t, "UTC", "2000-01-13 02:10:00")
		posts := g.posts()
		if text := posts[len(posts)-1].message.Text; !strings.HasSuffix(text, "; a day usually costs $2.00") {
			t.Errorf("%q", text)
		}
	})
}
