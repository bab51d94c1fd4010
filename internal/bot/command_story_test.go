package bot_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/bot"
	"switchyard/internal/bot/matrix"
	"switchyard/internal/bot/slack"
	"switchyard/internal/domain"
)

func said(sender, text string) bot.Question { return bot.Question{Sender: sender, Text: text} }

// ask returns the answer to a question, "" for none.
func ask(t *testing.T, q bot.Question, prepare func(*fakeGateway)) (answer string, sent []string) {
	synctest.Test(t, func(t *testing.T) {
		g, chat := newGateway(), &fakeChat{}
		g.gone = []domain.StoryRef{{Project: "alpha", ID: "3_old", Name: "Old"}, {Project: "alpha", ID: "30_story"}}
		if prepare != nil {
			prepare(g)
		}
		run(t, g, func() bot.Transport { return chat })
		if m, ok := chat.answer(t.Context(), q); ok {
			answer = m.PlainText()
		}
		sent = g.sent
	})
	return answer, sent
}

// twice adds a second story with the id 12_pay, and another one with the number 12.
func twice(g *fakeGateway) {
	g.last = []domain.Stage{{Name: "1_backlog", Items: []domain.Item{{StoryID: "12_pay", StoryName: "Pay twice"}, {StoryID: "12_other"}}}}
}

func TestStoryCommand(t *testing.T) {
	const pay = "alpha · 12_pay · Pay\nCurrent since 1 Jan 1970 00:00 UTC\n■ Blocked since 1 Jan 1970 01:00 UTC: waiting: <API> key\nCriteria: 1 of 3 done"
	const search = "alpha · 9_search\nQA since 1 Jan 1970 00:00 UTC\nCriteria: 1 of 3 done"
	for _, test := range []struct {
		name, text string
		prepare    func(*fakeGateway)
		want       string
	}{
		{"by id", "story 12_pay", nil, pay},
		{"by number", "story 12", nil, pay},
		{"with its project", "story alpha 12_pay", nil, pay},
		{"a project with a space", "story beta two 12", twice, "There are several; give the project and the full id:\nbeta two 12_pay · Pay twice · Backlog\nbeta two 12_other · Backlog"},
		{"in two projects", "story 12_pay", twice, "There are several; give the project and the full id:\nalpha 12_pay · Pay · Current\nbeta two 12_pay · Pay twice · Backlog"},
		{"in an unreachable project", "story beta two 12_pay", twice, "beta two · 12_pay · Pay twice\n▲ The project server cannot be reached: connection refused. This is what was last known:\nBacklog since 1 Jan 1970 00:00 UTC"},
		{"quoted", "!story \"alpha\" `9_search`", nil, search},
		{"gone from the board", "story 3_old", nil, "alpha · 3_old · Old\nNot on the board."},
		{"gone, by number", "story alpha 3", nil, "alpha · 3_old · Old\nNot on the board."},
		{
			"a failed merge", "story 9", func(g *fakeGateway) { g.edit = func(s *domain.Story) { s.MergeFailure = "conflict in\ngo.mod" } },
			"alpha · 9_search\nQA since 1 Jan 1970 00:00 UTC\n▲ Merge failed: conflict in go.mod\nCriteria: 1 of 3 done",
		},
		{"on a server that knows no single stories", "story 9", func(g *fakeGateway) {
			g.edit = func(s *domain.Story) { *s = domain.Story{Project: s.Project, ID: s.ID, Reachable: true} }
		}, "alpha · 9_search\nQA"},

		{"unknown", "!story 99", nil, "No project has a story 99."},
		{"unknown in its project", "!story alpha 99_x", nil, "Failed: project 'alpha' has no story '99_x'"},
		{"an endless id", "!story " + strings.Repeat("x", 300), nil, "No project has a story " + strings.Repeat("x", 99) + "…."},
		{"nothing", "!story", nil, "Usage: story [PROJECT] ID"},
		{"too much", "!story 12 please", nil, "Usage: story [PROJECT] ID"},
		{"people talking", "story of my life", nil, ""},
		{"people talking of a story", "story 12 is done", nil, ""},
		{"people talking of another one", "story 99", nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got, _ := ask(t, said("someone", test.text), test.prepare); got != test.want {
				t.Errorf("answer %q\nwant   %q", got, test.want)
			}
		})
	}
}

