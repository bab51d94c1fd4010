package service_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/service"
)

func TestEventsAreToldOneByOneFromTheTimeOfTheTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTold(t)
		g.happens("alpha", domain.StoryBlocked, 3)
		all := g.add("all", blockedOnly)
		g.add("beta", domain.TargetRules{Events: []domain.EventType{domain.StoryBlocked, domain.MergeFailure}, Projects: []string{"beta"}})
		g.add("none", domain.TargetRules{})
		time.Sleep(time.Second)
		g.happens("alpha", domain.StoryBlocked, 2)
		g.happens("beta", domain.MergeFailure, 1)
		g.happens("beta", domain.StoryBlocked, 1)
		g.happens("alpha", domain.StageTransition, 500)
		time.Sleep(time.Second)
		last := g.posts()[len(g.posts())-1].message
		var ids []string
		for _, m := range g.posts() {
			if m.target == "all" {
				_, id, _ := strings.Cut(m.message.ID, "_")
				ids = append(ids, id)
			}
		}
		want(t, "ids", ids, all.ID+"_4", all.ID+"_5", all.ID+"_7")
		want(t, "all", g.take("all"), "alpha: blocked", "alpha: blocked", "beta: blocked")
		want(t, "beta", g.take("beta"), "beta: merge failed", "beta: blocked")
		want(t, "none", g.take("none"))
		var data map[string]any
		if err := json.Unmarshal(last.Data, &data); err != nil || data["id"] != 7.0 || data["project"] != "beta" || last.Type != "story_blocked" || !strings.HasPrefix(last.Link, "https://yard.example/projects/beta/stories/") {
			t.Errorf("%+v, %v", last, err)
		}
		list, err := g.Deliveries.List(t.Context(), all.ID, 10)
		if err != nil || len(list) != 3 || list[0].Attempt != 1 || list[0].Error != "" {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

func TestATargetMayBeToldOfFinishedStoriesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTold(t)
		g.add("finished", domain.TargetRules{Events: []domain.EventType{domain.Finished}})
		g.add("both", domain.TargetRules{Events: []domain.EventType{domain.Finished, domain.StageTransition}})
		g.add("digest", domain.TargetRules{Events: []domain.EventType{domain.Finished}, Digest: domain.HourlyDigest})
		time.Sleep(time.Second)
		g.to = "3_qa"
		g.happens("alpha", domain.StageTransition, 1)
		g.to = "5_done"
		g.happens("alpha", domain.StageTransition, 1)
		g.happens("alpha", domain.StoryBlocked, 1)
		time.Sleep(time.Hour + time.Minute)
		want(t, "finished", g.take("finished"), "alpha: Current → Done")
		want(t, "both", g.take("both"), "alpha: Current → QA", "alpha: Current → Done")
		want(t, "digest", g.take("digest"), "The hour: 1 finished")
	})
}

// TestAFailingTargetIsTriedAgainByTheTable, in order, and others are told of that.
func TestAFailingTargetIsTriedAgainByTheTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTold(t)
		failing := g.add("failing", domain.TargetRules{Events: []domain.EventType{domain.StoryBlocked}, Alerts: []domain.AlertKind{domain.AlertTarget}})
		g.add("watching", domain.TargetRules{Alerts: []domain.AlertKind{domain.AlertTarget}, Projects: []string{"beta"}})
		time.Sleep(time.Second)
		g.says(func(target string, m domain.Message) domain.SendResult {
			if target == "watching" {
				return domain.SendResult{Status: 200}
			}
			return refuses(404)(target, m)
		})
		g.happens("alpha", domain.StoryBlocked, 2)
		time.Sleep(32 * time.Hour)
		var pauses []time.Duration
		var last time.Time
		for _, m := range g.posts() {
			if m.target != "failing" {
				continue
			}
			if !last.IsZero() {
				pauses = append(pauses, m.at.Sub(last).Round(100*time.Millisecond))
			}
			last = m.at
		}
		if want := []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour}; !slices.Equal(pauses, want) {
			t.Errorf("pauses %v, want %v", pauses, want)
		}
		want(t, "watching", g.take("watching"), "Switchyard: notifications failed")
		want(t, "failing", g.take("failing"), repeated("!alpha: blocked", 8)...)
		alerts := g.Alerts.List(t.Context())
		if len(alerts.Items) != 1 || alerts.Items[0].Text() != "notifications do not reach failing" || alerts.Items[0].Link() != "/notifications" {
			t.Errorf("%+v", alerts.Items)
		}

		g.says(nil)
		g.change(failing, func(t *domain.Target) { t.Name = "mended" })
		time.Sleep(2 * time.Second)
		want(t, "accepted", g.take("mended"), "alpha: blocked", "What waited: 1 blocked")
		want(t, "watching", g.take("watching"))
		if alerts := g.Alerts.List(t.Context()); len(alerts.Items) > 0 {
			t.Errorf("%+v", alerts.Items)
		}
	})
}

