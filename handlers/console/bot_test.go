package console_test

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchyard/internal/browsertest"
	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
)

func TestBotPageContainsNoSecret(t *testing.T) {
	h, path := gatewaytest.NewWithBot(t, &gatewaytest.Bot{})
	text := "transport = 'team'\npassword = 'canary-1'\nteam_bot_token = 'canary-2'\nteam_signing_secret = 'canary-3'\nhomeserver = 'canary-4'\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w := gatewaytest.Ask(h, "GET", "/bot-config", "")
	if w.Code != 200 || w.Header().Get("Content-Type") != "text/html; charset=utf-8" || strings.Contains(w.Body.String(), "canary") {
		t.Errorf("GET = %d %s\n%s", w.Code, w.Header(), w.Body)
	}
}

func TestBotPageFillsSavesAndTests(t *testing.T) {
	browsertest.Parallel(t)
	bot := &gatewaytest.Bot{}
	h, path := gatewaytest.NewWithBot(t, bot)
	server := httptest.NewServer(h)
	defer server.Close()
	tab := browsertest.Open(t)

	shows := func(want ...string) {
		t.Helper()
		all := []string{"Homeserver URL", "Bot username", "Password", "Bot token", "Signing secret"}
		var got []string
		for _, label := range all {
			if len(tab.All("textbox", label)) > 0 {
				got = append(got, label)
			}
		}
		if strings.Join(got, ", ") != strings.Join(want, ", ") {
			t.Errorf("shown are the fields %q, want %q", got, want)
		}
	}
	stored := func(want string) {
		t.Helper()
		if w := gatewaytest.Ask(h, "GET", "/api/gateway/bot-config", ""); w.Body.String() != want {
			t.Errorf("stored %s\nwant   %s", w.Body, want)
		}
	}

	tab.Goto(server.URL + "/bot-config")
	tab.Find("heading", "Bot configuration")
	shows("Homeserver URL", "Bot username", "Password")
	tab.WaitText("Not set up")
	tab.Find("textbox", "Homeserver URL").Type("https://m.example")
	tab.Find("textbox", "Bot username").Type("yard")
	tab.Find("textbox", "Password").Type("secret <&\"")
	tab.Find("button", "Save").Click()
	tab.WaitText("Saved. The bot was restarted.")
	stored(`{"transport":"matrix","homeserver":"https://m.example","username":"yard","password":"secret <&\"","team_bot_token":null,"team_signing_secret":null}`)

	tab.Find("combobox", "Transport").Call("function() { this.value = 'team'; this.dispatchEvent(new Event('change', {bubbles: true})) }")
	shows("Bot token", "Signing secret")
	tab.Wait("document.getElementById('bot-saved').textContent === ''") // it was said of another one
	tab.WaitText("Saving erases what is stored for the other transport: Homeserver URL, Bot username and Password.")
	tab.Find("textbox", "Bot token").Type("xoxb-1")
	tab.Keys("\r")
	tab.WaitText("Saved, but the bot is off until it has Signing secret.")
	tab.Wait("document.getElementById('bot-erases').hidden")
	tab.Find("textbox", "Signing secret").Type("s")
	tab.Keys("\r")
	tab.Wait("document.getElementById('bot-saved').textContent.startsWith('Saved')")
	stored(`{"transport":"team","homeserver":null,"username":null,"password":null,"team_bot_token":"xoxb-1","team_signing_secret":"s"}`)

	// Reloading the page shows what is stored.
	tab.Goto(server.URL + "/bot-config")
	tab.Wait("document.getElementById('team_bot_token').value === 'xoxb-1' && document.getElementById('transport').value === 'team'")
	shows("Bot token", "Signing secret")

	tab.Find("button", "Send a test message").Click()
	tab.WaitText("Sent.")
	bot.TestError = domain.Errorf(domain.BadGateway, "the bot is in no room")
	tab.Find("button", "Send a test message").Click()
	tab.WaitText("the bot is in no room")

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(path, "in-the-way"), 0o700); err != nil {
		t.Fatal(err)
	}
	tab.Find("button", "Save").Click()
	tab.WaitText("the bot configuration could not be saved: ")
	tab.Complaints() // the browser logs each error status

	tab.Goto(server.URL + "/bot-config")
	tab.WaitText("the bot configuration cannot be read: ")
	tab.Complaints()
}

func TestBotPageKeepsWhatIsTypedWhileTheFrameChanges(t *testing.T) {
	browsertest.Parallel(t)
	h, _ := gatewaytest.NewWithBot(t, &gatewaytest.Bot{})
	server := httptest.NewServer(h)
	defer server.Close()
	if w := gatewaytest.Ask(h, "POST", "/api/gateway/projects", `{"name":"alpha","url":"http://127.0.0.1:1"}`); w.Code != 200 {
		t.Fatal(w.Body)
	}
	tab := browsertest.Open(t)
	tab.Goto(server.URL + "/bot-config")
	tab.Find("textbox", "Bot username").Type("half-typed")
	tab.Find("combobox", "Active").Call("function() { this.value = 'alpha' }")
	tab.Find("button", "Switch").Click()
	tab.Wait("document.querySelector('#active-project option[selected]')?.value === 'alpha'")
	tab.Wait("document.getElementById('username').value === 'half-typed'")
}
