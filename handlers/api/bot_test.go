package api_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
)

const noBotConfig = `{"transport":"matrix","homeserver":null,"username":null,"password":null,"team_bot_token":null,"team_signing_secret":null}`

func TestBotConfigIsReplacedEntirely(t *testing.T) {
	bot := &gatewaytest.Bot{}
	h, path := gatewaytest.NewWithBot(t, bot)
	steps := []struct{ name, post, get string }{
		{"no file", "", noBotConfig},
		{
			"matrix", `{"transport":"matrix","homeserver":"https://m.example","username":"bot","password":"p<\"&"}`,
			`{"transport":"matrix","homeserver":"https://m.example","username":"bot","password":"p<\"&","team_bot_token":null,"team_signing_secret":null}`,
		},
		{
			"team leaves the rest out", `{"transport":"team","team_bot_token":"xoxb-1","team_signing_secret":"","extra":1}`,
			`{"transport":"team","homeserver":null,"username":null,"password":null,"team_bot_token":"xoxb-1","team_signing_secret":""}`,
		},
		{"only transport", `{"transport":"matrix","homeserver":null}`, noBotConfig},
	}
	for _, step := range steps {
		if step.post != "" {
			if w := gatewaytest.Ask(h, "POST", "/api/gateway/bot-config", step.post); w.Code != 200 || w.Body.String() != `{"ok":true}` {
				t.Errorf("%s: POST = %d %s", step.name, w.Code, w.Body)
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: file %v, %v; want mode 0600", step.name, info, err)
			}
		}
		w := gatewaytest.Ask(h, "GET", "/api/gateway/bot-config", "")
		if w.Code != 200 || w.Body.String() != step.get || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: GET = %d %s %q", step.name, w.Code, w.Body, w.Header())
		}
	}
	if n := bot.Restarts.Load(); n != 3 {
		t.Errorf("bot restarted %d times, want 3", n)
	}
}

func TestHandEditsOfTheBotFileAreRead(t *testing.T) {
	h, path := gatewaytest.NewWithBot(t, &gatewaytest.Bot{})
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("transport = 'team'\nteam_bot_token = 'xoxb-hand'\n")
	if w := gatewaytest.Ask(h, "GET", "/api/gateway/bot-config", ""); !strings.Contains(w.Body.String(), `"team_bot_token":"xoxb-hand"`) {
		t.Errorf("GET = %d %s", w.Code, w.Body)
	}
	write("transport = 'team'\npassword = canary-secret\n")
	w := gatewaytest.Ask(h, "GET", "/api/gateway/bot-config", "")
	if w.Code != 500 || !strings.Contains(w.Body.String(), path) || !strings.Contains(w.Body.String(), "line 2") {
		t.Errorf("unparsable: GET = %d %s; want 500 with file and line", w.Code, w.Body)
	}
	if strings.Contains(w.Body.String(), "canary") {
		t.Errorf("the error shows the content of the file: %s", w.Body)
	}
}

func TestBotConfigRefusals(t *testing.T) {
	bot := &gatewaytest.Bot{}
	h, path := gatewaytest.NewWithBot(t, bot)
	for _, test := range []struct {
		name, body string
		status     int
	}{
		{"empty", "", 400},
		{"not JSON", `{`, 400},
		{"array", `[]`, 400},
		{"trailing", `{"transport":"matrix"} x`, 400},
		{"no transport", `{}`, 400},
		{"null transport", `{"transport":null}`, 400},
		{"unknown transport", `{"transport":"irc"}`, 400},
		{"empty transport", `{"transport":""}`, 400},
		{"mistyped transport", `{"transport":1}`, 400},
		{"mistyped field", `{"transport":"matrix","password":[]}`, 400},
		{"too large", `{"transport":"` + strings.Repeat("m", 1<<20) + `"}`, 413},
	} {
		w := gatewaytest.Ask(h, "POST", "/api/gateway/bot-config", test.body)
		if w.Code != test.status || !strings.HasPrefix(w.Body.String(), `{"ok":false,"error":"`) {
			t.Errorf("%s: POST = %d %s", test.name, w.Code, w.Body)
		}
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a refused configuration was written: %v", err)
	}
	if n := bot.Restarts.Load(); n != 0 {
		t.Errorf("bot restarted %d times", n)
	}
}

