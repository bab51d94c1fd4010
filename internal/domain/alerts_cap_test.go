package domain_test

import (
	"fmt"
	"testing"
	"time"

	"switchyard/internal/domain"
)

func TestAtMost200AlertsAreListedAndAllAreCounted(t *testing.T) {
	var list []domain.Alert
	for i := range 1000 {
		a := domain.Alert{Kind: domain.AlertBlocked, Project: fmt.Sprint("p", i%2), Story: &domain.Item{StoryID: fmt.Sprint(i)}, Since: time.UnixMilli(int64(1000 - i))}
		if i%4 == 0 {
			a.Acknowledged = &domain.Acknowledgement{}
		}
		list = append(list, a)
	}
	a := domain.NewAlerts(list)
	if len(a.Items) != domain.MaxAlerts || a.More != 800 || a.Open != 750 || a.ByProject["p0"] != 250 || a.ByProject["p1"] != 500 {
		t.Errorf("%d items, %d more, %d open, by project %v", len(a.Items), a.More, a.Open, a.ByProject)
	}
	if a.Items[0].Story.StoryID != "999" || a.Items[0].Acknowledged != nil {
		t.Errorf("first is %+v", a.Items[0])
	}
	keys := map[string]bool{}
	for _, alert := range a.Items {
		keys[alert.Key()] = true
	}
	if len(keys) != domain.MaxAlerts {
		t.Errorf("%d keys of %d alerts", len(keys), domain.MaxAlerts)
	}
}
