package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"switchyard/internal/bottest"
	"switchyard/internal/waittest"
)

const questionsURL = "/api/gateway/questions"

type question struct {
	ID, State string
	Answer    *struct{ Value, By, Via string }
}

// open returns the open questions.
func (p *process) open(t *testing.T) []question {
	t.Helper()
	var list struct{ Questions []question }
	status, text := p.do(t, "GET", questionsURL, "")
	if err := json.Unmarshal([]byte(text), &list); err != nil || status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	return list.Questions
}

func (p *process) asks(t *testing.T, body string) (q question) {
	t.Helper()
	status, text := p.do(t, "POST", questionsURL, body)
	if err := json.Unmarshal([]byte(text), &q); err != nil || status != 201 {
		t.Fatalf("%d %s", status, text)
	}
	return q
}

// tool calls a tool over MCP, and returns the whole answer.
func (p *process) tool(name, arguments string) string {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, name, arguments)
	request, err := http.NewRequest("POST", p.url+"/mcp", strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	request.Header = http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Authorization": {"Bearer " + p.bearer},
	}
	return textOf(connections.RoundTrip(request))
}

// within returns what comes in time.
func within(t *testing.T, from <-chan string) string {
	t.Helper()
	select {
	case text := <-from:
		return text
	case <-time.After(time.Minute):
		t.Fatal("no call has ended")
		return ""
	}
}

// holds waits until the gateway holds so many calls, if nobody else's.
func (p *process) holds(t *testing.T, calls int) {
	t.Helper()
	waittest.Until(t, fmt.Sprintf("%d calls are held", calls), func() bool {
		return p.metric(t, "switchyard_http_requests_in_flight") > calls // with the one that asks
	})
}

// TestTheFirstAnswerWinsOnEachGateway: of answers at the same time one is taken, and whoever is held anywhere gets that.
func TestTheFirstAnswerWinsOnEachGateway(t *testing.T) {
	onEachEngine(t, func(t *testing.T, on engine) {
		c := newClaimed(t, on, 1)
		id, builder := c.agent(0, "builder-1")
		people := []*process{c.as(0, "mara", "operator"), c.as(1, "zoe", "operator")}
		names := []string{"mara", "zoe"}
		for round := range 3 {
			q := builder.asks(t, `{"kind":"choice","prompt":"Which way?","options":["mara","zoe"]}`)
			got := make(chan string, 8)
			held := 0
			for _, g := range c.gateways {
				by := &process{url: g.url, bearer: builder.bearer}
				go func() {
					_, text, err := by.ask("GET", questionsURL+"/"+q.ID+"?wait=50s", "")
					got <- fmt.Sprint(text, err)
				}()
				go func() { got <- by.tool("ask", `{"id":"`+q.ID+`"}`) }()
				held += 2
				g.holds(t, 2)
			}
			var winner string
			var answered time.Time
			var mu sync.Mutex
			var late []string
			var all sync.WaitGroup
			for n := range 8 {
				all.Go(func() {
					status, text := people[n%2].do(t, "POST", questionsURL+"/"+q.ID+"/answer", `{"value":"`+names[n%2]+`"}`)
					mu.Lock()
					defer mu.Unlock()
					if status == 200 {
						winner, answered = winner+names[n%2], time.Now()
						return
					}
					late = append(late, fmt.Sprint(status, " ", text))
				})
			}
			all.Wait()
			if len(late) != 7 || !slices.Contains(names, winner) {
				t.Fatalf("%q won, refused: %q", winner, late)
			}
			for _, text := range late {
				if !strings.HasPrefix(text, "409 ") || !strings.Contains(text, fmt.Sprintf("answered '%s' by %s", winner, winner)) {
					t.Errorf("%s won: %s", winner, text)
				}
			}
			for range held {
				if text := within(t, got); !strings.Contains(text, `"state":"answered"`) || !strings.Contains(text, `"value":"`+winner+`"`) {
					t.Errorf("%s won, held: %s", winner, text)
				}
			}
			t.Logf("round %d: all that were held had it %v after the answer was back", round, time.Since(answered).Round(time.Millisecond))
			if time.Since(answered) > 15*time.Second { // they may be held for longer
				t.Errorf("held for %v", time.Since(answered))
			}
			for n, g := range c.gateways {
				waittest.Until(t, "the end of the alert", func() bool {
					_, text := g.do(t, "GET", "/api/gateway/attention", "")
					return !strings.Contains(text, `"kind":"question"`)
				})
				if open := g.open(t); len(open) > 0 {
					t.Errorf("gateway %d: open: %+v", n, open)
				}
			}
		}
		// A question that was asked on one gateway ends on another with the agent's withdrawal, and is unknown to nobody.
		q := (&process{url: c.gateways[len(c.gateways)-1].url, bearer: builder.bearer}).asks(t, `{"kind":"text","prompt":"Which?"}`)
		if status, text := builder.do(t, "DELETE", questionsURL+"/"+q.ID, ""); status != 204 {
			t.Errorf("withdrawn by %s: %d %s", id, status, text)
		}
	})
}

