package api_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"switchyard/handlers"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/notify"
	"switchyard/internal/service"
)

type targetAnswer map[string]any

// hooked is a gateway and a receiver of webhooks on this machine.
func hooked(t *testing.T, status *int) (s *gatewaytest.Site, url string) {
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(*status) }))
	t.Cleanup(receiver.Close)
	o := service.Options{Messenger: notify.New(notify.Options{Guard: notify.Guard{Loopback: true}})}
	return gatewaytest.NewSite(t, o, handlers.Gateway{}), receiver.URL + "/secret-path"
}

func TestATargetHasDefaultsAndShowsNoSecrets(t *testing.T) {
	status := 204
	s, url := hooked(t, &status)
	made := s.Send("POST", "/api/gateway/targets", `{"name":" Hook ","url":"`+url+`"}`)
	var first targetAnswer
	made.Decode(t, &first)
	secret, _ := first["secret"].(string)
	if made.StatusCode != 201 || !strings.HasPrefix(secret, "whsec_") || len(secret) != 6+44 {
		t.Fatalf("%d %s", made.StatusCode, made.Text)
	}
	id, _ := first["id"].(string)
	delete(first, "secret")
	want := `{"alerts":[],"digest":"none","digest_at":"08:00","enabled":true,"events":[],"id":"` + id + `","name":"Hook","projects":null,"quiet":null,"time_zone":"UTC","url":"` + strings.TrimSuffix(url, "secret-path") + `…"}`
	if got, _ := json.Marshal(first); string(got) != want {
		t.Errorf("%s, want %s", got, want)
	}
	if list := s.Send("GET", "/api/gateway/targets", ""); strings.Contains(list.Text, "secret") || !strings.Contains(list.Text, id) {
		t.Error(list.Text)
	}

	all := `{"name":"Night","events":["story_blocked","unheard_of"],"alerts":["question","target_failed"],"projects":["alpha"],"digest":"daily","digest_at":"07:30","quiet":{"from":"22:00","to":"07:00","days":["mon","sun"]},"time_zone":"Europe/Vienna","enabled":false`
	changed := s.Send("PUT", "/api/gateway/targets/"+id, all+`}`)
	var second targetAnswer
	changed.Decode(t, &second)
	if changed.StatusCode != 200 || second["secret"] != nil || second["url"] != first["url"] || second["name"] != "Night" || second["enabled"] != false || second["digest_at"] != "07:30" || second["time_zone"] != "Europe/Vienna" {
		t.Errorf("%d %s", changed.StatusCode, changed.Text)
	}
	if quiet, _ := json.Marshal(second["quiet"]); string(quiet) != `{"days":["mon","sun"],"from":"22:00","to":"07:00"}` {
		t.Errorf("quiet %s", quiet)
	}
	if same := s.Send("PUT", "/api/gateway/targets/"+id, all+`,"url":"`+first["url"].(string)+`"}`); same.StatusCode != 200 || strings.Contains(same.Text, "whsec_") {
		t.Errorf("the address as it is shown: %d %s", same.StatusCode, same.Text)
	}
	if other := s.Send("PUT", "/api/gateway/targets/"+id, all+`,"url":"`+url+`/other"}`); other.StatusCode != 200 || !strings.Contains(other.Text, "whsec_") || strings.Contains(other.Text, secret) {
		t.Errorf("another address: %d %s", other.StatusCode, other.Text)
	}
	if rotated := s.Send("POST", "/api/gateway/targets/"+id+"/secret", ""); rotated.StatusCode != 200 || !strings.Contains(rotated.Text, `{"secret":"whsec_`) {
		t.Errorf("%d %s", rotated.StatusCode, rotated.Text)
	}

	audit := s.Send("GET", "/api/gateway/audit?limit=200", "").Text
	if strings.Contains(audit, "whsec_") || strings.Contains(audit, "secret-path") || !strings.Contains(audit, "target.created") || !strings.Contains(audit, "Night") || !strings.Contains(audit, "07:30") {
		t.Error(audit)
	}
}

