package views_test

import (
	"testing"
	"time"
	_ "time/tzdata" // small systems have no time zones

	"switchyard/views"
)

// TestTheLastHourHasABarWhenClocksGoBack: two hours have the same name then.
func TestTheLastHourHasABarWhenClocksGoBack(t *testing.T) {
	for _, name := range []string{"Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		for now := time.Date(2026, 1, 1, 0, 10, 0, 0, zone); now.Year() == 2026; now = now.Add(30 * time.Minute) {
			from := views.CountFrom(now)
			if told := now.Sub(from); told < (views.CountedHours-1)*time.Hour || told >= views.CountedHours*time.Hour {
				t.Errorf("at %v the bars begin %v ago", now, told)
			}
		}
	}
}