// TestAQuestionOutlivesItsGateway: it is open after a kill and a stop, and the same permission asked again is the same question.
func TestAQuestionOutlivesItsGateway(t *testing.T) {
	onEachEngine(t, func(t *testing.T, on engine) {
		dir, address := t.TempDir(), freeAddress(t)
		begin := func() *process {
			cmd := switchyard(t, dir, "gateway", "--listen="+address, "--data=DIR/data")
			p := on.start(t, withEnv(cmd, "SWITCHYARD_ADMIN_TOKEN="+claimAdmin))
			p.bearer = claimAdmin
			return p
		}
		const hook = `{"hook_event_name":"PermissionRequest","session_id":"s","tool_name":"Bash","tool_input":{"command":"make"}}`
		p := begin()
		calls := make(chan string, 2)
		call := func() {
			go func() {
				calls <- p.tool("permission", `{"tool_name":"Bash","input":{"command":"make"},"tool_use_id":"t1"}`)
			}()
			go func() {
				status, text, err := p.ask("POST", "/api/hooks/claude-code", hook)
				calls <- fmt.Sprint(status, text, err)
			}()
		}
		ids := func() (list []string) {
			for _, q := range p.open(t) {
				list = append(list, q.ID)
			}
			slices.Sort(list)
			return list
		}
		call()
		p.holds(t, 2)
		waittest.Until(t, "one use of a tool is asked about once", func() bool { return len(ids()) == 1 })
		asked := ids()
		for _, end := range []func(){p.killHard, func() { p.stop(t, syscall.SIGTERM) }} {
			end()
			for range 2 {
				if text := within(t, calls); strings.Contains(text, "allow") {
					t.Errorf("a gateway that ends allows: %s", text)
				}
			}
			p = begin()
			if got := ids(); !slices.Equal(got, asked) {
				t.Errorf("open after the restart: %v, asked: %v", got, asked)
			}
			call()
			p.holds(t, 2)
			if got := ids(); !slices.Equal(got, asked) {
				t.Errorf("asked again: %v, asked before: %v", got, asked)
			}
		}
		if status, text := p.do(t, "POST", questionsURL+"/"+asked[0]+"/answer", `{"value":"allow"}`); status != 200 {
			t.Errorf("%d %s", status, text)
		}
		for range 2 {
			if text := within(t, calls); !strings.Contains(text, "allow") {
				t.Errorf("allowed: %s", text)
			}
		}
	})
}

// newChat starts a gateway whose bot is in a room of which it takes commands, with these settings besides.
func newChat(t *testing.T, settings string) (admin *process, hs *bottest.Homeserver) {
	t.Helper()
	dir, hs := t.TempDir(), bottest.NewHomeserver(t)
	for name, text := range map[string]string{
		"bot.toml":        fmt.Sprintf("transport = 'matrix'\nhomeserver = %q\nusername = 'yard'\npassword = %q\n", hs.HTTP.URL, bottest.Password),
		"switchyard.toml": fmt.Sprintf("[bot]\noperators = [%q]\n%s", bottest.Operator, settings),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	admin = start(t, withEnv(switchyard(t, dir, "gateway", "--config=DIR/switchyard.toml", "--listen=localhost:0", "--data=DIR/data", "--bot-config=DIR/bot.toml"),
		"SWITCHYARD_ADMIN_TOKEN="+claimAdmin))
	admin.bearer = claimAdmin
	hs.Create("!ops", "Operations", bottest.Operator, false)
	hs.Invite("!ops", bottest.Operator)
	waittest.Until(t, "the bot in the room", func() bool { return hs.IsMember("!ops") })
	return admin, hs
}

// TestAHistorySaysWhoHasDoneWhatInChat: a move that the bot was told to make is its author's, over the bot.
func TestAHistorySaysWhoHasDoneWhatInChat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	work := newStories(t, filepath.Join(dir, "work"), 2)
	project := start(t, switchyard(t, dir, "project", "--name=alpha", "--work="+work.dir, "--listen=127.0.0.1:0", "--allow-writes"))
	admin, hs := newChat(t, fmt.Sprintf("[[projects]]\nname = 'alpha'\nurl = %q\n", project.url))
	c := &claimed{T: t, stories: work, gateways: []*process{admin}}
	hs.Say("!ops", bottest.Operator, "move 0_story current")
	moved := func() claimedStory { return c.story(admin, "0_story") }
	waittest.Until(t, "the move", func() bool { return moved().Stage == "2_current" && len(moved().History) == 1 })
	if e := moved().History[0]; e.By == nil || *e.By != bottest.Operator || e.Via == nil || *e.Via != "bot" {
		t.Errorf("%+v", e)
	}
	if _, page := admin.do(t, "GET", "/projects/alpha/stories/0_story", ""); !strings.Contains(page, "by "+bottest.Operator+" in chat") {
		t.Errorf("the page: %s", page)
	}
}

