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
	return notify.New(notify.Options{Guard: notify.Guard{Loopback: true}, Push: notify.Push{
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
	if audience := b.Audience(public); audience != b.URL() {
		t.Errorf("aud: %s", audience)
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
