package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/service"
	"switchyard/internal/waittest"
)

// receiver returns a webhook that answers with status, and what it has received.
func receiver(t *testing.T, status int) (address string, messages <-chan string) {
	received := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		received <- r.Header.Get("Webhook-Id")
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/secret-path", received
}

// target adds a target with the form and returns its id.
func (s *consoleSite) target(name, address string, fields ...string) string {
	s.Helper()
	form := append([]string{
		"name", name, "url", address, "digest", "none", "digest_at", "08:00", "time_zone", "UTC",
	}, fields...)
	s.Submit("/notifications", form...)
	list, err := s.Targets.List(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	for _, t := range list {
		if t.Name == name {
			return t.ID
		}
	}
	s.Fatalf("there is no target %s", name)
	return ""
}

// deliver sends messages to targets until the test ends.
func (s *consoleSite) deliver() {
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() { _ = s.Targets.Run(ctx) })
	s.Cleanup(func() { cancel(); ended.Wait() })
}

// blocks records that a story is blocked.
func (s *consoleSite) blocks(project, story, reason string) {
	s.Helper()
	s.Record(project, fmt.Sprintf(`{"type":"story_blocked","story_id":%q,"story_name":"S","reason":%q,"timestamp_ms":%d}`, story, reason, time.Now().UnixMilli()))
}

func TestATargetIsAddedChangedAndRemovedWithForms(t *testing.T) {
	s := newConsoleSite(t)
	s.add("webshop", board("1_backlog:", "2_current:", "3_done:"))
	s.Get("/notifications").WantText(t, "<h1>Notifications</h1>", "Nobody is told yet", "Add a target", "ntfy", "Webhook", "On this device")
	address, messages := receiver(t, http.StatusNoContent)
	s.Get("/notifications?kind=webhook").WantText(t, `name="name"`, `name="url"`, ">To answer<", "Questions", ">To unblock<", "Blocked", "webshop", "Once a day at",
		"<b><bdi>All events</bdi></b>", "<b><bdi>all that needs attention</bdi></b>", " of ", "all projects")
	added := s.Submit("/notifications", "name", "Status page", "url", address, "alerts", "blocked", "alerts", "question",
		"events", "stage_transition", "projects", "webshop", "digest", "none", "digest_at", "08:00", "time_zone", "UTC",
		"quiet", "on", "quiet_from", "22:00", "quiet_to", "07:00", "days", "fri")
	added.WantStatus(t, http.StatusOK).WantText(t, "The secret of", "Status page", "whsec_")
	if added.Header.Get("Cache-Control") != "no-store" {
		t.Error("the secret may be cached")
	}
	page := s.Get("/notifications")
	page.WantText(t, "Status page", "<b><bdi>Moves</bdi></b>", "<bdi>blocked</bdi>", "<bdi>questions</bdi>", "<bdi>webshop</bdi>",
		"each as it begins", "Quiet from 22:00 to 07:00 on nights of fri", "(UTC)")
	page.WantNoText(t, "whsec_", "secret-path")

	list, _ := s.Targets.List(t.Context())
	id := list[0].ID
	s.Get("/notifications?edit="+id).WantText(t, "Change", `value="blocked" checked`, `value="webshop" checked`, `value="fri" checked`)
	s.follow(s.Submit("/notifications/"+id+"/test")).WantText(t, "A test message to Status page was accepted.")
	if !strings.HasPrefix(<-messages, "msg_") {
		t.Error("the test message has no id")
	}
	s.Get("/notifications?log="+id).WantText(t, "Switchyard", "204")
	s.follow(s.Submit("/notifications/"+id+"/off")).WantText(t, "Status page is turned off.", "Undo", "Turn on")
	s.follow(s.Submit("/notifications/"+id+"/on")).WantText(t, "Status page is turned on.")
	s.follow(s.Submit("/notifications/"+id+"/resend")).WantText(t, "are sent again.")
	s.Submit("/notifications/"+id+"/secret").WantStatus(t, http.StatusOK).WantText(t, "whsec_")
	s.follow(s.Submit("/notifications/"+id, "name", "Hooks", "url", "", "digest", "daily", "digest_at", "06:30",
		"alerts", "stuck", "time_zone", "Europe/Vienna")).WantText(t, "The changes are saved.", "Hooks", "<bdi>Stuck</bdi>",
		"all projects", "<bdi>once a day</bdi>", "at 06:30. (Europe/Vienna)")
	if changed, _ := s.Targets.Get(t.Context(), id); changed.URL.Reveal() != address || !changed.Enabled {
		t.Errorf("the change without an address: %v %t", changed.URL.Reveal(), changed.Enabled)
	}
	s.follow(s.Submit("/notifications/"+id+"/remove")).WantText(t, "Hooks is removed.", "Nobody is told yet")
	s.follow(s.Submit("/notifications/"+id+"/test")).WantText(t, "This target is gone.")
	s.Submit("/notifications/"+id+"/else").WantStatus(t, http.StatusSeeOther)
}