// TestPermissionsCanBeLeftToAdministrators: by questions.permission_role nobody else answers them, by whatever way.
func TestPermissionsCanBeLeftToAdministrators(t *testing.T) {
	t.Parallel()
	admin, hs := newChat(t, "[questions]\npermission_role = 'admin'\n")
	operator := (&claimed{T: t, gateways: []*process{admin}}).as(0, "mara", "operator")
	allowed := make(chan string, 1)
	go func() { allowed <- operator.tool("permission", `{"tool_name":"Bash","input":{"command":"make"}}`) }()
	waittest.Until(t, "the permission", func() bool { return len(admin.open(t)) == 1 })
	id := admin.open(t)[0].ID
	const needs = "needs the role admin; yours is operator"
	if status, text := operator.do(t, "POST", questionsURL+"/"+id+"/answer", `{"value":"allow"}`); status != 403 || !strings.Contains(text, needs) {
		t.Errorf("by API: %d %s", status, text)
	}
	if status, text := operator.form(t, "/questions/"+id+"/answer", url.Values{"value": {"allow"}}); status != 403 || !strings.Contains(text, needs) {
		t.Errorf("in the console: %d %s", status, text)
	}
	if _, page := operator.do(t, "GET", "/questions", ""); strings.Contains(page, `value="allow"`) || !strings.Contains(page, "make") {
		t.Errorf("an operator's page: %s", page)
	}
	if _, page := admin.do(t, "GET", "/questions", ""); !strings.Contains(page, `value="allow"`) {
		t.Errorf("an administrator's page: %s", page)
	}
	said := func(part string) func() bool {
		return func() bool {
			return slices.ContainsFunc(hs.Posts("!ops"), func(p bottest.Post) bool { return p.Sender == bottest.BotUser && strings.Contains(p.Body, part) })
		}
	}
	waittest.Until(t, "the bot asks", said("Question "+id))
	hs.Say("!ops", bottest.Operator, "answer "+id+" allow")
	waittest.Until(t, "the bot refuses", said(needs))
	if open := admin.open(t); len(open) != 1 {
		t.Errorf("open: %+v", open)
	}
	other := operator.asks(t, `{"kind":"text","prompt":"Which?"}`) // what is no permission is still for operators
	if status, text := operator.do(t, "POST", questionsURL+"/"+other.ID+"/answer", `{"value":"that"}`); status != 200 {
		t.Errorf("a text: %d %s", status, text)
	}
	if status, text := admin.form(t, "/questions/"+id+"/answer", url.Values{"value": {"allow"}}); status != 303 {
		t.Errorf("by an administrator: %d %s", status, text)
	}
	if text := within(t, allowed); !strings.Contains(text, `\"behavior\":\"allow\"`) {
		t.Errorf("allowed: %s", text)
	}
}

// form sends a form as a browser does.
func (p *process) form(t *testing.T, path string, fields url.Values) (status int, text string) {
	t.Helper()
	request, err := http.NewRequest("POST", p.url+path, strings.NewReader(fields.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = http.Header{
		"Content-Type": {"application/x-www-form-urlencoded"}, "Authorization": {"Bearer " + p.bearer}, "Sec-Fetch-Site": {"same-origin"},
	}
	response, err := connections.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	status = response.StatusCode
	return status, textOf(response, nil)
}

// textOf returns a response's body, or what went wrong.
func textOf(response *http.Response, err error) string {
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return string(text) + err.Error()
	}
	return string(text)
}