func TestStoryCommandsOfOperators(t *testing.T) {
	answers := func(status int, body string, err error) func(*fakeGateway) {
		return func(g *fakeGateway) { g.patch = func() (int, []byte, error) { return status, []byte(body), err } }
	}
	readOnly := "The project server of alpha does not allow changes; it must be started with --allow-writes."
	moved, unblocked := []string{`alpha/12_pay {"stage":"3_qa","version":"v7"}`}, []string{`alpha/12_pay {"blocked":null,"version":"v7"}`}
	for _, test := range []struct {
		name, text string
		prepare    func(*fakeGateway)
		want       string
		sent       []string
	}{
		{"move by the stage's title", "move 12_pay qa", nil, "12_pay is now in QA.", moved},
		{"move by the stage's name", "move alpha 12 3_qa", nil, "12_pay is now in QA.", moved},
		{"move where it is", "move 12_pay current", nil, "12_pay is in Current already.", nil},
		{"move nowhere", "move 12_pay the moon", nil, "alpha has no stage the moon.\n2_current – Current\n3_qa – QA\n5_done – Done", nil},
		{"move by a title of two stages", "!move beta two 12_pay code review", func(g *fakeGateway) {
			g.last = []domain.Stage{{Name: "1_backlog", Items: []domain.Item{{StoryID: "12_pay"}}}, {Name: "2_code_review"}, {Name: "3_code_review"}}
		}, "Several stages have this title; use a stage's name:\n2_code_review – Code review\n3_code_review – Code review", nil},
		{"move one of two", "move 12_pay qa", twice, "There are several; give the project and the full id:\nalpha 12_pay · Pay · Current\nbeta two 12_pay · Pay twice · Backlog", nil},
		{"a project that is called like a story", "move 12_pay qa", func(g *fakeGateway) {
			g.projects = []domain.Project{{Name: "12_pay"}, {Name: "alpha"}}
		}, "12_pay is now in QA.", moved},
		{"move without a stage", "!move 12_pay", nil, "Usage: move [PROJECT] ID STAGE", nil},
		{"move on an unreachable server", "!move beta two 12_pay backlog", twice, "The project server of beta two cannot be reached: connection refused", nil},
		{"move what is gone", "move 3_old qa", nil, "3_old is not on the board of alpha.", nil},
		{"move what only old servers know", "move 9 done", func(g *fakeGateway) {
			g.edit = func(s *domain.Story) { s.File = nil }
		}, readOnly, nil},
		{"unblock", "unblock 12_pay", nil, "12_pay is no longer blocked.", unblocked},
		{"unblock what is not blocked", "unblock 9_search", nil, "9_search is not blocked.", nil},
		{"people talking", "move on, please", nil, "", nil},

		{"not writable", "unblock 12_pay", func(g *fakeGateway) { g.edit = func(s *domain.Story) { s.File.Writable = false } }, readOnly, nil},
		{"not writable any more", "unblock 12_pay", answers(http.StatusForbidden, "no", nil), readOnly, unblocked},
		{"changed meanwhile", "unblock 12_pay", answers(http.StatusConflict, "the story has changed\n<!channel>\n", nil), "12_pay was not changed: the story has changed <!channel>", unblocked},
		{"gone meanwhile", "unblock 12_pay", answers(http.StatusNotFound, "story not found", nil), "12_pay is no longer on the board of alpha.", unblocked},
		{"no answer", "unblock 12_pay", answers(0, "", domain.Errorf(domain.BadGateway, "timed out")), "It is not known whether 12_pay was changed: the project server of alpha failed: timed out", unblocked},
		{"another answer", "unblock 12_pay", answers(http.StatusTeapot, strings.Repeat("x", 1<<20), nil), "12_pay was not changed. The project server answered with status 418: " + strings.Repeat("x", 159) + "…", unblocked},
		{"project removed meanwhile", "unblock 12_pay", answers(0, "", domain.Errorf(domain.NotFound, "project 'alpha' does not exist")), "Failed: project 'alpha' does not exist", unblocked},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, sent := ask(t, said("op", test.text), test.prepare)
			if got != test.want || !slices.Equal(sent, test.sent) {
				t.Errorf("answer %q\nwant   %q\nsent %q\nwant %q", got, test.want, sent, test.sent)
			}
		})
	}
	for command, text := range map[string]string{"ack": "ack 12_pay", "move": "move 12_pay qa", "unblock": "unblock 12_pay"} {
		got, sent := ask(t, said("someone", text), nil)
		if want := "Sorry, only operators may use " + command + ". An administrator can add your user id, someone, to bot.operators."; got != want || sent != nil {
			t.Errorf("%s of anybody: %q, sent %q", command, got, sent)
		}
	}
}