// TestManyTargetsCostNoMoreEach, however many others there are and fail.
func TestManyTargetsCostNoMoreEach(t *testing.T) {
	const many = 300
	s := newConsoleSite(t)
	for i := range many {
		name := fmt.Sprintf("target %03d", i)
		if err := s.Store.AddTarget(t.Context(), nil, domain.Target{
			ID: name, Name: name, URL: domain.Secret("mailto:a@example.net"), Enabled: true,
			Rules:    domain.TargetRules{Alerts: []domain.AlertKind{domain.AlertTarget}},
			Progress: domain.TargetProgress{FailingAt: time.Now(), Error: "refused"},
		}); err != nil {
			t.Fatal(err)
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	page := s.Get("/notifications")
	runtime.ReadMemStats(&after)
	page.WantText(t, "<bdi>target 000</bdi>", "<bdi>target 299</bdi>", ", 296 more</bdi>")
	if each := (after.TotalAlloc - before.TotalAlloc) / many; each > 150<<10 {
		t.Errorf("each of %d targets took %d KiB", many, each>>10)
	}
	if each := len(page.Text) / many; each > 6<<10 {
		t.Errorf("each of %d targets is %d bytes of the page", many, each)
	}
}

func TestARefusedTargetKeepsWhatWasTyped(t *testing.T) {
	s := newConsoleSite(t)
	good := url.Values{"name": {"a"}, "url": {"mailto:a@example.net"}, "digest": {"none"}, "digest_at": {"08:00"}, "time_zone": {"UTC"}}
	for field, value := range map[string]string{
		"name": "", "url": "gopher://x", "digest": "weekly", "digest_at": "25:00", "time_zone": "Mars/North", "alerts": "fire",
	} {
		fields := []string{"alerts", "stuck"}
		for name, values := range good {
			if name != field {
				fields = append(fields, name, values[0])
			}
		}
		if field == "alerts" {
			fields = fields[2:]
		}
		answer := s.Submit("/notifications", append(fields, field, value)...).WantStatus(t, http.StatusBadRequest)
		answer.WantText(t, `id="`+field+`-error"`)
		if field != "alerts" {
			answer.WantText(t, `value="stuck" checked`)
		}
	}
	if list, _ := s.Targets.List(t.Context()); len(list) != 0 {
		t.Errorf("%d targets", len(list))
	}
}

func TestAddressesArePastedAsServicesGiveThem(t *testing.T) {
	s := newConsoleSite(t)
	for pasted, want := range map[string]string{
		"https://discord.com/api/webhooks/123/abc-_D":       "discord://abc-_D@123",
		"https://hooks.slack.com/services/T000/B000/XXX111": "slack://hook:T000-B000-XXX111@webhook",
		"mailto:team@example.net":                           "mailto:team@example.net",
	} {
		id := s.target("t-"+want[:5], pasted)
		if target, _ := s.Targets.Get(t.Context(), id); target.URL.Reveal() != want {
			t.Errorf("%s: %s, want %s", pasted, target.URL.Reveal(), want)
		}
	}
}

func TestATestThatIsNotAcceptedSaysWhy(t *testing.T) {
	s := newConsoleSite(t)
	address, _ := receiver(t, http.StatusNotFound)
	id := s.target("hooks", address)
	s.follow(s.Submit("/notifications/"+id+"/test")).WantText(t, "was not accepted: 404 Not Found")
	s.Get("/notifications?log="+id).WantText(t, "404 Not Found")
}

func TestAFormSaysWhatATargetWouldGet(t *testing.T) {
	s := newConsoleSite(t)
	s.Submit("/notifications/preview", "alerts", "question", "digest", "hourly", "projects", "a", "projects", "b").
		WantStatus(t, http.StatusOK).WantText(t, "Questions", " of ", "<bdi>a</bdi>", " and ", "<bdi>b</bdi>", "once an hour")
	s.Submit("/notifications/preview").WantText(t, "Nothing yet: no event and no alert is chosen.")
}

func TestAFormSaysWhatItsRulesWouldHaveSentLastWeek(t *testing.T) {
	s := newConsoleSite(t)
	s.add("webshop", board("1_backlog:", "2_current:", "3_done:"))
	s.Record("webshop", moved("1_story_old", "2_current", "3_done", time.Now().AddDate(0, 0, -8)))
	s.moveMany("webshop", 3, time.Now().Add(-73*time.Hour))
	s.Record("webshop", moved("9_story_pay", "2_current", "3_done", time.Now().Add(-26*time.Hour)),
		fmt.Sprintf(`{"type":"story_blocked","story_id":"9_story_pay","story_name":"<b>Pay","reason":"no key","timestamp_ms":%d}`, time.Now().Add(-25*time.Hour).UnixMilli()))
	rules := []string{"digest_at", "08:00", "time_zone", "UTC"}
	day := time.Now().Add(-73 * time.Hour).UTC().Format("Monday")
	s.Submit("/notifications/preview", append(rules, "digest", "none", "events", "stage_transition")...).
		WantText(t, "<b>4 messages</b>", "most on "+day+", 3.", "One reads", "webshop: Current → Done")
	s.Submit("/notifications/preview", append(rules, "digest", "none", "alerts", "blocked")...).
		WantText(t, "<b>1 message</b>", "webshop: blocked", "&lt;b&gt;Pay", "no key")
	s.Submit("/notifications/preview", append(rules, "digest", "hourly", "alerts", "blocked", "events", "stage_transition")...).
		WantText(t, "messages</b>", "The hour: 1 ")
	s.Submit("/notifications/preview", append(rules, "digest", "none", "alerts", "bot_failed")...).WantText(t, "No message.").WantNoText(t, "One reads")
	s.Submit("/notifications/preview", "digest", "weekly").WantNoText(t, "last week")
}

// night returns the page of a digest of what happens in quiet hours, which begins with a question.
func (s *consoleSite) night(happens func(now time.Time)) (page string, asked domain.Question) {
	s.Helper()
	s.deliver()
	address, messages := receiver(s.TB.(*testing.T), http.StatusNoContent)
	// Quiet until some minutes ago: what is held back is told at once.
	zone, now := time.UTC, time.Now().UTC()
	at := func(d time.Duration) string { return now.Add(d).In(zone).Format("15:04") }
	id := s.target("Night", address, "events", "stage_transition", "events", "story_blocked", "alerts", "blocked", "alerts", "question",
		"quiet", "on", "quiet_from", at(-time.Hour), "quiet_to", at(2*time.Minute))
	asked = s.asks(domain.Question{Kind: domain.QuestionText, Prompt: "Which\ntable?", Project: "webshop"})
	waittest.Until(s.TB, "something is held back", func() bool {
		target, err := s.Targets.Get(s.Context(), id)
		return err == nil && !target.Progress.HeldAt.IsZero()
	})
	happens(now)
	target, _ := s.Targets.Get(s.Context(), id)
	target.URL, target.Rules.Quiet.To = "", at(-time.Minute)
	if _, _, err := s.Targets.Change(s.Context(), id, target); err != nil {
		s.Fatal(err)
	}
	if got := <-messages; !strings.Contains(got, "_digest_") {
		s.Fatalf("the message is %s", got)
	}
	return regexp.MustCompile(`/notifications/digests/\w+`).FindString(s.Get("/notifications").Text), asked
}

// TestADigestIsAPage: with what is over and still stands, as of now, and what was finished.
func TestADigestIsAPage(t *testing.T) {
	s := newConsoleSite(t)
	s.add("webshop", board("1_backlog:", "2_current: 9_story_pay!no key, 8_story_old!no time", "3_done:"))
	href, asked := s.night(func(now time.Time) {
		for n := range 12 {
			s.move("webshop", fmt.Sprintf("%d_story_login", 100+n), "2_current", "3_done", now.Add(time.Duration(n-13)*time.Second))
		}
		s.blocks("webshop", "9_story_pay", "no key")
	})
	s.Get("/notifications").WantText(t, "Last one: 12 finished, 1 blocked, 1 question")
	page := s.Get(href).WantStatus(t, http.StatusOK)
	page.WantText(t, " to "+time.Now().UTC().Format("Monday "), "Copy as text", "finished: webshop · 100_story_login",
		"<b>12 finished</b>, <b>1 blocked</b>, <b>1 question</b>",
		"Still stands", "Which", "Told to", "13 events, 12 finished", "asks since ", "Finished <span class=\"n\">12</span>", "<bdi>webshop</bdi> 12", "100_story_login", "All of it").
		WantNoText(t, "usually")
	waittest.Until(t, "it says how long telling took", func() bool {
		_, told, _ := strings.Cut(s.Get(href).Text, "Told to")
		told, _, _ = strings.Cut(told, "</section>")
		return strings.Contains(told, " ms")
	})
	if err := s.Questions.Withdraw(t.Context(), asked.ID); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "it is over", func() bool { return strings.Contains(s.Get(href).Text, "Over by now") })
}

// TestADigestSaysWhoDidIt, of what was done through the gateway.
func TestADigestSaysWhoDidIt(t *testing.T) {
	s := newStorySite(t, true, map[string]string{"2_current/2_story_audit.md": "# Audit\n", "2_current/3_story_pay.md": "# Pay\n"})
	zoe := domain.Actor{Who: "zoe", Account: "token z", Role: domain.RoleOperator, Channel: domain.ChannelMCP}
	href, _ := s.night(func(time.Time) {
		if _, _, err := s.Claims.Claim(domain.WithActor(t.Context(), &zoe), "webshop", service.ClaimRequest{StoryID: "2_story_audit", To: "5_done"}); err != nil {
			t.Fatal(err)
		}
		s.move("webshop", "2_story_audit", "2_current", "5_done", time.Now())
		s.move("webshop", "3_story_pay", "2_current", "5_done", time.Now())
	})
	page := s.Get(href).WantText(t, "2_story_audit 2 story audit by zoe over MCP\n", "3_story_pay 3 story pay\n", `title="by zoe over MCP"><bdi>zoe<`)
	if n := strings.Count(page.Text, "over MCP"); n != 3 { // in both lists, and in the text to be copied
		t.Errorf("zoe did %d things", n)
	}
}

func TestATargetIsTriedBeforeItIsAdded(t *testing.T) {
	s := newConsoleSite(t)
	address, messages := receiver(t, http.StatusAccepted)
	rules := []string{"digest", "none", "digest_at", "08:00", "time_zone", "UTC", "alerts", "stuck", "kind", "webhook"}
	page := s.Submit("/notifications/test", append(rules, "name", "Hook", "url", address)...)
	page.WantStatus(t, http.StatusOK).WantText(t, `value="Hook"`, `value="stuck" checked`, "A test arrived: 202 after ")
	if page.Header.Get("Cache-Control") != "no-store" {
		t.Error("the address may be cached")
	}
	if id := <-messages; !strings.HasPrefix(id, "msg_") {
		t.Errorf("the test's id is %s", id)
	}
	refusing, _ := receiver(t, http.StatusForbidden)
	s.Submit("/notifications/test", append(rules, "name", "Hook", "url", refusing)...).WantText(t, "No test arrived: 403 Forbidden")
	s.Submit("/notifications/test", append(rules, "name", "Hook", "url", "gopher://x")...).WantStatus(t, http.StatusBadRequest).WantText(t, `id="url-error"`)
	if list, _ := s.Targets.List(t.Context()); len(list) != 0 {
		t.Errorf("%d targets are stored", len(list))
	}
}

func TestOnlyAdministratorsSeeTargets(t *testing.T) {
	s := loggedIn(t, "")
	s.target("the boss's phone", "mailto:boss@example.net")
	_, token := gatewaytest.NamedToken(t, s.Service, "guest", domain.RoleViewer)
	viewer := &gatewaytest.Site{TB: t, URL: s.URL, Client: gatewaytest.NewClient(t)}
	viewer.Submit("/login", "token", token)
	page := viewer.Get("/notifications").WantStatus(t, http.StatusOK)
	page.WantText(t, "<h1>Notifications</h1>", "On this device")
	page.WantNoText(t, "boss", "Add a target")
	viewer.Submit("/notifications", "name", "a").WantStatus(t, http.StatusForbidden)
	viewer.Get("/notifications/digests/none").WantStatus(t, http.StatusNotFound)
}

const browserKeys = `"keys":{"p256dh":"BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",` +
	`"auth":"BTBZMqHH6r4Tts7J_aSIgg"}`

func TestPeopleHaveMessagesPushedToTheirOwnDevices(t *testing.T) {
	s := loggedIn(t, "")
	_, token := gatewaytest.NamedToken(t, s.Service, "guest", domain.RoleViewer)
	viewer := &gatewaytest.Site{TB: t, URL: s.URL, Client: gatewaytest.NewClient(t)}
	viewer.Submit("/login", "token", token)
	add := func(name string) gatewaytest.Answer {
		return viewer.Do(http.MethodPost, "/api/gateway/push", `{"endpoint":"https://push.example/a","name":"`+name+`",`+browserKeys+
			`,"alerts":["question","blocked"]}`, "Content-Type", "application/json")
	}
	add("Phone").WantStatus(t, http.StatusCreated).WantText(t, `"url":"webpush://push.example/…"`)
	viewer.Get("/notifications").WantText(t, "My devices", "Phone", "questions, blocked")
	add("Tablet").WantStatus(t, http.StatusCreated) // the same browser
	viewer.Get("/notifications").WantText(t, "Tablet").WantNoText(t, "Phone</bdi>")
	s.Get("/notifications").WantText(t, "Devices of others", "Tablet", "<bdi>guest</bdi>").WantNoText(t, "My devices") // an administrator's view
	var listed struct {
		Targets []struct{ ID, URL, Owner string }
	}
	s.Get("/api/gateway/targets").Decode(t, &listed)
	if len(listed.Targets) != 1 || listed.Targets[0].URL != "webpush:…" || listed.Targets[0].Owner != "guest" {
		t.Fatalf("%+v", listed)
	}
	_, other := gatewaytest.NamedToken(t, s.Service, "other", domain.RoleViewer)
	stranger := &gatewaytest.Site{TB: t, URL: s.URL, Client: gatewaytest.NewClient(t)}
	stranger.Submit("/login", "token", other)
	stranger.Do(http.MethodDelete, "/api/gateway/push/"+listed.Targets[0].ID, "").WantStatus(t, http.StatusNotFound)
	s.Do(http.MethodDelete, "/api/gateway/push/"+listed.Targets[0].ID, "").WantStatus(t, http.StatusNoContent)
	viewer.Get("/notifications").WantNoText(t, "Tablet")
	var key struct {
		PublicKey string `json:"public_key"`
	}
	viewer.Get("/api/gateway/push").Decode(t, &key)
	again := key.PublicKey
	viewer.Get("/api/gateway/push").Decode(t, &key)
	if len(key.PublicKey) != 87 || key.PublicKey != again {
		t.Errorf("keys %q, %q", again, key.PublicKey)
	}
	s.Do(http.MethodPost, "/api/gateway/targets", `{"name":"x","url":"webpush:abc"}`, "Content-Type", "application/json").
		WantStatus(t, http.StatusBadRequest)
}

func TestTheConsoleIsAnApp(t *testing.T) {
	s := newConsoleSite(t)
	page := s.Get("/notifications")
	page.WantText(t, `<link rel="manifest" href="/manifest.webmanifest"`)
	if csp := page.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "worker-src 'self'") {
		t.Errorf("CSP %s", csp)
	}
	var manifest struct {
		Name  string
		Icons []struct{ Src string }
	}
	s.Get("/manifest.webmanifest").WantStatus(t, http.StatusOK).Decode(t, &manifest)
	if manifest.Name != "Switchyard" || len(manifest.Icons) != 2 {
		t.Fatalf("%+v", manifest)
	}
	for _, icon := range manifest.Icons {
		if a := s.Get(icon.Src).WantStatus(t, http.StatusOK); a.Media() != "image/png" {
			t.Errorf("%s: %s", icon.Src, a.Media())
		}
	}
	worker := s.Get("/push-worker.js").WantStatus(t, http.StatusOK)
	worker.WantNoText(t, "'fetch'")
	if !strings.HasPrefix(worker.Media(), "text/javascript") {
		t.Errorf("the worker is %s", worker.Media())
	}
}