func TestAReceiverMayAskForALongerPauseOfUpToAnHour(t *testing.T) {
	for asked, pause := range map[time.Duration]time.Duration{time.Second: 5 * time.Second, time.Minute: time.Minute, 48 * time.Hour: time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			g := newTold(t)
			g.add("busy", blockedOnly)
			time.Sleep(time.Second)
			g.says(func(string, domain.Message) domain.SendResult {
				g.says(nil)
				return domain.SendResult{Status: 429, RetryAfter: asked, Err: domain.Errorf(domain.BadGateway, "429")}
			})
			g.happens("alpha", domain.StoryBlocked, 1)
			time.Sleep(2 * time.Hour)
			if len(g.posts()) != 2 || g.posts()[1].at.Sub(g.posts()[0].at).Round(100*time.Millisecond) != pause {
				t.Errorf("asked for %v: %+v", asked, g.posts())
			}
		})
	}
}

// TestAReceiverThatIsGoneDisablesItsTarget, until people enable it; nothing is skipped.
func TestAReceiverThatIsGoneDisablesItsTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTold(t)
		gone := g.add("gone", blockedOnly)
		g.add("watching", domain.TargetRules{Alerts: []domain.AlertKind{domain.AlertTarget}})
		time.Sleep(time.Second)
		g.says(func(target string, m domain.Message) domain.SendResult {
			if target == "gone" {
				return refuses(410)(target, m)
			}
			return domain.SendResult{Status: 200}
		})
		g.happens("alpha", domain.StoryBlocked, 2)
		time.Sleep(3 * time.Second)
		want(t, "at once", g.take("watching"), "Switchyard: notifications failed")
		g.restart(time.Second)
		time.Sleep(2 * time.Hour)
		want(t, "one attempt", g.take("gone"), "!alpha: blocked")
		if list, err := g.Targets.List(t.Context()); err != nil || list[0].Enabled || !list[0].Progress.Gone {
			t.Errorf("%+v, %v", list, err)
		}
		g.says(nil)
		g.change(gone, func(t *domain.Target) { t.Enabled = true })
		time.Sleep(2 * time.Second)
		want(t, "enabled", g.take("gone"), "alpha: blocked", "What waited: 1 blocked")
		want(t, "watching", g.take("watching"))
		if alerts := g.Alerts.List(t.Context()); len(alerts.Items) > 0 {
			t.Errorf("%+v", alerts.Items)
		}
	})
}

// TestAMessageThatIsRefusedAsSuchIsSkippedAfterADay: the log and the next message say so.
func TestAMessageThatIsRefusedAsSuchIsSkippedAfterADay(t *testing.T) {
	for _, status := range []int{400, 413, 422, 431} {
		t.Run(fmt.Sprint(status), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { skipsRefused(t, status) }) })
	}
}