func TestWhatATargetMustNotBe(t *testing.T) {
	status := 204
	s, url := hooked(t, &status)
	for fields, says := range map[string]string{
		`"url":"`: "JSON", `"name":"x"`: "url: is required", `"url":"` + url + `"`: "name: is required", `"name":"","url":"` + url + `"`: "name:", `"name":7,"url":"` + url + `"`: "name:",
		`"name":"x","url":"sms://1"`: "mailto:", `"name":"x","url":"http://8.8.8.8/"`: "https", `"name":"x","url":"https://169.254.169.254/"`: "link-local",
		`"name":"x","url":"https://10.0.0.1/"`: "private", `"name":"x","url":7`: "url:",
		`"name":"x","url":"` + url + `","alerts":["boredom"]`: "alerts: there is no kind \"boredom\"", `"name":"x","url":"` + url + `","alerts":"question"`: "alerts:",
		`"name":"x","url":"` + url + `","events":[""]`: "events:", `"name":"x","url":"` + url + `","events":[null]`: "events:",
		`"name":"x","url":"` + url + `","digest":"weekly"`: "digest:", `"name":"x","url":"` + url + `","digest_at":"8:00"`: "digest_at:", `"name":"x","url":"` + url + `","digest_at":"24:00"`: "digest_at:",
		`"name":"x","url":"` + url + `","time_zone":"Mars/Base"`: "time_zone:", `"name":"x","url":"` + url + `","time_zone":"Local"`: "time_zone:",
		`"name":"x","url":"` + url + `","quiet":{"from":"22:00"}`: "quiet:", `"name":"x","url":"` + url + `","quiet":{"from":"22:00","to":"22:00"}`: "quiet:", `"name":"x","url":"` + url + `","quiet":"always"`: "quiet:",
		`"name":"x","url":"` + url + `","quiet":{"from":"22:00","to":"07:00","days":["monday"]}`: "quiet:", `"name":"x","url":"` + url + `","enabled":"yes"`: "enabled:", `"name":"x","url":"` + url + `","projects":["."]`: "projects:",
	} {
		if got := s.Send("POST", "/api/gateway/targets", "{"+fields+"}"); got.StatusCode != 400 || !strings.Contains(got.Text, says) {
			t.Errorf("%s: %d %s", fields, got.StatusCode, got.Text)
		}
	}
	if list := s.Send("GET", "/api/gateway/targets", ""); list.Text != `{"targets":[]}` {
		t.Error(list.Text)
	}
	for _, c := range [][2]string{{"PUT", ""}, {"DELETE", ""}, {"POST", "/test"}, {"POST", "/secret"}, {"POST", "/resend"}, {"GET", "/deliveries"}} {
		body := ""
		if c[0] == "PUT" {
			body = `{"name":"x"}`
		}
		if got := s.Send(c[0], "/api/gateway/targets/none"+c[1], body); got.StatusCode != 404 {
			t.Errorf("%v of an unknown one: %d %s", c, got.StatusCode, got.Text)
		}
	}
}

// TestATestMessageHasTheFormOfADigest, which has no event and no item of attention either.
func TestATestMessageHasTheFormOfADigest(t *testing.T) {
	bodies := make(chan string, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies <- string(body)
	}))
	defer receiver.Close()
	o := service.Options{Messenger: notify.New(notify.Options{Guard: notify.Guard{Loopback: true}})}
	s := gatewaytest.NewSite(t, o, handlers.Gateway{})
	var made targetAnswer
	s.Send("POST", "/api/gateway/targets", `{"name":"Hook","url":"`+receiver.URL+`"}`).Decode(t, &made)
	s.Send("POST", "/api/gateway/targets/"+made["id"].(string)+"/test", "").WantStatus(t, http.StatusOK)
	const data = `"data":{"counts":{},"link":"/notifications","text":"This is a test message of Switchyard."}`
	if body := <-bodies; !strings.Contains(body, `"type":"test"`) || !strings.Contains(body, data) {
		t.Errorf("the receiver got %s", body)
	}
}

func TestATestMessageSaysWhatTheReceiverAnswered(t *testing.T) {
	status := 204
	s, url := hooked(t, &status)
	var made targetAnswer
	s.Send("POST", "/api/gateway/targets", `{"name":"Hook","url":"`+url+`"}`).Decode(t, &made)
	path := "/api/gateway/targets/" + made["id"].(string)
	if got := s.Send("POST", path+"/test", ""); got.StatusCode != 200 || got.Text != `{"ok":true}` {
		t.Errorf("%d %s", got.StatusCode, got.Text)
	}
	status = 403
	if got := s.Send("POST", path+"/test", ""); got.StatusCode != 502 || got.Text != `{"ok":false,"error":"403 Forbidden"}` {
		t.Errorf("%d %s", got.StatusCode, got.Text)
	}
	var log struct {
		Deliveries []map[string]any
	}
	s.Send("GET", path+"/deliveries", "").Decode(t, &log)
	if len(log.Deliveries) != 2 || log.Deliveries[0]["status"] != 403.0 || log.Deliveries[0]["error"] != "403 Forbidden" || log.Deliveries[1]["error"] != nil ||
		log.Deliveries[1]["attempt"] != 1.0 || log.Deliveries[0]["id"] == log.Deliveries[1]["id"] {
		t.Errorf("%+v", log)
	}
	for query, status := range map[string]int{"?limit=1": 200, "?limit=0": 400, "?limit=201": 400, "?limit=x": 400} {
		if got := s.Send("GET", path+"/deliveries"+query, ""); got.StatusCode != status {
			t.Errorf("%s: %d", query, got.StatusCode)
		}
	}
	if got := s.Send("DELETE", path, ""); got.StatusCode != 204 {
		t.Errorf("%d %s", got.StatusCode, got.Text)
	}
	var mail targetAnswer
	s.Send("POST", "/api/gateway/targets", `{"name":"Mail","url":"mailto:a@b.example"}`).Decode(t, &mail)
	if mail["secret"] != nil || mail["url"] != "mailto:a@b.example" {
		t.Errorf("%+v", mail)
	}
	if got := s.Send("POST", "/api/gateway/targets/"+mail["id"].(string)+"/secret", ""); got.StatusCode != 400 {
		t.Errorf("%d %s", got.StatusCode, got.Text)
	}
	if got := s.Send("POST", "/api/gateway/targets/"+mail["id"].(string)+"/test", ""); got.StatusCode != 502 || !strings.Contains(got.Text, "smtp_host") {
		t.Errorf("%d %s", got.StatusCode, got.Text)
	}
}
