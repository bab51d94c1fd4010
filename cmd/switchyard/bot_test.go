package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"switchyard/internal/bottest"
	"switchyard/internal/browsertest"
	"switchyard/internal/domain"
	"switchyard/internal/waittest"
)

// yardWithBot is a project server and a gateway whose bot an administrator sets up in the browser.
type yardWithBot struct {
	*testing.T
	work    stories
	gateway *process
	begin   func() *process
	tab     *browsertest.Tab
	logs    []*process
}

func newYardWithBot(t *testing.T, operator, teamAPI string) *yardWithBot {
	browsertest.Needed(t)
	dir := t.TempDir()
	y := &yardWithBot{T: t, work: newStories(t, filepath.Join(dir, "work"), 20)}
	project := start(t, switchyard(t, dir, "project", "--name=alpha", "--work="+y.work.dir, "--listen=127.0.0.1:0", "--allow-writes"))
	settings := fmt.Sprintf("[bot]\noperators = [%q]\nteam_api_url = %q\n[[projects]]\nname = 'alpha'\nurl = %q\n", operator, teamAPI, project.url)
	if err := os.WriteFile(filepath.Join(dir, "switchyard.toml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	y.begin = func() *process {
		y.gateway = start(t, switchyard(t, dir, "gateway", "--config=DIR/switchyard.toml", "--listen="+address))
		y.logs = append(y.logs, y.gateway)
		return y.gateway
	}
	y.begin()
	y.tab = browsertest.Open(t)
	y.tab.Goto(y.gateway.url + "/bot-config")
	y.tab.WaitText("Not set up")
	return y
}

// moveAndKill moves a few stories, and kills the gateway at a different moment after each.
func (y *yardWithBot) moveAndKill(first, last int, posted func() int) {
	y.Helper()
	y.tab.Goto("about:blank") // the page would complain, rightly
	for story := first; story <= last; story++ {
		before := posted()
		y.work.move(story, "1_backlog", "2_current")
		switch story % 3 {
		case 0: // before it is posted
		case 1: // as it is posted
			waittest.Until(y.T, "the move posted", func() bool { return posted() > before })
		case 2: // as it has come into the stream
			waittest.Until(y.T, "the move in the stream", func() bool { return len(remote{y.T, y.gateway.url}.stream()) > story-1 })
		}
		y.gateway.killHard()
		y.begin()
	}
}

// endsCleanly stops the gateway and searches the logs of all gateways for secrets.
func (y *yardWithBot) endsCleanly() {
	y.Helper()
	if status, took := y.gateway.stop(y.T, syscall.SIGTERM); status != 0 {
		y.Errorf("exit status %d after %v", status, took)
	}
	for _, p := range y.logs {
		if strings.Contains(p.stderr.String(), "canary") {
			y.Errorf("a secret in the log:\n%s", &p.stderr)
		}
	}
}

func TestTheBotFromTheBrowserToAMatrixRoom(t *testing.T) {
	hs := bottest.NewHomeserver(t)
	y := newYardWithBot(t, bottest.Operator, "http://127.0.0.1:1/")
	y.tab.Find("textbox", "Homeserver URL").Type(hs.HTTP.URL)
	y.tab.Find("textbox", "Bot username").Type("yard")
	y.tab.Find("textbox", "Password").Type("wrong")
	y.tab.Find("button", "Save").Click()
	y.tab.WaitText("Check Bot username and Password")
	y.tab.Find("textbox", "Password").Type(bottest.Password)
	y.tab.Find("button", "Save").Click()
	y.tab.WaitText("Connected, but in no room")
	hs.Create("!ops", "Operations", bottest.Operator, false)
	hs.Invite("!ops", bottest.Operator)
	y.tab.WaitText("Operations")

	posts := func() (bodies []string) {
		for _, p := range hs.Posts("!ops") {
			bodies = append(bodies, p.Body)
		}
		return bodies
	}
	y.work.move(0, "1_backlog", "2_current")
	waittest.Until(t, "the move posted", func() bool { return len(posts()) == 1 })
	hs.Say("!ops", bottest.Operator, "status")
	waittest.Until(t, "the command answered", func() bool { return len(posts()) == 2 })
	if got := posts()[1]; !strings.HasPrefix(got, "Active project: alpha\n1 project, 1 reachable") {
		t.Errorf("status: %q", got)
	}
	for i, asked := range []struct{ command, answer string }{
		{"flow alpha", "alpha: 0 stories finished in 90 days, too few to say how long a story takes; 1 in work."},
		{"forecast alpha 5", "alpha: No forecast: 0 stories were finished in 0 days so far; it needs 10 of each."},
	} {
		hs.Say("!ops", bottest.Operator, asked.command)
		waittest.Until(t, asked.command+" answered", func() bool { return len(posts()) == 3+i })
		if got := posts()[2+i]; got != asked.answer {
			t.Errorf("%s: %q, want %q", asked.command, got, asked.answer)
		}
	}
	y.moveAndKill(1, 9, func() int { return len(posts()) })
	waittest.Until(t, "all moves posted", func() bool { return len(posts()) >= 13 })
	y.work.move(10, "1_backlog", "2_current")
	waittest.Until(t, "the last move posted", func() bool { return strings.Contains(strings.Join(posts(), "\n"), "10_story") })
	want := []string{"alpha · 0_story · Story number 0 · Backlog → Current"}
	for i := 1; i <= 10; i++ {
		want = append(want, fmt.Sprintf("alpha · %d_story · Story number %d · Backlog → Current", i, i))
	}
	if got := slices.Delete(posts(), 1, 4); !slices.Equal(got, want) {
		t.Errorf("posted %q\nwant   %q", got, want)
	}
	hs.Say("!ops", bottest.Operator, "move 10 qa")
	for _, want := range []string{"10_story is now in QA.", "alpha · 10_story · Story number 10 · Current → QA"} {
		waittest.Until(t, want, func() bool { return slices.Contains(posts(), want) })
	}
	var audit struct {
		Entries []struct{ Who, Via, Action, Subject string }
	}
	remote{y.T, y.gateway.url}.get("/api/gateway/audit?limit=1", &audit)
	if got, want := fmt.Sprint(audit.Entries), fmt.Sprintf("[{%s bot story.changed alpha/10_story}]", bottest.Operator); got != want {
		t.Errorf("the audit says %s, want %s", got, want)
	}
	hs.Say("!ops", bottest.Operator, "story 10")
	waittest.Until(t, "the story shown", func() bool {
		return strings.HasPrefix(posts()[len(posts())-1], "alpha · 10_story · Story number 10\nQA since ")
	})
	y.endsCleanly()
}

func TestTheBotFromTheBrowserToASlackChannel(t *testing.T) {
	slack := bottest.NewWorkspace(t)
	slack.Patient = true // a killed bot does not tell the next one when it posted
	y := newYardWithBot(t, bottest.TeamOperator, slack.HTTP.URL+"/api/")
	y.tab.Find("combobox", "Transport").Call("function() { this.value = 'team'; this.dispatchEvent(new Event('change', {bubbles: true})) }")
	y.tab.Find("textbox", "Bot token").Type(bottest.BotToken)
	y.tab.Find("textbox", "Signing secret").Type(bottest.SigningSecret)
	y.tab.Find("button", "Save").Click()
	y.tab.WaitText("#ops")

	posts := func() (texts []string) {
		slack.Do(func() {
			for _, p := range slack.Posts {
				texts = append(texts, p.Text)
			}
		})
		return texts
	}
	y.tab.Find("button", "Send a test message").Click()
	y.tab.WaitText("Sent.")
	body := url.Values{"user_id": {bottest.TeamOperator}, "text": {"projects"}}.Encode()
	waittest.Until(t, "the command answered", func() bool { // a busy machine may take longer than Slack waits
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, y.gateway.url+"/bot/team/commands", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header = bottest.Signature(bottest.SigningSecret, time.Now(), body)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var answer struct{ Text string }
		return json.NewDecoder(response.Body).Decode(&answer) == nil && strings.HasPrefix(answer.Text, "*1 project*\n● *alpha* (active): Backlog 20")
	})
	y.moveAndKill(1, 6, func() int { return len(posts()) })
	waittest.Until(t, "all moves posted", func() bool { return strings.Contains(strings.Join(posts(), "\n"), "`6_story`") })
	var want []string
	for i := 1; i <= 6; i++ {
		want = append(want, fmt.Sprintf("*alpha* · `%d_story` · Story number %d · Backlog → Current", i, i))
	}
	got := posts()[1:]
	if !slices.Equal(slices.Compact(slices.Clone(got)), want) { // each kill may repeat the message that was under way
		t.Errorf("posted %q\nwant   %q", got, want)
	}
	y.endsCleanly()
}

// A chat network is a row of each table.
func TestEveryChatNetworkHasATransport(t *testing.T) {
	var networks []domain.BotTransport
	for _, network := range domain.BotNetworks {
		networks = append(networks, network.Transport)
		if chatTransports[network.Transport] == nil {
			t.Errorf("chatTransports lacks %s", network.Transport)
		}
	}
	for transport := range chatTransports {
		if !slices.Contains(networks, transport) {
			t.Errorf("domain.BotNetworks lacks %s", transport)
		}
	}
}
