package notify_test

import (
	"encoding/base64"
	"mime"
	"net/http"
	"os"
	"strings"
	"testing"
	"unicode/utf16"

	"switchyard/internal/domain"
	"switchyard/internal/notify"
)

// TestEachKindIsDocumented: the manual and the API's description name it.
func TestEachKindIsDocumented(t *testing.T) {
	for _, path := range []string{"../../docs/notifications.md", "../../handlers/api/openapi.json"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, scheme := range notify.Schemes() {
			if scheme != "http" && !strings.Contains(string(text), scheme+":") {
				t.Errorf("%s does not name %s", path, scheme)
			}
		}
	}
}

// TestEachKindIsToldInItsForm, and no text pings, formats, or adds a header.
func TestEachKindIsToldInItsForm(t *testing.T) {
	r := newReceiver(t, nil)
	inert := func(t *testing.T, text any) {
		t.Helper()
		s, _ := text.(string)
		for _, live := range []string{"@everyone", "<!channel>", "*bold*", "](http", "\r", "\u202e", "#tag", ":smile:", " /start", "https://evil.test"} {
			if strings.Contains(s, live) {
				t.Errorf("%q has %q", s, live)
			}
		}
		if !strings.Contains(s, "blocked") || !strings.Contains(s, "pay") {
			t.Errorf("%q says too little", s)
		}
	}
	linked := func(t *testing.T, text any) {
		t.Helper()
		if s, _ := text.(string); !strings.HasSuffix(s, "\nhttps://yard.example/projects/alpha") {
			t.Errorf("%q has no link", s)
		}
	}
	for url, check := range map[string]func(t *testing.T, got received){
		"https://hooks.example/a/b?c=d": func(t *testing.T, got received) {
			want := `{"type":"story_blocked","timestamp":"2023-11-14T22:13:20.123Z","data":{"id":7,"story_name":"\u003cb\u003e"}}`
			if got.path != "/a/b?c=d" || got.body != want || got.header.Get("webhook-id") != "db_t_7" {
				t.Errorf("%+v", got)
			}
		},
		"http://hooks.example:8080/": func(t *testing.T, got received) {
			if got.path != "/" || got.host != "hooks.example:8080" {
				t.Errorf("%+v", got)
			}
		},
		"ntfy://me:s3cret@ntfy.example/alerts": func(t *testing.T, got received) {
			title, err := new(mime.WordDecoder).DecodeHeader(got.header.Get("Title"))
			if err != nil || !strings.HasPrefix(title, "alpha: @everyone") || strings.ContainsAny(title, "\r\n") {
				t.Errorf("title %q, %v", title, err)
			}
			if got.path != "/alerts" || got.header.Get("Priority") != "high" || got.header.Get("Bcc") != "" ||
				got.header.Get("Click") != "https://yard.example/projects/alpha" ||
				got.header.Get("Authorization") != "Basic "+base64.StdEncoding.EncodeToString([]byte("me:s3cret")) ||
				!strings.HasPrefix(got.body, "■ alpha · blocked") || strings.ContainsAny(got.body, "\r\u202e") {
				t.Errorf("%+v", got)
			}
		},
		"gotify://gotify.example/below/AbC?disabletls=no": func(t *testing.T, got received) {
			if got.path != "/below/message" || got.header.Get("X-Gotify-Key") != "AbC" || got.field("priority") != 8.0 || got.field("title") == "" {
				t.Errorf("%+v", got)
			}
		},
		"discord://to-ken@123": func(t *testing.T, got received) {
			inert(t, got.field("content"))
			linked(t, got.field("content"))
			allowed, _ := got.field("allowed_mentions").(map[string]any)
			if parse, _ := allowed["parse"].([]any); got.host != "discord.com" || got.path != "/api/webhooks/123/to-ken" || parse == nil || len(parse) > 0 {
				t.Errorf("%+v", got)
			}
		},
		"slack://hook:A1-B2-c3@webhook": func(t *testing.T, got received) {
			text, _ := got.field("text").(string)
			if got.host != "hooks.slack.com" || got.path != "/services/A1/B2/c3" || got.field("mrkdwn") != false || got.field("parse") != "none" ||
				!strings.Contains(text, "&lt;!channel&gt;") || strings.Count(text, "<") != 1 || !strings.HasSuffix(text, "\n<https://yard.example/projects/alpha>") {
				t.Errorf("%+v", got)
			}
		},
		"mattermost://chat.example/key": func(t *testing.T, got received) {
			inert(t, got.field("text"))
			linked(t, got.field("text"))
			if got.path != "/hooks/key" || got.host != "chat.example" {
				t.Errorf("%+v", got)
			}
		},
		"telegram://12:AbC@telegram?chats=-100,@room": func(t *testing.T, got received) {
			text, _ := got.field("text").(string)
			linked(t, text)
			for _, live := range []string{"@everyone", "#tag", " /start", "\r", "https://evil"} {
				if strings.Contains(text, live) {
					t.Errorf("%q has %q", text, live)
				}
			}
			if got.host != "api.telegram.org" || got.path != "/bot12:AbC/sendMessage" || got.field("chat_id") != "@room" || got.field("parse_mode") != nil {
				t.Errorf("%+v", got)
			}
		},
		"pushover://shoutrrr:to-ken@user/?devices=phone": func(t *testing.T, got received) {
			if got.host != "api.pushover.net" || got.path != "/1/messages.json" || got.field("token") != "to-ken" || got.field("user") != "user" || got.field("device") != "phone" || got.field("html") != nil {
				t.Errorf("%+v", got)
			}
		},
	} {
		t.Run(url, func(t *testing.T) {
			if _, err := r.Check(t.Context(), domain.Secret(url)); err != nil && !strings.HasPrefix(url, "http:") {
				t.Fatal(err)
			}
			if sent := r.Send(t.Context(), target(url), message()); sent.Err != nil || sent.Status != 200 {
				t.Fatalf("%+v", sent)
			}
			got := r.last(t)
			if agent := got.header.Get("User-Agent"); agent != "switchyard/test" {
				t.Errorf("agent %q", agent)
			}
			check(t, got)
		})
	}
}

