package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"switchyard/internal/domain"
)

func aTarget(id string) domain.Target {
	return domain.Target{
		ID: id, Name: "target " + id, URL: "https://hooks.example/" + domain.Secret(id), Secret: "whsec_", Enabled: true, CreatedAt: time.UnixMilli(1000),
		Rules:    domain.TargetRules{Events: []domain.EventType{"story_blocked"}, Digest: domain.NoDigest, DigestAt: "08:00", TimeZone: "UTC", Quiet: &domain.Quiet{From: "22:00", To: "07:00"}},
		Progress: domain.TargetProgress{Position: 3, Left: map[string]int64{"stuck/a": 7}},
	}
}

func messageOf(id string) domain.Message {
	return domain.Message{ID: id, Type: "story_blocked", At: time.UnixMilli(5000).UTC(), Data: json.RawMessage(`{"x":"\u0000"}`), Title: "A", Text: "B"}
}

func TestATargetIsStoredWithWhatWaitsForIt(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		ctx := t.Context()
		want := aTarget("a")
		if err := db.AddTarget(ctx, &domain.AuditEntry{At: time.UnixMilli(1), Who: "me"}, want); err != nil {
			t.Fatal(err)
		}
		all, err := db.Targets(ctx)
		if err != nil || len(all) != 1 || fmt.Sprintf("%+v", all[0].Rules.Quiet) != fmt.Sprintf("%+v", want.Rules.Quiet) || all[0].URL != want.URL ||
			all[0].Progress.Position != 3 || all[0].Progress.Left["stuck/a"] != 7 || !all[0].Enabled || !all[0].CreatedAt.Equal(want.CreatedAt) {
			t.Fatalf("%+v, %v", all, err)
		}
		save := domain.TargetSave{
			Target: "a", Progress: domain.TargetProgress{Position: 9, Attempts: 2, Error: "no", FailingAt: time.UnixMilli(8000)},
			Queued: []domain.QueuedMessage{{After: 9, Message: messageOf("late")}, {After: 4, Message: messageOf("early")}},
			Digest: &domain.DigestRecord{ID: "d", Target: "a", Name: "n", At: time.UnixMilli(2000), After: 3, Upto: 9, DigestContent: domain.DigestContent{Text: "2 blocked", Counts: map[string]int{"blocked": 2}}},
		}
		if err := db.SaveTargets(ctx, 0, []domain.TargetSave{{Target: "removed meanwhile", Queued: save.Queued}, save}); err != nil {
			t.Fatal(err)
		}
		queued, err := db.QueuedMessages(ctx, "a", 10)
		if err != nil || len(queued) != 2 || queued[0].Message.ID != "early" || queued[1].After != 9 || string(queued[0].Data) != `{"x":"\u0000"}` {
			t.Fatalf("%+v, %v", queued, err)
		}
		if counts, err := db.CountQueued(ctx); err != nil || len(counts) != 1 || counts["a"] != 2 {
			t.Errorf("%v, %v", counts, err)
		}
		if all, err = db.Targets(ctx); err != nil || all[0].Progress.Position != 9 || all[0].Progress.Attempts != 2 || all[0].Progress.Left != nil {
			t.Errorf("%+v, %v", all, err)
		}
		if g, err := db.Digest(ctx, "d"); err != nil || g.Upto != 9 || g.Counts["blocked"] != 2 {
			t.Errorf("%+v, %v", g, err)
		}
		if list, err := db.Digests(ctx, "a", time.UnixMilli(2000), 3); err != nil || len(list) != 0 {
			t.Errorf("before it: %+v, %v", list, err)
		}
		if list, err := db.Digests(ctx, "a", time.UnixMilli(2001), 3); err != nil || len(list) != 1 {
			t.Errorf("%+v, %v", list, err)
		}

		for i := range domain.MaxDeliveries + 30 {
			d := domain.Delivery{At: time.UnixMilli(int64(i) * 1000), MessageID: fmt.Sprint(i), Attempt: 1, Status: 200, Took: 5 * time.Millisecond}
			m := messageOf(d.MessageID)
			if d.Message = &m; i%10 == 9 {
				d.Message, d.Status, d.Error = nil, 500, "500 \x00"
			}
			if err := db.SaveTargets(ctx, 0, []domain.TargetSave{{Target: "a", Progress: save.Progress, Delivery: &d, Done: queued[0].ID}}); err != nil {
				t.Fatal(err)
			}
		}
		list, err := db.Deliveries(ctx, "a", 1000)
		if err != nil || len(list) != domain.MaxDeliveries || list[0].MessageID != "229" || list[0].Error != "500 " || list[1].Status != 200 || list[1].Took != 5*time.Millisecond {
			t.Fatalf("%d, %+v, %v", len(list), list[0], err)
		}
		hours, err := db.DeliveryHours(ctx, time.UnixMilli(0))
		if err != nil || len(hours) != 1 || hours[0].Sent != 207 || hours[0].Failed != 23 {
			t.Errorf("%+v, %v", hours, err)
		}

		n := 0
		if err := db.ResendLast(ctx, nil, "a", func() string { n++; return fmt.Sprintf("again %d", n) }); err != nil {
			t.Fatal(err)
		}
		queued, err = db.QueuedMessages(ctx, "a", 20)
		if err != nil || len(queued) != 11 || queued[0].Message.ID != "again 1" || queued[9].Message.ID != "again 10" || queued[10].Message.ID != "late" {
			t.Errorf("%+v, %v", queued, err)
		}

		if err := db.RemoveDigests(ctx, 0, time.UnixMilli(3_600_000), time.UnixMilli(3000)); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Digest(ctx, "d"); domain.CodeOf(err) != domain.NotFound {
			t.Error(err)
		}
		if err := db.RemoveTarget(ctx, nil, "a"); err != nil {
			t.Fatal(err)
		}
		if queued, err = db.QueuedMessages(ctx, "a", 20); err != nil || len(queued) > 0 {
			t.Errorf("%+v, %v", queued, err)
		}
		for what, err := range map[string]error{
			"remove": db.RemoveTarget(ctx, nil, "a"), "resend": db.ResendLast(ctx, nil, "a", func() string { return "" }),
		} {
			if domain.CodeOf(err) != domain.NotFound {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

func TestTheListOfAlertsIsStored(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		var all []domain.AlertRecord
		var keys []string
		for n := range 1200 {
			all = append(all, domain.AlertRecord{Key: fmt.Sprint("blocked/", n), Kind: domain.AlertBlocked, Project: "alpha", SinceMS: 5, Seq: int64(n + 1)})
			keys = append(keys, all[n].Key)
		}
		if err := db.SaveAlerts(t.Context(), 0, all, nil); err != nil {
			t.Fatal(err)
		}
		again := all[1150]
		again.SinceMS, again.Seq = 6, 5000
		if err := db.SaveAlerts(t.Context(), 0, []domain.AlertRecord{again}, keys[:1100]); err != nil {
			t.Fatal(err)
		}
		got, err := db.NotedAlerts(t.Context())
		if want := append(append(slices.Clone(all[1100:1150]), all[1151:]...), again); err != nil || !slices.Equal(got, want) {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// TestAChangeByPeopleStands: what the leader stores meanwhile neither undoes it nor disables the target.
func TestABrowserThatIsGoneIsRemoved(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		ctx := t.Context()
		device, hook := aTarget("a"), aTarget("b")
		device.Owner = "somebody"
		for _, target := range []domain.Target{device, hook} {
			if err := db.AddTarget(ctx, &domain.AuditEntry{At: time.UnixMilli(1), Who: "me"}, target); err != nil {
				t.Fatal(err)
			}
		}
		err := db.SaveTargets(ctx, 0, []domain.TargetSave{{Target: "a", Disable: true}, {Target: "b", Disable: true}, {Target: "c", Disable: true}})
		if err != nil {
			t.Fatal(err)
		}
		if all, err := db.Targets(ctx); err != nil || len(all) != 1 || all[0].ID != "b" || all[0].Enabled {
			t.Errorf("%+v, %v", all, err)
		}
		first, err := db.PushKeys(ctx)
		again, errAgain := db.PushKeys(ctx)
		if err != nil || errAgain != nil || first != again || len(first.Public) != 87 || len(first.Private.Reveal()) != 43 {
			t.Errorf("keys %v %v, %v %v", first, again, err, errAgain)
		}
	})
}

func TestAChangeByPeopleStands(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		ctx := context.Background()
		if err := db.AddTarget(ctx, nil, aTarget("a")); err != nil {
			t.Fatal(err)
		}
		now, err := db.ChangeTarget(ctx, "a", func(t *domain.Target) (*domain.AuditEntry, error) {
			t.Name, t.URL = "other", "https://other.example/"
			return nil, nil
		})
		if err != nil || now.Revision != 1 {
			t.Fatalf("%+v, %v", now, err)
		}
		disable := func(revision int64) domain.Target {
			t.Helper()
			if err := db.SaveTargets(ctx, 0, []domain.TargetSave{{Target: "a", Disable: true, Revision: revision, Progress: domain.TargetProgress{Position: 4, Gone: true}}}); err != nil {
				t.Fatal(err)
			}
			all, err := db.Targets(ctx)
			if err != nil || len(all) != 1 {
				t.Fatal(all, err)
			}
			return all[0]
		}
		if got := disable(0); !got.Enabled || got.Name != "other" || got.Progress.Position != 4 {
			t.Errorf("an answer to what was before: %+v", got)
		}
		if got := disable(1); got.Enabled || got.URL != "https://other.example/" {
			t.Errorf("%+v", got)
		}
		if _, err := db.ChangeTarget(ctx, "none", nil); domain.CodeOf(err) != domain.NotFound {
			t.Error(err)
		}
	})
}