func skipsRefused(t *testing.T, status int) {
	g := newTold(t)
	picky := g.add("picky", blockedOnly)
	time.Sleep(time.Second)
	began := time.Now()
	g.says(func(_ string, m domain.Message) domain.SendResult {
		if strings.HasSuffix(m.ID, "_1") {
			return refuses(status)("", m)
		}
		return domain.SendResult{Status: 200}
	})
	g.happens("alpha", domain.StoryBlocked, 3)
	time.Sleep(23 * time.Hour)
	if len(g.posts()) != 7 {
		t.Errorf("%d attempts in a day", len(g.posts()))
	}
	time.Sleep(2 * time.Hour)
	if n := len(g.posts()); n != 9 || g.posts()[8].skipped != 1 || g.posts()[8].message.Title != "What waited: 2 blocked" || g.posts()[7].at.Sub(began).Round(time.Second) != 24*time.Hour {
		t.Errorf("%d: %+v", n, g.posts())
	}
	list, err := g.Deliveries.List(t.Context(), picky.ID, 2)
	if err != nil || list[1].Error != fmt.Sprint("skipped after 24 hours: ", status) || list[1].Attempt != 8 || list[0].Error != "" {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestNothingIsSkippedOrDoubledByARestart: what was under way is finished, or comes again under its id.
func TestNothingIsSkippedOrDoubledByARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTold(t)
		g.takes = 30 * time.Millisecond
		g.add("all", domain.TargetRules{Events: []domain.EventType{domain.StoryBlocked}, Alerts: []domain.AlertKind{domain.AlertQuestion}})
		time.Sleep(time.Second)
		for n := range 5 {
			g.happens("alpha", domain.StoryBlocked, 20)
			g.asks(fmt.Sprint("Which of ", n))
			time.Sleep(200 * time.Millisecond)
			g.restart(time.Second)
		}
		time.Sleep(time.Minute)
		ids := g.ids()
		slices.Sort(ids)
		if n := len(ids); n != 105 || len(slices.Compact(ids)) != 105 {
			t.Errorf("%d messages, %d different ones", n, len(slices.Compact(ids)))
		}
		last := 0
		for _, m := range g.posts() {
			var data struct{ ID int }
			_ = json.Unmarshal(m.message.Data, &data)
			if data.ID != 0 && data.ID <= last {
				t.Errorf("event %d after %d", data.ID, last)
			}
			last = max(last, data.ID)
		}
		g.take("all")
		g.restart(time.Hour)
		time.Sleep(time.Minute)
		want(t, "after another restart", g.take("all"))
	})
}

// TestTroubleWithAReceiverCostsNoMessage: one that is away for a day, answers nothing or is slow gets everything once, in
// order, although the gateway is restarted meanwhile; other targets do not wait for it.
func TestTroubleWithAReceiverCostsNoMessage(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of processor time")
	}
	const events = 300
	for name, trouble := range map[string]struct {
		takes, lasts time.Duration
		answer       func(string, domain.Message) domain.SendResult
	}{
		"away for a day":  {0, 24 * time.Hour, refuses(503)},
		"answers nothing": {10 * time.Second, time.Hour, refuses(0)},
		"slow":            {2 * time.Second, time.Hour, nil},
		"busy for a while": {0, time.Hour, func(string, domain.Message) domain.SendResult {
			return domain.SendResult{Status: 429, RetryAfter: 20 * time.Minute, Err: domain.Errorf(domain.BadGateway, "429")}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newTold(t)
				troubled := g.add("troubled", blockedOnly)
				g.add("other", blockedOnly)
				time.Sleep(time.Second)
				g.troubled = "troubled"
				g.takes = trouble.takes
				g.says(func(target string, m domain.Message) domain.SendResult {
					if target == "other" || trouble.answer == nil {
						return domain.SendResult{Status: 200}
					}
					return trouble.answer(target, m)
				})
				for range 3 {
					g.happens("alpha", domain.StoryBlocked, events/3)
					time.Sleep(time.Second)
					if n := len(g.take("other")); n != events/3 {
						t.Errorf("the other target has got %d messages after a second", n)
					}
					time.Sleep(trouble.lasts / 3)
					g.restart(time.Second)
				}
				g.says(nil)
				g.change(troubled, func(*domain.Target) {}) // tries at once, although nothing is delivered yet
				time.Sleep(time.Hour)
				var ids []string
				next := 1
				for _, m := range g.posts() {
					if m.refused {
						continue
					}
					var data struct {
						ID     int
						Counts struct{ Events map[string]int }
					}
					if err := json.Unmarshal(m.message.Data, &data); err != nil || data.ID != 0 && data.ID != next {
						t.Fatalf("event %d is told as number %d, %v", data.ID, next, err)
					}
					next += max(data.Counts.Events["story_blocked"], min(data.ID, 1))
					ids = append(ids, m.message.ID)
				}
				if different := len(slices.Compact(slices.Clone(ids))); next != events+1 || different != len(ids) {
					t.Errorf("%d events in %d messages, %d of them different", next-1, len(ids), different)
				}
			})
		})
	}
}