func TestOtherAddressesAreRefusedWithTheKnownForms(t *testing.T) {
	s := notify.New(notify.Options{})
	for _, url := range []string{
		"", "sms://1", "ftp://a/b", "javascript:alert(1)", "discord://123", "slack://xoxb-1@general", "telegram://1:a@telegram", "telegram://telegram?chats=1", "pushover://user/", "slack://webhook", "pushover://a@b",
		"ntfy://host", "gotify://host", "mailto:", "mailto:a@b.example?bcc=c@d.example", "mailto:nobody", "https://", "https:///x", "https://a b/", "https://a/#x",
		"https://a/" + strings.Repeat("x", 5000), "mailto:a@b.example%0d%0aBcc:c@d.example",
	} {
		_, err := s.Check(t.Context(), domain.Secret(url))
		if domain.CodeOf(err) != domain.Invalid || !strings.HasPrefix(domain.MessageOf(err), "url: ") {
			t.Errorf("%s: %v", url, err)
		}
		if _, scheme, _ := strings.Cut(url, "://"); (scheme == "1" || scheme == "a/b") && !strings.Contains(domain.MessageOf(err), "pushover://") {
			t.Errorf("%s: %v names no forms", url, err)
		}
	}
}

func TestAddressesOfNoPortOrSchemeAreRefusedInWords(t *testing.T) {
	s := notify.New(notify.Options{})
	for url, want := range map[string]string{
		"ntfy://ntfy.example/topic?scheme=ftp":       "url: scheme must be http or https",
		"gotify://gotify.example/t?disabletls=maybe": "url: disabletls must be yes or no", "mattermost://chat.example/t?disabletls=on": "url: disabletls must be yes or no",
		"ntfy://ntfy.example:99999/topic": "url: the port must be from 1 to 65535", "https://hooks.example:0/x": "url: the port must be from 1 to 65535",
		"mattermost://chat.example:65536/key": "url: the port must be from 1 to 65535",
	} {
		if _, err := s.Check(t.Context(), domain.Secret(url)); domain.CodeOf(err) != domain.Invalid || domain.MessageOf(err) != want {
			t.Errorf("%s: %v, want %s", url, err, want)
		}
	}
}

func TestAddressesAreShownWithoutTheirSecrets(t *testing.T) {
	for url, want := range map[string]string{
		"https://me:pw@hooks.example:8443/a?b=c": "https://hooks.example:8443/…", "mailto:a@b.example": "mailto:a@b.example",
		"ntfy://me:pw@ntfy.example/topic": "ntfy://ntfy.example/…", "discord://t@1": "discord://…", "slack://hook:A-B-C@webhook": "slack://…",
		"pushover://shoutrrr:t@user/": "pushover://…", "telegram://1:a@telegram?chats=1": "telegram://…", "nonsense": "…",
	} {
		if got := new(notify.Sender).Shown(domain.Secret(url)); got != want {
			t.Errorf("%s is shown as %s", url, got)
		}
	}
}

// TestSeveralRoomsAreNotToldTwice: the next attempt sends only what was not accepted.
func TestSeveralRoomsAreNotToldTwice(t *testing.T) {
	n := 0
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		if n++; n == 2 {
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	to := target("telegram://1:a@telegram?chats=a,b,c")
	sent := r.Send(t.Context(), to, message())
	if sent.Err == nil || sent.Parts != 1 || sent.Status != 429 {
		t.Fatalf("%+v", sent)
	}
	to.Progress.Parts = sent.Parts
	if sent = r.Send(t.Context(), to, message()); sent.Err != nil || sent.Parts != 3 {
		t.Fatalf("%+v", sent)
	}
	var chats []any
	for _, got := range r.got {
		chats = append(chats, got.field("chat_id"))
	}
	if got := len(chats); got != 4 || chats[0] != "a" || chats[1] != "b" || chats[2] != "b" || chats[3] != "c" {
		t.Errorf("%v", chats)
	}
}

// TestATextFitsItsServiceOnceItIsEscaped, and keeps its link.
func TestATextFitsItsServiceOnceItIsEscaped(t *testing.T) {
	r := newReceiver(t, nil)
	long := message()
	long.Text, long.Link = strings.Repeat("*_@😀<&", 5000), "https://yard.example/"+strings.Repeat("x", 470)
	for url, c := range map[string]struct {
		field string
		limit int
	}{
		"discord://to-ken@123": {"content", 2000}, "mattermost://chat.example/key": {"text", 4000}, "slack://hook:A-B-C@webhook": {"text", 40000},
		"telegram://1:a@telegram?chats=a": {"text", 4096}, "pushover://shoutrrr:to-ken@user/": {"message", 2 * 1024}, "ntfy://ntfy.example/topic": {"", 4096},
	} {
		if sent := r.Send(t.Context(), target(url), long); sent.Err != nil {
			t.Fatal(sent.Err)
		}
		got := r.last(t)
		text, units := got.body, len(got.body)
		if c.field != "" {
			text, _ = got.field(c.field).(string)
			units = len(utf16.Encode([]rune(text)))
		}
		link, _ := got.field("url").(string)
		if units > c.limit || units < 500 || !strings.Contains(text+link+got.header.Get("Click"), long.Link) {
			t.Errorf("%s: %d of %d: %s", url, units, c.limit, text)
		}
	}
}
