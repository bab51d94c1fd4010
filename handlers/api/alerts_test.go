package api_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"switchyard/handlers"
	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/service"
	"switchyard/internal/signin"
	"switchyard/internal/store/sqlite"
	"switchyard/internal/store/storetest"
	"switchyard/internal/waittest"
)

// failedBot is a bot that has failed.
type failedBot struct{ gatewaytest.Bot }

func (*failedBot) Status() domain.BotStatus {
	return domain.BotStatus{Transport: domain.BotMatrix, State: domain.BotFailed, Detail: "wrong password", Since: time.UnixMilli(7)}
}

func TestAlertsAreWhateverNeedsAttention(t *testing.T) {
	db, err := sqlite.Open(t.Context(), storetest.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	now := time.Now()
	hours := func(n int) int64 { return now.Add(-time.Duration(n) * time.Hour).UnixMilli() }
	// An agent that fell silent while the gateway was away.
	if err := db.AddToken(t.Context(), nil, domain.JoinToken{Hash: "h", ExpiresAt: time.UnixMilli(hours(-1))}, 200); err != nil {
		t.Fatal(err)
	}
	if err := db.Redeem(t.Context(), nil, "h", domain.AgentRecord{Agent: domain.Agent{ID: "a1", Label: "builder", State: domain.AgentIdle, JoinedAt: time.UnixMilli(hours(30))}}); err != nil {
		t.Fatal(err)
	}
	credentials := filepath.Join(t.TempDir(), "credentials.json")
	if err := os.WriteFile(credentials, []byte(`{"oauth":{"access_token":"a","refresh_token":"","expires_at":5}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	client := gatewaytest.NewProjectClient(t)
	g := gatewaytest.New(t, service.Options{
		Store: db, Projects: client, Bot: &failedBot{}, Credentials: signin.NewFile(credentials), AgentTimeout: time.Minute,
	}, handlers.Gateway{})
	s := g.Site(t)
	s.Add("a/b", gatewaytest.ProjectServer(t, gatewaytest.Says(strings.ReplaceAll(`{"branch":"main","stages":[{"name":"1_backlog","items":[{"story_id":"0_idea","since_ms":1}]},
		{"name":"2_current","items":[{"story_id":"1_pay","story_name":"Pay","blocked":"API key","since_ms":5},{"story_id":"2_slow","since_ms":1,"work":{"branch":"slow","ahead":1,"conflicts":0,"clash":{"place":"slow-2","files":["go.mod"],"count":3,"since_ms":7}}}]},
		{"name":"4_merge","items":[{"story_id":"3_login","merge_failure":"conflict","since_ms":9}]},{"name":"5_done","items":[{"story_id":"4_old","since_ms":1,"work":{"branch":"old","ahead":2,"conflicts":1,"places":1}}]}]}`, "\n", ""))))
	s.Add("gone", "http://127.0.0.1:1")
	ahead := func(project string) {
		t.Helper()
		read := domain.FeedRead{Cursor: domain.FeedCursor{Project: project}, ReceivedAt: time.UnixMilli(11), ClockSkewed: true}
		if err := g.Service.Events.Record(t.Context(), read); err != nil {
			t.Fatal(err)
		}
	}
	ahead("a/b")
	ahead("removed")

	type item struct {
		Kind, Text, Link      string
		Project, Agent, Stage *string
		StoryID               *string `json:"story_id"`
		SinceMS               *int64  `json:"since_ms"`
	}
	want := []struct{ kind, text, link string }{
		{"unreachable", "project gone is unreachable: connection refused", "/projects/gone"},
		{"blocked", "story 1_pay of a/b is blocked: API key", "/projects/a%2Fb/stories/1_pay"},
		{"merge_failed", "merge failed of story 3_login of a/b: conflict", "/projects/a%2Fb/stories/3_login"},
		{"conflicts", "story 2_slow of a/b conflicts with main: slow-2: go.mod and 2 more", "/projects/a%2Fb/stories/2_slow"},
		{"unmerged", "story 4_old of a/b is done, and not on main: old is 2 commits ahead", "/projects/a%2Fb/stories/4_old"},
		{"bot_failed", "the chat bot has failed: wrong password", "/bot-config"},
		{"agent_lost", "agent builder is lost", "/agents"},
		{"clock_ahead", "the clock of project a/b is more than a day ahead", "/projects/a%2Fb"},
		{"stuck", "story 2_slow of a/b has been in Current for longer than is usual there", "/projects/a%2Fb/stories/2_slow"},
	}
	var answer struct{ Items []item }
	s.Answered()
	got := s.Send("GET", "/api/gateway/attention", "")
	got.Decode(t, &answer)
	if len(answer.Items) != len(want) {
		t.Fatalf("%d items: %s", len(answer.Items), got.Text)
	}
	for i, w := range want {
		if a := answer.Items[i]; a.Kind != w.kind || a.Text != w.text || a.Link != w.link {
			t.Errorf("item %d:\n got %s, %s, %s\nwant %v", i, a.Kind, a.Text, a.Link, w)
		}
	}
	if unreachable, blocked := answer.Items[0], answer.Items[1]; unreachable.SinceMS == nil || *unreachable.SinceMS < now.UnixMilli() || unreachable.StoryID != nil || *blocked.SinceMS != 5 || *answer.Items[3].SinceMS != 7 || *blocked.StoryID != "1_pay" || *blocked.Stage != "2_current" {
		t.Errorf("%s", got.Text)
	}
}

func TestNothingNeedsAttention(t *testing.T) {
	s := gatewaytest.NewWholeSite(t, service.Options{}, "")
	s.Add("alpha", gatewaytest.ProjectServer(t, gatewaytest.Says(`{"stages":[{"name":"2_current","items":[]}]}`)))
	waittest.Until(t, "alpha has answered", func() bool { // as soon as alpha has answered
		got := s.Send("GET", "/api/gateway/attention", "")
		return got.StatusCode == 200 && got.Text == `{"more":0,"items":[]}`
	})
}

func TestBlockedStoriesInALastStageThatIsNotDoneNeedSomebody(t *testing.T) {
	for _, stages := range []string{"2_current", "1_backlog 2_current", "1_backlog 2_current 3_qa"} {
		s := newSite(t)
		names := strings.Fields(stages)
		for i, name := range names {
			items := `[]`
			if i == len(names)-1 {
				items = `[{"story_id":"1","blocked":"key","since_ms":5},{"story_id":"2","merge_failure":"conflict","since_ms":6},{"story_id":"3","since_ms":7}]`
			}
			names[i] = `{"name":"` + name + `","items":` + items + `}`
		}
		s.Add("p", gatewaytest.ProjectServer(t, gatewaytest.Says(`{"stages":[`+strings.Join(names, ",")+`]}`)))
		waittest.Until(t, stages, func() bool {
			body := s.Send("GET", "/api/gateway/attention", "").Text
			return strings.Contains(body, `"key":"blocked/p/1"`) && strings.Contains(body, `"key":"merge_failed/p/2"`) && !strings.Contains(body, `/p/3"`)
		})
	}
}