// TestMuchComesAsOneDigest: what is over a hundred messages or waits for ten minutes, and alerts that are alike.
func TestMuchComesAsOneDigest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTold(t)
		g.add("one", domain.TargetRules{Events: []domain.EventType{domain.StoryBlocked}, Alerts: []domain.AlertKind{domain.AlertQuestion}})
		time.Sleep(30 * time.Second)
		g.happens("alpha", domain.StoryBlocked, 250)
		time.Sleep(5 * time.Second)
		want(t, "many events", g.take("one"), "What waited: 250 blocked")
		for n := range 30 {
			g.asks(fmt.Sprint("Which of ", n))
		}
		time.Sleep(5 * time.Second)
		want(t, "alerts that are alike", g.take("one"), repeated("Switchyard: asks", 10)...)
		g.restart(time.Second)
		time.Sleep(time.Minute)
		last := g.posts()[0].message
		want(t, "at the minute's end", g.take("one"), "What waited: 20 questions")
		var data struct {
			Counts struct{ Events, Alerts map[string]int }
		}
		if err := json.Unmarshal(last.Data, &data); err != nil || last.Type != "digest" || data.Counts.Alerts["question"] != 20 || len(data.Counts.Events) > 0 {
			t.Errorf("%s, %v", last.Data, err)
		}
		time.Sleep(time.Hour)
		want(t, "later", g.take("one"))
	})
}

// TestOneProjectsAlertsHideNoOthers: however many there are, those of others come one by one.
func TestOneProjectsAlertsHideNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTold(t)
		for _, name := range []string{"alpha", "beta"} {
			if _, err := g.Projects.Add(t.Context(), name, "http://"+name, nil); err != nil {
				t.Fatal(err)
			}
		}
		g.add("one", domain.TargetRules{Alerts: []domain.AlertKind{domain.AlertQuestion}})
		time.Sleep(30 * time.Second)
		asks := func(asker, project string, n int) {
			ctx := domain.WithActor(t.Context(), &domain.Actor{Account: "token " + asker, Role: domain.RoleOperator})
			for i := range n {
				q := domain.Question{Kind: domain.QuestionText, Project: project, Prompt: fmt.Sprint("Which of ", i)}
				if _, err := g.Questions.Ask(ctx, q, 24*time.Hour); err != nil {
					t.Fatal(err)
				}
			}
		}
		asks("a", "alpha", 90)
		asks("b", "alpha", 90)
		time.Sleep(time.Millisecond)
		asks("c", "beta", 1)
		time.Sleep(5 * time.Second)
		want(t, "of both", g.take("one"), append(repeated("alpha: asks", 10), "beta: asks")...)
		end := time.Now().Truncate(time.Minute).Add(time.Minute)
		time.Sleep(time.Until(end.Add(-time.Millisecond)))
		asks("d", "beta", 1)
		time.Sleep(5 * time.Second)
		want(t, "at the minute's end", g.take("one"), "What waited: 170 questions", "beta: asks")
	})
}

func TestAnAlertIsToldOnceWhenItBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTold(t)
		before := g.asks("before")
		asked := g.add("asked", domain.TargetRules{Alerts: []domain.AlertKind{domain.AlertQuestion}})
		g.add("other", domain.TargetRules{Alerts: []domain.AlertKind{domain.AlertStuck}})
		time.Sleep(3 * time.Second)
		want(t, "what stood before", g.take("asked"))
		q := g.asks("Which\ntable?")
		time.Sleep(3 * time.Second)
		m := g.posts()[0].message
		var data map[string]any
		if err := json.Unmarshal(m.Data, &data); err != nil || data["kind"] != "question" || data["key"] != fmt.Sprintf("question/%d", q.ID) || m.Type != "alert.question" ||
			!strings.HasSuffix(m.ID, fmt.Sprintf("_%s_question/%d_%d", asked.ID, q.ID, q.AskedAt.UnixMilli())) || strings.Contains(m.Text, "\n") {
			t.Errorf("%+v, %v", m, err)
		}
		want(t, "asked", g.take("asked"), "Switchyard: asks")
		g.restart(time.Minute)
		time.Sleep(10 * time.Second)
		want(t, "after a restart", g.take("asked"))
		for _, id := range []int64{before.ID, q.ID} {
			if err := g.Questions.Withdraw(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Second)
		want(t, "when it ends", g.take("asked"))

		if err := g.Targets.Remove(t.Context(), asked.ID); err != nil {
			t.Fatal(err)
		}
		g.asks("later")
		time.Sleep(10 * time.Second)
		want(t, "after it was removed", g.take("asked"))
		want(t, "other", g.take("other"))
	})
}

// longID is an id that no proxy takes in a header.
var longID = strings.Repeat("7", 9000)

// quietBlock is a board whose story is blocked in the second minute after a time and from the fourth on, and whose server says neither since
// when nor by an event.
type quietBlock struct {
	service.ProjectServers
	start time.Time
}

func (b quietBlock) Pipeline(context.Context, domain.Project, *domain.PipelineAnswer) (*domain.PipelineAnswer, error) {
	item := domain.Item{StoryID: longID, StoryName: "S"}
	if minute := time.Since(b.start) / time.Minute; minute == 1 || minute >= 3 {
		item.Blocked = "why"
	}
	return &domain.PipelineAnswer{Stages: []domain.Stage{{Name: "1_backlog"}, {Name: "2_current", Items: []domain.Item{item}}, {Name: "5_done"}}}, nil
}

// slowVisits takes a while to store what boards show.
type slowVisits struct{ service.Store }

func (s slowVisits) ObserveVisits(ctx context.Context, token int64, observed ...domain.Observation) ([]domain.Visit, []string, error) {
	time.Sleep(1500 * time.Millisecond)
	return s.Store.ObserveVisits(ctx, token, observed...)
}

// TestABlockThatOnlyTheBoardShowsIsToldOnce, each time that it begins, under an id that fits a header.
func TestABlockThatOnlyTheBoardShowsIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &told{postbox: &postbox{}, t: t, dir: t.TempDir(), boards: quietBlock{start: time.Now()}}
		g.wrap = func(s service.Store) service.Store { return slowVisits{s} }
		g.start()
		t.Cleanup(func() { g.stop() })
		if _, err := g.Projects.Add(t.Context(), "alpha", "http://alpha", nil); err != nil {
			t.Fatal(err)
		}
		g.add("one", domain.TargetRules{Alerts: []domain.AlertKind{domain.AlertBlocked}})
		time.Sleep(59 * time.Second)
		want(t, "before", g.take("one"))
		time.Sleep(30 * time.Second)
		if ids := g.ids(); len(ids) != 1 || len(ids[0]) > 100 {
			t.Errorf("ids: %.200q", ids)
		}
		want(t, "blocked", g.take("one"), "alpha: blocked")
		time.Sleep(time.Minute)
		want(t, "no longer", g.take("one"))
		time.Sleep(2 * time.Minute)
		want(t, "again", g.take("one"), "alpha: blocked")
	})
}