func TestFailedSaveIsReported(t *testing.T) {
	bot := &gatewaytest.Bot{}
	h, path := gatewaytest.NewWithBot(t, bot)
	if err := os.Mkdir(path, 0o700); err != nil { // a directory cannot be replaced by a file
		t.Fatal(err)
	}
	w := gatewaytest.Ask(h, "POST", "/api/gateway/bot-config", `{"transport":"matrix"}`)
	if w.Code != 500 || !strings.HasPrefix(w.Body.String(), `{"ok":false,"error":"the bot configuration could not be saved: `) {
		t.Errorf("POST = %d %s", w.Code, w.Body)
	}
	if n := bot.Restarts.Load(); n != 0 {
		t.Errorf("bot restarted %d times after a failed save", n)
	}
	os.Remove(path)
	bot.OnRestart = func(context.Context) error { return domain.Errorf(domain.Unavailable, "it hangs") }
	w = gatewaytest.Ask(h, "POST", "/api/gateway/bot-config", `{"transport":"matrix"}`)
	if w.Code != 500 || !strings.Contains(w.Body.String(), "it hangs") {
		t.Errorf("failed restart: POST = %d %s", w.Code, w.Body)
	}
}

func TestSavesFollowEachOtherAndAnswerInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bot := &gatewaytest.Bot{OnRestart: func(ctx context.Context) error {
			<-ctx.Done() // the old bot does not end
			return domain.Errorf(domain.Unavailable, "the old bot has not stopped yet")
		}}
		var running, most atomic.Int32
		inner := bot.OnRestart
		bot.OnRestart = func(ctx context.Context) error {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			return inner(ctx)
		}
		h, _ := gatewaytest.NewWithBot(t, bot)
		began := time.Now()
		var saves sync.WaitGroup
		for range 5 {
			saves.Go(func() {
				w := gatewaytest.Ask(h, "POST", "/api/gateway/bot-config", `{"transport":"team"}`)
				if w.Code != 500 || !strings.HasPrefix(w.Body.String(), `{"ok":false,`) {
					t.Errorf("POST = %d %s", w.Code, w.Body)
				}
			})
		}
		synctest.Wait()
		if w := gatewaytest.Ask(h, "GET", "/api/gateway/bot", ""); w.Code != 200 {
			t.Errorf("meanwhile: GET = %d", w.Code)
		}
		saves.Wait()
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("saves took %v", took)
		}
		if most.Load() != 1 {
			t.Errorf("%d restarts at once", most.Load())
		}
	})
}

func TestBotStatusAndTest(t *testing.T) {
	bot := &gatewaytest.Bot{}
	h, _ := gatewaytest.NewWithBot(t, bot)
	w := gatewaytest.Ask(h, "GET", "/api/gateway/bot", "")
	if want := `{"transport":"matrix","state":"off","detail":"Not set up","since_ms":1,"rooms":[],"operators":0,"heard_ms":null}`; w.Code != 200 || w.Body.String() != want {
		t.Errorf("GET = %d %s", w.Code, w.Body)
	}
	if w := gatewaytest.Ask(h, "POST", "/api/gateway/bot/test", ""); w.Code != 200 || w.Body.String() != `{"ok":true}` {
		t.Errorf("test = %d %s", w.Code, w.Body)
	}
	bot.TestError = domain.Errorf(domain.BadGateway, "the bot is off")
	if w := gatewaytest.Ask(h, "POST", "/api/gateway/bot/test", ""); w.Code != 502 || w.Body.String() != `{"ok":false,"error":"the bot is off"}` {
		t.Errorf("failed test = %d %s", w.Code, w.Body)
	}
}