func TestAcknowledgingOverTheAPI(t *testing.T) {
	s := gatewaytest.NewWholeSite(t, service.Options{}, "")
	s.Add("a/b", gatewaytest.ProjectServer(t, gatewaytest.Says(`{"stages":[{"name":"2_current","items":[{"story_id":"1","story_name":"One","blocked":"key","since_ms":5}]},{"name":"5_done","items":[]}]}`)))
	list := func() string { return s.Send("GET", "/api/gateway/attention", "").Text }
	waittest.Until(t, "the block shows", func() bool { return strings.Contains(list(), `"key":"blocked/a%2Fb/1"`) })
	notOK := func(reason string) string { return `{"ok":false,"error":"` + reason + `"}` }
	for i, step := range []struct {
		path, body string
		status     int
		want, list string
	}{
		{"acknowledge", `{"key":"blocked/a%2Fb/2"}`, 404, notOK("no alert has this key"), `"acknowledged":null`},
		{"acknowledge", `{"key":"blocked/a%2Fb/1","for":"soon"}`, 400, notOK("for: must be a duration, such as 4h or 1h30m"), `"acknowledged":null`},
		{"acknowledge", `{"key":"blocked/a%2Fb/1","for":"-1h"}`, 400, notOK("for: must be a duration, such as 4h or 1h30m"), `"acknowledged":null`},
		{"acknowledge", `{}`, 400, notOK("key: is required and must be a string"), `"acknowledged":null`},
		{"acknowledge", `{"key":"blocked/a%2Fb/1"}`, 200, `{"ok":true}`, `"until_ms":null}`},
		{"acknowledge", `{"key":"blocked/a%2Fb/1","for":"4h"}`, 200, `{"ok":true}`, `"acknowledged":{"by":"admin","at_ms":`},
		{"reopen", `{"key":"blocked/a%2Fb/1"}`, 200, `{"ok":true}`, `"acknowledged":null`},
		{"reopen", `{"key":"blocked/a%2Fb/2"}`, 404, notOK("no alert has this key"), `"acknowledged":null`},
	} {
		got := s.Send("POST", "/api/gateway/attention/"+step.path, step.body)
		if got.StatusCode != step.status || got.Text != step.want || !strings.Contains(list(), step.list) {
			t.Errorf("step %d, %s: %d %s\n%s", i, step.body, got.StatusCode, got.Text, list())
		}
	}
}
