package service_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/domain"
)

// until waits until a time in a zone.
func until(t *testing.T, zone, text string) {
	t.Helper()
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	at, err := time.ParseInLocation("2006-01-02 15:04:05", text, location)
	if err != nil || at.Before(time.Now()) {
		t.Fatal(at, err)
	}
	time.Sleep(time.Until(at))
}

// TestWhatQuietHoursHeldBackComesInOneMessage, also after a restart, with the alerts that still stand.
func TestWhatQuietHoursHeldBackComesInOneMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which begins on 1 January 2000, 00:00 UTC
		g := newTold(t)
		night := g.add("night", domain.TargetRules{
			Events: []domain.EventType{domain.StoryBlocked, domain.StageTransition}, Alerts: []domain.AlertKind{domain.AlertQuestion},
			Quiet: &domain.Quiet{From: "22:00", To: "07:00"},
		})
		g.add("always", blockedOnly)
		until(t, "UTC", "2000-01-01 00:10:00")
		g.happens("alpha", domain.StoryBlocked, 1)
		until(t, "UTC", "2000-01-01 07:00:02")
		want(t, "at seven", g.take("night"), "The night: 1 blocked")
		g.happens("alpha", domain.StoryBlocked, 1)
		until(t, "UTC", "2000-01-01 21:59:58")
		want(t, "by day", g.take("night"), "alpha: blocked")
		until(t, "UTC", "2000-01-01 22:00:01")
		g.happens("alpha", domain.StageTransition, 12)
		g.happens("alpha", domain.StoryBlocked, 2)
		over, still := g.asks("over by then"), g.asks("still there")
		until(t, "UTC", "2000-01-02 03:00:00")
		g.restart(time.Minute)
		if err := g.Questions.Withdraw(t.Context(), over.ID); err != nil {
			t.Fatal(err)
		}
		until(t, "UTC", "2000-01-02 06:59:58")
		want(t, "at night", g.take("night"))
		until(t, "UTC", "2000-01-02 07:00:02")
		g.mu.Lock()
		m := g.all[len(g.all)-1].message
		g.mu.Unlock()
		want(t, "in the morning", g.take("night"), "The night: 12 finished, 2 blocked, 1 question")
		var data struct {
			Text, Link string
			Counts     struct{ Events, Alerts map[string]int }
		}
		if err := json.Unmarshal(m.Data, &data); err != nil || data.Text != "The night: 12 finished, 2 blocked, 1 question" || data.Counts.Events["finished"] != 12 || data.Counts.Events["story_blocked"] != 2 || data.Counts.Alerts["question"] != 1 ||
			m.Type != "digest" || !strings.Contains(m.Text, "still there") || strings.Contains(m.Text, "over by then") || !strings.HasSuffix(m.ID, "_"+night.ID+"_digest_16") {
			t.Errorf("%+v, %v", m, err)
		}
		id, found := strings.CutPrefix(data.Link, "https://yard.example/notifications/digests/")
		record, events, err := g.Deliveries.Digest(t.Context(), id, 10)
		if err != nil || !found || record.Name != "night" || len(record.Alerts) != 1 || record.Alerts[0].Key != fmt.Sprintf("question/%d", still.ID) || len(events) != 10 || events[0].ID != 3 {
			t.Errorf("%+v, %d events, %v", record, len(events), err)
		}
		until(t, "UTC", "2000-01-02 23:00:10")
		want(t, "a night of nothing", g.take("night"))
		if got := g.take("always"); len(got) != 4 {
			t.Errorf("another target got %q", got)
		}
	})
}

// TestTheLastMomentOfQuietHoursIsToldOf: what is looked at only after it, too.
func TestTheLastMomentOfQuietHoursIsToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(500 * time.Millisecond) // no second begins as the hours end
		g := newTold(t)
		g.add("night", domain.TargetRules{Events: []domain.EventType{domain.StoryBlocked}, Quiet: &domain.Quiet{From: "22:00", To: "07:00"}})
		until(t, "UTC", "2000-01-01 06:59:59.990")
		g.happens("alpha", domain.StageTransition, 1) // the next look is a moment later
		time.Sleep(5 * time.Millisecond)
		g.happens("alpha", domain.StoryBlocked, 1)
		time.Sleep(2 * time.Second)
		want(t, "after the night", g.take("night"), "alpha: blocked")
	})
}