// TestAnAcknowledgedAlertIsNotTold, but it is when the acknowledgement ends and it still stands.
func TestAnAcknowledgedAlertIsNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTold(t)
		one := g.add("one", domain.TargetRules{Alerts: []domain.AlertKind{domain.AlertQuestion}})
		time.Sleep(time.Second)
		g.change(one, func(t *domain.Target) { t.Enabled = false })
		first, second := g.asks("first"), g.asks("second")
		time.Sleep(time.Second)
		for q, life := range map[int64]time.Duration{first.ID: time.Hour, second.ID: 0} {
			if err := g.Alerts.Acknowledge(t.Context(), fmt.Sprintf("question/%d", q), life); err != nil {
				t.Fatal(err)
			}
		}
		g.change(one, func(t *domain.Target) { t.Enabled = true })
		time.Sleep(59 * time.Minute)
		want(t, "acknowledged", g.take("one"))
		time.Sleep(2 * time.Minute)
		want(t, "after the hour", g.take("one"), "Switchyard: asks")
	})
}

// TestADisabledTargetKeepsItsPosition.
func TestADisabledTargetKeepsItsPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTold(t)
		one := g.add("one", domain.TargetRules{Events: []domain.EventType{domain.StoryBlocked}, Alerts: []domain.AlertKind{domain.AlertQuestion}})
		time.Sleep(time.Second)
		g.change(one, func(t *domain.Target) { t.Enabled = false })
		g.happens("alpha", domain.StoryBlocked, 2)
		g.asks("Which?")
		time.Sleep(time.Minute)
		g.restart(time.Minute)
		time.Sleep(time.Minute)
		want(t, "disabled", g.take("one"))
		g.change(one, func(t *domain.Target) { t.Enabled = true })
		time.Sleep(3 * time.Second)
		want(t, "enabled", g.take("one"), "alpha: blocked", "alpha: blocked", "Switchyard: asks")
	})
}

func TestTheLastTenMessagesComeAgainUnderOtherIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTold(t)
		one := g.add("one", blockedOnly)
		time.Sleep(time.Second)
		g.happens("alpha", domain.StoryBlocked, 12)
		time.Sleep(time.Second)
		first := g.ids()
		g.take("one")
		if err := g.Targets.Resend(t.Context(), one.ID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		again := g.ids()
		g.mu.Lock()
		var data struct{ ID int }
		_ = json.Unmarshal(g.all[0].message.Data, &data)
		g.mu.Unlock()
		if len(again) != 10 || data.ID != 3 || slices.ContainsFunc(again, func(id string) bool { return slices.Contains(first, id) }) {
			t.Errorf("%q after %q", again, first)
		}
	})
}

// TestRemovedEventsAreToldAsAGap, once.
func TestRemovedEventsAreToldAsAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTold(t)
		one := g.add("one", blockedOnly)
		time.Sleep(time.Second)
		g.change(one, func(t *domain.Target) { t.Enabled = false })
		g.happens("alpha", domain.StoryBlocked, 700)
		time.Sleep(2 * time.Hour)
		g.happens("alpha", domain.StoryBlocked, 1)
		g.keep = time.Hour
		g.restart(time.Second)
		if n, err := service.RemoveExpired(t.Context(), g.Service); err != nil || n != 201 {
			t.Fatal(n, err)
		}
		g.change(one, func(t *domain.Target) { t.Enabled = true })
		time.Sleep(2 * time.Minute)
		g.mu.Lock()
		text := g.all[0].message.Text
		g.mu.Unlock()
		got := g.take("one")
		if len(got) != 2 || got[0] != "Switchyard: events are missing" || got[1] != "What waited: 500 blocked" || !strings.HasPrefix(text, "201 events were removed") {
			t.Errorf("%d messages: %q, %s", len(got), got[:min(3, len(got))], text)
		}
	})
}
