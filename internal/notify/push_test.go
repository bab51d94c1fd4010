package notify_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"switchyard/internal/domain"
	"switchyard/internal/notify"
	"switchyard/internal/pushtest"
)

func pushing(t testing.TB) (*notify.Sender, string) {
	t.Helper()
	keys, err := notify.SomeKeys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return notify.New(notify.Options{Guard: notify.Guard{Private: true, Loopback: true}, Push: notify.Push{
		Keys: func(context.Context) (domain.PushKeys, error) { return keys, nil },
	}}), keys.Public
}

func TestABrowserReadsWhatIsPushedToIt(t *testing.T) {
	b := pushtest.New(t)
	sender, public := pushing(t)
	target := domain.Target{URL: b.Device().Address()}
	if _, err := sender.Check(t.Context(), target.URL); err != nil {
		t.Fatal(err)
	}
	m := domain.Message{
		ID: "id", Title: "Blocked: Pay by card", Text: strings.Repeat("waiting \U0001f511 ", 1000), Link: "https://yard.example/x",
		Signal: domain.SignalStop,
	}
	if sent := sender.Send(t.Context(), target, m); sent.Err != nil || sent.Status != http.StatusCreated {
		t.Fatalf("%+v", sent)
	}
	got := b.Read()
	if got["title"] != m.Title || !strings.HasPrefix(got["body"], "waiting \U0001f511") || got["link"] != m.Link || got["tag"] != "id" {
		t.Errorf("%v", got)
	}
	if audience, subject := b.Claims(public); audience != b.URL() || subject != "mailto:switchyard@example.com" {
		t.Errorf("aud: %s, sub: %s", audience, subject)
	}
	if b.Header().Get("Content-Encoding") != "aes128gcm" || b.Header().Get("Urgency") != "high" || b.Header().Get("Ttl") == "" {
		t.Errorf("%v", b.Header())
	}
	if shown := sender.Shown(target.URL); shown != "webpush://"+strings.TrimPrefix(b.URL(), "http://")+"/…" {
		t.Errorf("shown as %s", shown)
	}
}

func TestTheLongestMessageFitsIntoAPush(t *testing.T) {
	b := pushtest.New(t)
	sender, _ := pushing(t)
	m := domain.Message{
		ID: strings.Repeat("i", 100), Title: strings.Repeat("\x01", 5000), Text: strings.Repeat("<", 5000),
		Link: "https://yard.example/" + strings.Repeat("x", 4000),
	}
	if sent := sender.Send(t.Context(), domain.Target{URL: b.Device().Address()}, m); sent.Err != nil {
		t.Fatal(sent.Err)
	}
	if got := b.Read(); got["title"] == "" || got["link"] != "" {
		t.Errorf("%v", got)
	}
}

func TestASubscriptionThatIsOverIsGone(t *testing.T) {
	b := pushtest.New(t)
	sender, _ := pushing(t)
	target := domain.Target{URL: b.Device().Address()}
	for status, gone := range map[int]bool{404: true, 410: true, 500: false, 302: false} {
		b.Answer(status)
		if sent := sender.Send(t.Context(), target, domain.Message{}); sent.Err == nil || sent.Gone() != gone {
			t.Errorf("%d: %+v", status, sent)
		}
	}
}

func TestSubscriptionsAreChecked(t *testing.T) {
	b := pushtest.New(t)
	sender, _ := pushing(t)
	for name, change := range map[string]func(d *domain.PushDevice){
		"endpoint": func(d *domain.PushDevice) { d.Endpoint = "ftp://push.example/" },
		"local":    func(d *domain.PushDevice) { d.Endpoint = "http://169.254.169.254/" },
		"point":    func(d *domain.PushDevice) { d.P256dh = "BAAA" },
		"auth":     func(d *domain.PushDevice) { d.Auth = "AAAA" },
	} {
		d := b.Device()
		change(&d)
		if _, err := sender.Check(t.Context(), d.Address()); domain.CodeOf(err) != domain.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAnEndpointIsAPublicOneByHTTPS, also where the gateway listens on loopback: everybody who sees the console may enter one.
func TestAnEndpointIsAPublicOneByHTTPS(t *testing.T) {
	b := pushtest.New(t)
	s := notify.New(notify.Options{Guard: notify.Guard{Loopback: true}, Push: notify.Push{Keys: notify.SomeKeys}})
	for endpoint, allowed := range map[string]bool{
		b.URL() + "/": false, strings.Replace(b.URL(), "http:", "https:", 1) + "/": false, "https://10.0.0.1/": false, "https://[::1]/": false,
		"http://push.example/": false, "https://push.example/": true, "https://8.8.8.8/": true,
	} {
		d := b.Device()
		d.Endpoint = endpoint
		if _, err := s.Check(t.Context(), d.Address()); (err == nil) != allowed || err != nil && !strings.HasPrefix(domain.MessageOf(err), "endpoint: ") {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
	d := b.Device()
	d.Endpoint = strings.Replace(b.URL(), "http://127.0.0.1", "https://localhost", 1)
	for _, endpoint := range []string{b.Device().Endpoint, d.Endpoint} { // what was stored before, and a name
		d.Endpoint = endpoint
		if sent := s.Send(t.Context(), domain.Target{URL: d.Address()}, message()); !strings.Contains(domain.MessageOf(sent.Err), "address not allowed: loopback") || b.Got() {
			t.Errorf("%s: %+v", endpoint, sent)
		}
	}
}

// TestPushServicesLearnWhoSends: the gateway's address where they could reach it, else a mail address.
func TestPushServicesLearnWhoSends(t *testing.T) {
	b := pushtest.New(t)
	keys, err := notify.SomeKeys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for public, want := range map[string]string{
		"https://yard.example.org": "https://yard.example.org", "https://yard.example.org:8443": "https://yard.example.org:8443", "": "mailto:y@example.org",
		"https://yard": "mailto:y@example.org", "https://yard.internal": "mailto:y@example.org", "https://yard.LAN.": "mailto:y@example.org", "https://192.168.0.7": "mailto:y@example.org",
		"https://[fd12::1]": "mailto:y@example.org", "http://yard.example.org": "mailto:y@example.org",
	} {
		s := notify.New(notify.Options{
			Guard: notify.Guard{Private: true}, Mail: notify.Mail{SMTPFrom: "Yard <y@example.org>"},
			Push: notify.Push{PublicURL: public, Keys: func(context.Context) (domain.PushKeys, error) { return keys, nil }},
		})
		if sent := s.Send(t.Context(), domain.Target{URL: b.Device().Address()}, message()); sent.Err != nil {
			t.Fatal(sent.Err)
		}
		if _, subject := b.Claims(keys.Public); subject != want {
			t.Errorf("%q: %s, want %s", public, subject, want)
		}
		s.Close()
	}
}