// TestQuietHoursAreByTheClockOfTheZone, over its changes both ways.
func TestQuietHoursAreByTheClockOfTheZone(t *testing.T) {
	for _, c := range []struct{ quiet, at, ends, span string }{
		{"22:00-07:00", "2000-03-25 23:00:00", "2000-03-26 07:00:00", "The night"},       // an hour shorter
		{"22:00-07:00", "2000-10-28 23:00:00", "2000-10-29 07:00:00", "The night"},       // an hour longer
		{"01:30-02:30", "2000-03-26 01:40:00", "2000-03-26 03:00:00", "The quiet hours"}, // there is no 02:30
		{"12:00-13:00 sat", "2000-03-25 12:10:00", "2000-03-25 13:00:00", "The quiet hours"},
		{"22:00-07:00 sat", "2000-03-26 03:10:00", "2000-03-26 07:00:00", "The night"},
		{"22:00-07:00 sun", "2000-03-26 05:10:00", "", ""}, // it began on a Saturday
	} {
		synctest.Test(t, func(t *testing.T) {
			until(t, "Europe/Vienna", c.at)
			g := newTold(t)
			hours, days, _ := strings.Cut(c.quiet, " ")
			from, to, _ := strings.Cut(hours, "-")
			q := &domain.Quiet{From: from, To: to}
			if days != "" {
				q.Days = []string{days}
			}
			g.add("one", domain.TargetRules{Events: []domain.EventType{domain.StoryBlocked}, Quiet: q, TimeZone: "Europe/Vienna"})
			time.Sleep(time.Second)
			g.happens("alpha", domain.StoryBlocked, 1)
			time.Sleep(2 * time.Second)
			if c.ends == "" {
				want(t, "not quiet", g.take("one"), "alpha: blocked")
				return
			}
			want(t, "quiet", g.take("one"))
			location, _ := time.LoadLocation("Europe/Vienna")
			end, _ := time.ParseInLocation("2006-01-02 15:04:05", c.ends, location)
			time.Sleep(time.Until(end) - time.Second)
			want(t, "still quiet", g.take("one"))
			time.Sleep(3 * time.Second)
			want(t, c.quiet, g.take("one"), c.span+": 1 blocked")
		})
	}
}

func TestADigestComesAtItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTold(t)
		rules := domain.TargetRules{Events: []domain.EventType{domain.StoryBlocked}, Alerts: []domain.AlertKind{domain.AlertQuestion}, TimeZone: "Asia/Kolkata"}
		rules.Digest = domain.HourlyDigest
		g.add("hourly", rules)
		rules.Digest, rules.DigestAt = domain.DailyDigest, "08:00"
		daily := g.add("daily", rules)
		g.happens("alpha", domain.StoryBlocked, 2)
		until(t, "UTC", "2000-01-01 00:29:58") // half past five in Kolkata
		want(t, "before the hour", g.take("hourly"))
		until(t, "UTC", "2000-01-01 00:30:02")
		want(t, "at the full hour", g.take("hourly"), "The hour: 2 blocked")
		until(t, "UTC", "2000-01-01 01:10:00")
		g.asks("Which?")
		g.happens("beta", domain.StoryBlocked, 1)
		until(t, "UTC", "2000-01-01 01:30:02")
		want(t, "an hour later", g.take("hourly"), "The hour: 1 blocked, 1 question")
		until(t, "UTC", "2000-01-01 02:29:57")
		want(t, "nothing to tell", g.take("hourly"))
		want(t, "the day", g.take("daily"))
		g.restart(10 * time.Second) // over the time at which it is due
		time.Sleep(3 * time.Second)
		want(t, "at eight", g.take("daily"), "The day: 3 blocked, 1 question")
		until(t, "UTC", "2000-01-02 12:00:00")
		want(t, "a day of nothing", g.take("daily"))
		want(t, "hours of nothing", g.take("hourly"))

		g.happens("alpha", domain.StoryBlocked, 1)
		g.change(daily, func(t *domain.Target) { t.Rules.Digest = domain.NoDigest })
		time.Sleep(3 * time.Second)
		want(t, "without digest", g.take("daily"), "alpha: blocked")
	})
}

