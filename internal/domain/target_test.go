package domain_test

import (
	"slices"
	"testing"
	"time"

	"switchyard/internal/domain"
)

// TestPausesAfterFailures: the last one repeats, and a success ends them.
func TestPausesAfterFailures(t *testing.T) {
	var p domain.TargetProgress
	now := time.Unix(1_000_000, 0)
	failed := domain.SendResult{Status: 500, Err: domain.Errorf(domain.BadGateway, "500")}
	var pauses []time.Duration
	for range 9 {
		if p.Apply(failed, now) {
			t.Fatal("a failure is done with")
		}
		pauses = append(pauses, p.NextAt.Sub(now))
		now = p.NextAt
	}
	day := 24 * time.Hour
	if want := []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, day, day, day}; !slices.Equal(pauses, want) {
		t.Errorf("%v", pauses)
	}
	if p.FailingAt != time.Unix(1_000_000, 0) || p.Attempts != 9 {
		t.Errorf("%+v", p)
	}
	if !p.Apply(domain.SendResult{Status: 200, Took: time.Second}, now) || p.Attempts != 0 || !p.FailingAt.IsZero() || !p.NextAt.IsZero() || p.SentMS != 1000 {
		t.Errorf("%+v", p)
	}
}

func TestWhenADigestIsDue(t *testing.T) {
	at := func(zone, text string) time.Time {
		location, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := time.ParseInLocation("2006-01-02 15:04:05", text, location)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	for _, c := range []struct {
		rules     domain.TargetRules
		now, want time.Time
	}{
		{domain.TargetRules{Digest: domain.HourlyDigest, TimeZone: "UTC"}, at("UTC", "2026-05-01 10:59:59"), at("UTC", "2026-05-01 10:00:00")},
		{domain.TargetRules{Digest: domain.HourlyDigest, TimeZone: "Asia/Kolkata"}, at("UTC", "2026-05-01 10:29:59"), at("UTC", "2026-05-01 09:30:00")},
		{domain.TargetRules{Digest: domain.DailyDigest, DigestAt: "08:00", TimeZone: "Europe/Vienna"}, at("Europe/Vienna", "2026-03-29 07:59:59"), at("Europe/Vienna", "2026-03-28 08:00:00")},
		{domain.TargetRules{Digest: domain.DailyDigest, DigestAt: "08:00", TimeZone: "Europe/Vienna"}, at("Europe/Vienna", "2026-03-29 08:00:00"), at("Europe/Vienna", "2026-03-29 08:00:00")},
		{domain.TargetRules{Digest: domain.DailyDigest, DigestAt: "08:00", TimeZone: "Europe/Vienna"}, at("UTC", "2026-10-25 06:59:59"), at("Europe/Vienna", "2026-10-24 08:00:00")},
	} {
		if got := c.rules.LastDigest(c.now.In(c.rules.Zone())); !got.Equal(c.want) {
			t.Errorf("%+v at %v: %v, want %v", c.rules, c.now, got, c.want)
		}
	}
	// A time that the clock shows twice, or not at all, comes once.
	for _, day := range []string{"2026-03-29", "2026-10-25"} {
		r := domain.TargetRules{Digest: domain.DailyDigest, DigestAt: "02:30", TimeZone: "Europe/Vienna"}
		times := map[int64]bool{}
		for now := at("Europe/Vienna", day+" 00:00:00"); now.Before(at("Europe/Vienna", day+" 12:00:00")); now = now.Add(time.Minute) {
			times[r.LastDigest(now.In(r.Zone())).Unix()] = true
		}
		if len(times) != 2 { // yesterday's and today's
			t.Errorf("%s: %d times", day, len(times))
		}
	}
}
