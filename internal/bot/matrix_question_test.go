package bot_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"switchyard/internal/bottest"
	"switchyard/internal/domain"
)

const pill = `<a href="https://matrix.to/#/@yard:hs.test">`

func TestMatrixUnderstandsHowItIsAddressed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, h := joined(t)
		h.Rename("Signal Box")
		mention := map[string]any{"user_ids": []string{bottest.BotUser}}
		message := func(body, formatted string, mentions map[string]any) map[string]any {
			content := map[string]any{"msgtype": "m.text", "body": body}
			if formatted != "" {
				content["format"], content["formatted_body"] = "org.matrix.custom.html", formatted
			}
			if mentions != nil {
				content["m.mentions"] = mentions
			}
			return content
		}
		tests := []struct {
			name    string
			content map[string]any
		}{
			{"by its id", message("@yard:hs.test: dance", "", nil)},
			{"by its name", message("Signal Box: dance", "", nil)},
			{"by the name that it had before", message("The Yard: dance", "", nil)},
			{"by a link", message("Signal Box: dance", pill+"Signal Box</a>: dance", nil)},
			{"by a link with another name", message("Box (railway): dance", pill+"Box (railway)</a>: dance", nil)},
			{"by an escaped link", message("[Box](https://matrix.to/#/%40yard%3Ahs.test) dance", `<p><a href='https://matrix.to/#/%40yard%3Ahs.test?via=hs.test'>Box</a> dance</p>`, nil)},
			{"by a matrix: link", message("Box dance", `<a class="x" href="matrix:u/yard:hs.test">Box</a> dance`, nil)},
			{"by a link and as mentioned", message("Box: dance", pill+"Box</a>: dance", mention)},
			{"by a link after the text", message("dance Box", "dance "+pill+"Box</a>", mention)},
			{"as mentioned", message("Signal Box: dance", "", mention)},
			{"as mentioned by another name", message("Box: dance", "", mention)},
			{"in a reply", map[string]any{
				"msgtype": "m.text", "body": "> <@yard:hs.test> Unknown\n> command\n\ndance", "m.mentions": mention,
				"formatted_body": "<mx-reply><blockquote>" + pill + "@yard</a> status</blockquote></mx-reply>dance",
				"m.relates_to":   map[string]any{"m.in_reply_to": map[string]any{"event_id": "$e1"}},
			}},
		}
		for i, test := range tests {
			h.Event("!ops", bottest.Stranger, "m.room.message", test.content)
			if got := roomPosts(t, h, "!ops", i+1)[i]; got.Body != "Unknown command dance. Say help for a list." {
				t.Errorf("%s: %q", test.name, got.Body)
			}
		}
		for _, content := range []map[string]any{
			message("Other: dance", `<a href="https://matrix.to/#/@other:hs.test">Other</a>: dance`, map[string]any{"user_ids": []string{"@other:hs.test"}}),
			message("Yardarm: dance", "", nil),
		} {
			h.Event("!ops", bottest.Stranger, "m.room.message", content)
		}
		h.Say("!ops", bottest.Stranger, "!last")
		if got := roomPosts(t, h, "!ops", len(tests)+1); !strings.Contains(got[len(tests)].Body, "last") {
			t.Errorf("answered what was said to others: %+v", got[len(tests)])
		}
	})
}

// A change of the bot's name looks like joining; messages from before it are still answered.
func TestMatrixAnswersWhatWasSaidBeforeItsNameChanged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := joined(t)
		p.kill()
		h.Say("!ops", bottest.Operator, "!help")
		h.Rename("Signal Box")
		p.start()
		roomPosts(t, h, "!ops", 1)
	})
}

func TestMatrixAnswersInTheThread(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, h := joined(t)
		h.Event("!ops", bottest.Operator, "m.room.message", map[string]any{
			"msgtype": "m.text", "body": "!help", "m.relates_to": map[string]any{"rel_type": "m.thread", "event_id": "$root"},
		})
		if got := roomPosts(t, h, "!ops", 1)[0]; got.Thread != "$root" {
			t.Errorf("posted in thread %q", got.Thread)
		}
		h.Say("!ops", bottest.Operator, "!help")
		if got := roomPosts(t, h, "!ops", 2)[1]; got.Thread != "" {
			t.Errorf("posted in thread %q", got.Thread)
		}
	})
}

func TestMatrixHintsInADirectRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := joined(t)
		h.Create("!direct", "", bottest.Operator, false)
		h.Invite("!direct", bottest.Operator)
		p.waitRooms(2)
		p.waitState(domain.BotConnected, "")
		h.Say("!direct", bottest.Operator, "good morning")
		if got := roomPosts(t, h, "!direct", 1)[0]; got.Body != "Unknown command good. Say help for a list." {
			t.Errorf("answered %q", got.Body)
		}
	})
}