// TestADailyDigestHasALineOfFlow about its projects, as long as there are any of them.
func TestADailyDigestHasALineOfFlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTold(t)
		for _, name := range []string{"alpha", "beta"} {
			if _, err := g.Projects.Add(t.Context(), name, "http://"+name, nil); err != nil {
				t.Fatal(err)
			}
		}
		finished := domain.TargetRules{Events: []domain.EventType{domain.StageTransition}, Digest: domain.DailyDigest}
		g.add("all", finished)
		finished.Projects = []string{"alpha", "gone"}
		g.add("alpha", finished)
		finished.Projects = []string{"gone"}
		g.add("gone", finished)
		finished.Projects, finished.Digest = nil, domain.HourlyDigest
		g.add("hourly", finished)
		g.happens("alpha", domain.StageTransition, 12)
		g.happens("beta", domain.StageTransition, 3)
		g.happens("gone", domain.StageTransition, 1)
		until(t, "UTC", "2000-01-01 08:00:02")
		const times = " stories finished in 90 days: half within 1 day, 85 % within 1 day; 0 in work."
		lines := map[string]string{"all": "\nFlow: 15" + times, "alpha": "\nFlow: 12" + times, "gone": "", "hourly": ""}
		for _, m := range g.posts() {
			line, known := lines[m.target]
			var data struct{ Text string }
			if err := json.Unmarshal(m.message.Data, &data); err != nil {
				t.Fatal(err)
			}
			if text := m.message.Title + line; !known || m.message.Text != text || data.Text != text {
				t.Errorf("%s: %q, to programs %q, want %q", m.target, m.message.Text, data.Text, text)
			}
			delete(lines, m.target)
		}
		if len(lines) > 0 {
			t.Errorf("no digest for %v", lines)
		}
	})
}

// TestADigestWaitsForTheEndOfQuietHours.
func TestADigestWaitsForTheEndOfQuietHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTold(t)
		g.add("one", domain.TargetRules{
			Events: []domain.EventType{domain.StoryBlocked}, Digest: domain.HourlyDigest, Quiet: &domain.Quiet{From: "00:30", To: "07:15"},
		})
		time.Sleep(time.Minute)
		g.happens("alpha", domain.StoryBlocked, 1)
		until(t, "UTC", "2000-01-01 07:14:59")
		want(t, "at night", g.take("one"))
		until(t, "UTC", "2000-01-01 07:15:02")
		want(t, "at its end", g.take("one"), "The quiet hours: 1 blocked")
	})
}

// TestARulesChangeTellsNothingThatStoodBefore.
func TestAChangeOfRulesTellsNothingThatStoodBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTold(t)
		one := g.add("one", blockedOnly)
		g.asks("before")
		time.Sleep(3 * time.Second)
		g.change(one, func(t *domain.Target) { t.Rules.Alerts = []domain.AlertKind{domain.AlertQuestion} })
		time.Sleep(3 * time.Second)
		want(t, "what stood", g.take("one"))
		g.asks("after")
		time.Sleep(3 * time.Second)
		want(t, "what is new", g.take("one"), "Switchyard: asks")
	})
}

// TestADeviceEndsWithItsOwnersRight: a token's for good, somebody's who logs in until they do so again.
func TestADeviceEndsWithItsOwnersRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTold(t)
		token, _, err := g.Access.CreateToken(t.Context(), domain.NamedToken{Name: "guest", Role: domain.RoleViewer}, nil)
		if err != nil {
			t.Fatal(err)
		}
		login := domain.Actor{Who: "zoe", Account: "login https://id.example zoe", Role: domain.RoleViewer}
		session, err := g.Access.BeginSession(t.Context(), login, "", "")
		if err != nil {
			t.Fatal(err)
		}
		add := func(name string, actor domain.Actor) {
			d := domain.PushDevice{Endpoint: "https://push.example/" + name}
			if _, err := g.Push.Add(domain.WithActor(t.Context(), &actor), name, d, domain.TargetRules{Alerts: []domain.AlertKind{domain.AlertQuestion}}); err != nil {
				t.Fatal(err)
			}
		}
		add("token", domain.Actor{Account: "token " + token.ID, Role: domain.RoleViewer})
		add("login", login)
		time.Sleep(2 * time.Second)
		g.asks("Which?")
		time.Sleep(2 * time.Second)
		want(t, "a token's", g.take("token"), "Switchyard: asks")
		want(t, "a login's", g.take("login"), "Switchyard: asks")
		if err := errors.Join(g.Access.RevokeToken(t.Context(), token.ID), g.Access.EndSession(t.Context(), session.ID)); err != nil {
			t.Fatal(err)
		}
		g.asks("And which?")
		time.Sleep(time.Minute)
		want(t, "a revoked token's", g.take("token"))
		want(t, "an ended session's", g.take("login"))
		if _, others, err := g.Push.Devices(domain.WithActor(t.Context(), &domain.Actor{Account: "admin", Role: domain.RoleAdmin})); err != nil || len(others) != 1 || others[0].Name != "login" {
			t.Errorf("%+v, %v", others, err)
		}
		if _, err := g.Access.BeginSession(t.Context(), login, "", ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		want(t, "logged in again", g.take("login"), "Switchyard: asks")
	})
}
