package bot_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/bot"
	"switchyard/internal/bot/matrix"
	"switchyard/internal/bot/slack"
	"switchyard/internal/domain"
)

func TestCommands(t *testing.T) {
	said := func(text string) bot.Question { return bot.Question{Sender: "someone", Text: text} }
	toBot := func(text string) bot.Question { return bot.Question{Sender: "someone", Text: text, Addressed: true} }
	operator := func(text string) bot.Question { return bot.Question{Sender: "op", Text: text} }
	for _, test := range []struct {
		name string
		ask  bot.Question
		want string // "" is no answer
	}{
		{"help", said("help"), "I post the projects' events, and understand these commands:\nhelp – this list\nstatus – what needs attention\n" +
			"projects – every project and its stages\nagents – the live agents\nevents – the latest events\n" +
			"flow PROJECT – how long its stories take\nforecast PROJECT [ITEMS] – how many will be finished, and when so many will be\n" +
			"story [PROJECT] ID – what is known about a story\n" +
			"ack [PROJECT] ID [4h] – acknowledge a story's alert, for a time or until it changes (operators)\nmove [PROJECT] ID STAGE – move a story to another stage (operators)\n" +
			"unblock [PROJECT] ID – unblock a story (operators)\n" +
			"answer N VALUE [TEXT] – answer question N of an agent (operators)\n" +
			"filter [PROJECTS, KINDS|everything] – what this room gets, such as \"alpha, blocked, merge failed\" (operators)\nswitch NAME – make a project the active one (operators)\nassign AGENT NAME|none – assign an agent to a project, or to none (operators)"},
		{"nothing but the bot's name", toBot("  "), "I post the projects' events, and understand these commands:"},
		{"silence", said(""), ""},
		{"case does not matter", said("!STATUS"), "No project is active.\n2 projects, 1 reachable; 3 agents alive\n" +
			"■ project beta two is unreachable: connection refused\n■ alpha · blocked · 12_pay · Pay: waiting: <API> key\n" +
			"▲ agent builder 4 is lost, assigned to alpha\n▲ the clock of project alpha is more than a day ahead\n" +
			"▲ alpha · stuck in QA · 9_search"},
		{"projects", said("projects"), "2 projects\n● alpha: Current 1, QA 1, Done 0\n■ beta two: unreachable, connection refused"},
		{"agents", said("agents"), "3 agents\nbuilder 1 · a1 · idle · unassigned\ntwin · a2 · running · unassigned\ntwin · a3 · running · unassigned"},
		{"events", said("events"), "Latest events (UTC)\n1 Jan 00:00 · alpha · s1 · Story 1 · Current → QA"},

		{"flow", said("flow alpha"), "alpha: the flow of alpha"},
		{"flow of nothing", toBot("flow"), "Usage: flow PROJECT"},
		{"forecast", said("forecast beta two"), "beta two: 0 items of beta two"},
		{"forecast of some", said("forecast beta two 12"), "beta two: 12 items of beta two"},
		{"forecast of none", said("forecast alpha 0"), "ITEMS must be a number from 1 to 1000."},
		{"forecast of nobody", said("forecast gamma"), "Unknown project gamma. Say projects for a list."},

		{"people talking", said("events of last week were great"), ""},
		{"people talking about switching", said("switch"), ""},
		{"unknown", said("dance"), ""},
		{"unknown, to the bot", toBot("dance now"), "Unknown command dance. Say help for a list."},
		{"unknown, called", said("!dance"), "Unknown command dance. Say help for a list."},

		{"switch by anybody", said("switch alpha"), "Sorry, only operators may use switch. An administrator can add your user id, someone, to bot.operators."},
		{"assign by anybody", toBot("assign a1 none"), "Sorry, only operators may use assign. An administrator can add your user id, someone, to bot.operators."},
		{"switch", operator("switch beta two"), "The active project is now beta two."},
		{"switch, quoted", operator("!switch 'beta two'"), "The active project is now beta two."},
		{"switch, in typographic quotes", operator("switch “beta two”"), "The active project is now beta two."},
		{"switch to nothing", operator("!switch"), "Usage: switch NAME"},
		{"switch to nobody", operator("switch gamma"), "Failed: project 'gamma' does not exist"},

		{"assign by id", operator("assign a2 alpha"), "twin is now assigned to alpha."},
		{"assign by a label with a space", operator("assign builder 1 beta two"), "builder 1 is now assigned to beta two."},
		{"assign, quoted", operator(`assign "builder 1" "alpha"`), "builder 1 is now assigned to alpha."},
		{"unassign", operator("assign a1 NONE"), "builder 1 is no longer assigned to a project."},
		{"a project called none", operator(`assign a1 "none"`), "Failed: project 'none' does not exist"},
		{"two of that label", operator("assign twin alpha"), "Several agents have this label; use one of their ids:\na2\na3"},
		{"no such agent", operator("assign ghost alpha"), "Unknown agent ghost. Say agents for a list."},
		{"assign to nothing", operator("assign builder 1"), "Usage: assign AGENT NAME|none"},
		{"assign nothing", operator("!assign"), "Usage: assign AGENT NAME|none"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGateway()
				g.move("alpha", 1)
				chat := &fakeChat{}
				s := run(t, g, func() bot.Transport { return chat })
				got, ok := chat.answer(t.Context(), test.ask)
				if heard := s.Status().HeardMS == time.Now().UnixMilli(); heard != ok {
					t.Errorf("answered: %v, heard: %v", ok, heard)
				}
				switch {
				case !ok && test.want != "", ok && test.want == "":
					t.Errorf("answered: %v, %q", ok, got.PlainText())
				case ok && got.PlainText() != test.want && !(test.ask.Addressed && strings.HasPrefix(got.PlainText(), test.want)):
					t.Errorf("answer %q\nwant   %q", got.PlainText(), test.want)
				}
			})
		})
	}
}

func TestMessagesEscapeWhatOthersWrote(t *testing.T) {
	m := bot.Message{
		{bot.Plain("<!here> & *x* _y_ ~z~ a_b `q`"), bot.Bold("<b>*"), bot.Code("`c`<")},
		{bot.Plain("next")},
	}
	if want := "&lt;!here&gt; &amp; *x* _y_ ~z~ a_b `q`<strong>&lt;b&gt;*</strong><code>`c`&lt;</code><br>next"; matrix.HTML(m) != want {
		t.Errorf("HTML   %s\nwant   %s", matrix.HTML(m), want)
	}
	if want := "&lt;!here&gt; &amp; ∗x∗ ˍyˍ ∼z∼ a_b ˋqˋ*&lt;b&gt;∗*`ˋcˋ&lt;`\nnext"; slack.Mrkdwn(m) != want {
		t.Errorf("mrkdwn %s\nwant   %s", slack.Mrkdwn(m), want)
	}
	// A name cannot forge a line, or reverse the direction of the text.
	synctest.Test(t, func(t *testing.T) {
		g := newGateway()
		g.happen("alpha", domain.StoryBlocked, `"story_id":"1\n■ beta","story_name":"\u202eevil\u0007","reason":"a\r\nb"`)
		chat := &fakeChat{}
		run(t, g, func() bot.Transport { return chat })
		got, _ := chat.answer(t.Context(), bot.Question{Text: "events"})
		if want := "Latest events (UTC)\n1 Jan 00:00 · ■ alpha · blocked · 1 ■ beta · evil: a b"; got.PlainText() != want {
			t.Errorf("%q\nwant %q", got.PlainText(), want)
		}
	})
}