func TestStoryCommandsShowWhatOthersWroteAsText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, chat := newGateway(), &fakeChat{}
		reason := "<b>@room</b>\n*now*"
		g.last = []domain.Stage{{Name: "1_<i>", Items: []domain.Item{{StoryID: "1_<!channel>", StoryName: "<@U1>", Blocked: reason}}}}
		g.edit = func(s *domain.Story) {
			if s.Error, s.File = "", (&domain.StoryFile{Writable: true}); s.ID != "1_<!channel>" {
				t.Errorf("asked for %q", s.ID)
			}
		}
		g.patch = func() (int, []byte, error) {
			return http.StatusConflict, []byte("<!here> <script>"), nil
		}
		run(t, g, func() bot.Transport { return chat })
		for text, want := range map[string][2]string{
			"story '1_<!channel>'": {
				"<strong>beta two</strong> · <code>1_&lt;!channel&gt;</code> · &lt;@U1&gt;<br>&lt;i&gt; since 1 Jan 1970 00:00 UTC<br>■ Blocked since 1 Jan 1970 01:00 UTC: &lt;b&gt;@room&lt;/b&gt; *now*",
				"*beta two* · `1_&lt;!channel&gt;` · &lt;@U1&gt;\n&lt;i&gt; since 1 Jan 1970 00:00 UTC\n■ Blocked since 1 Jan 1970 01:00 UTC: &lt;b&gt;@room&lt;/b&gt; ∗now∗",
			},
			"unblock 1_<!channel>": {
				"<code>1_&lt;!channel&gt;</code> was not changed: &lt;!here&gt; &lt;script&gt;", "`1_&lt;!channel&gt;` was not changed: &lt;!here&gt; &lt;script&gt;",
			},
			"!move 1_<!channel> <!here>": {
				"<strong>beta two</strong> has no stage <code>&lt;!here&gt;</code>.<br><code>1_&lt;i&gt;</code> – &lt;i&gt;", "*beta two* has no stage `&lt;!here&gt;`.\n`1_&lt;i&gt;` – &lt;i&gt;",
			},
		} {
			m, _ := chat.answer(t.Context(), said("op", text))
			if matrix.HTML(m) != want[0] || slack.Mrkdwn(m) != want[1] {
				t.Errorf("%s\nHTML   %s\nwant   %s\nmrkdwn %s\nwant   %s", text, matrix.HTML(m), want[0], slack.Mrkdwn(m), want[1])
			}
		}
	})
}

func TestStoryCommandsSayWhenTimeIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, chat := newGateway(), &fakeChat{}
		run(t, g, func() bot.Transport { return chat })
		ctx, cancel := context.WithCancel(t.Context())
		g.patch = func() (int, []byte, error) {
			cancel()
			return 0, nil, ctx.Err()
		}
		for _, want := range []string{
			"It is not known whether 12_pay was changed: the project server of alpha has not answered yet.",
			"Failed: it took too long. Try again in a moment.",
		} {
			if m, _ := chat.answer(ctx, said("op", "unblock 12_pay")); m.PlainText() != want {
				t.Errorf("%q, want %q", m.PlainText(), want)
			}
		}
	})
}

func TestAcknowledgeCommand(t *testing.T) {
	for _, test := range []struct {
		text, want string
		key        string // of the acknowledged alert
		lasts      time.Duration
	}{
		{"ack 12_pay", "12_pay (blocked) is acknowledged until it changes.", "blocked/alpha/12_pay", 0},
		{"ack alpha 12 4h", "12_pay (blocked) is acknowledged for 4h.", "blocked/alpha/12_pay", 4 * time.Hour},
		{"ack 9_search 90m", "9_search (stuck) is acknowledged for 90m.", "stuck/alpha/9_search", 90 * time.Minute},
		{"ack 3_old", "3_old has no alert: there is nothing to acknowledge.", "", 0},
		{"ack 12_pay <soon>", "<soon> is not a duration; write one like 4h or 1h30m.", "", 0},
		{"ack 12_pay -4h", "-4h is not a duration; write one like 4h or 1h30m.", "", 0},
		{"ack 12_pay 0s", "0s is not a duration; write one like 4h or 1h30m.", "", 0},
		{"!ack", "Usage: ack [PROJECT] ID [4h]", "", 0},
		{"ack, thanks", "", "", 0},
		{"ack will do", "", "", 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			g, chat := newGateway(), &fakeChat{}
			g.gone = []domain.StoryRef{{Project: "alpha", ID: "3_old"}}
			run(t, g, func() bot.Transport { return chat })
			m, ok := chat.answer(t.Context(), said("op", test.text))
			if ok != (test.want != "") || ok && m.PlainText() != test.want {
				t.Errorf("%s: %q, want %q", test.text, m.PlainText(), test.want)
			}
			var want []domain.Acknowledgement
			if test.key != "" {
				a := domain.Acknowledgement{Key: test.key, By: "op", At: time.Now()}
				if test.lasts > 0 {
					a.Until = a.At.Add(test.lasts)
				}
				want = append(want, a)
			}
			if !slices.Equal(g.taken, want) {
				t.Errorf("%s: %+v, want %+v", test.text, g.taken, want)
			}
			if status, _ := chat.answer(t.Context(), said("op", "status")); strings.Contains(status.PlainText(), "12_pay") == (test.key == "blocked/alpha/12_pay") {
				t.Errorf("%s: status %q", test.text, status.PlainText())
			}
		})
	}
}
