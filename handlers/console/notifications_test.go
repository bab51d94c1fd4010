package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
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

func TestATargetIsAddedChangedAndRemovedWithForms(t *testing.T) {
	s := newConsoleSite(t)
	s.add("webshop", board("1_backlog:", "2_current:", "3_done:"))
	s.Get("/notifications").WantText(t, "<h1>Notifications</h1>", "Nobody is told yet", "On this device", "Add a target", "ntfy", "Webhook")
	address, messages := receiver(t, http.StatusNoContent)
	s.Get("/notifications?kind=webhook").WantText(t, `name="name"`, `name="url"`, "Questions", "Blocked", "webshop", "Once a day at")
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
	s.Get("/notifications").WantNoText(t, "Tablet") // an administrator has other devices
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
