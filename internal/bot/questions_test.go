package bot_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/bot"
	"switchyard/internal/bottest"
	"switchyard/internal/domain"
)

// fakeQuestions are the service's questions as the bot sees them.
type fakeQuestions struct {
	mu      sync.Mutex
	all     []domain.Question
	changed chan struct{}
}

func (f *fakeQuestions) Changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.changed == nil {
		f.changed = make(chan struct{})
	}
	return f.changed
}

func (f *fakeQuestions) change(change func()) {
	f.Changed()
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
	close(f.changed)
	f.changed = nil
}

// ask asks a question and returns its id.
func (f *fakeQuestions) ask(q domain.Question) (id int64) {
	f.change(func() {
		q.ID, q.State, q.AskedAt, q.By = int64(len(f.all)+1), domain.QuestionOpen, time.Now(), "builder-1"
		q.Expires = q.AskedAt.Add(time.Hour)
		if err := q.Check(); err != nil {
			panic(err)
		}
		f.all, id = append(f.all, q), q.ID
	})
	return id
}

func (f *fakeQuestions) Recent() []domain.Question {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.all)
}

func (f *fakeQuestions) Get(_ context.Context, id int64) (domain.Question, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id < 1 || id > int64(len(f.all)) {
		return domain.Question{}, domain.Errorf(domain.NotFound, "there is no such question")
	}
	return f.all[id-1], nil
}

func (f *fakeQuestions) Answer(ctx context.Context, id int64, given domain.Answer) (q domain.Question, err error) {
	if q, err = f.Get(ctx, id); err != nil {
		return q, err
	}
	f.change(func() {
		known := &f.all[id-1]
		if known.State != domain.QuestionOpen {
			err = domain.Errorf(domain.Conflict, "this question is no longer open: it %s", known.Ending())
			return
		}
		known.State = domain.QuestionAnswered
		given.By, given.Via = domain.ActorOf(ctx).Who, domain.ActorOf(ctx).Channel
		known.Answer = &given
		q = *known
	})
	return q, err
}

// answered returns "value|text|who|via" of an answered question, "" for an open one.
func (f *fakeQuestions) answered(id int64) string {
	q, _ := f.Get(context.Background(), id)
	if q.Answer == nil {
		return ""
	}
	return fmt.Sprintf("%s|%s|%s|%s", q.Answer.Value, q.Answer.Text, q.Answer.By, q.Answer.Via)
}

var (
	permission = domain.Question{
		Kind: domain.QuestionPermission, Prompt: "May I use Bash?", Project: "alpha", StoryID: "7_login",
		Tool: &domain.ToolUse{Name: "Bash", Input: json.RawMessage(`{"command":"rm -r build"}`)},
	}
	choice = domain.Question{Kind: domain.QuestionChoice, Prompt: "Which way?", Options: []string{"left", "left then right", "2"}}
	text   = domain.Question{Kind: domain.QuestionText, Prompt: "Which name?"}
)

func TestAnswerCommand(t *testing.T) {
	tests := []struct {
		name   string
		asked  domain.Question
		said   string
		sender string
		want   string // the answer
		reply  string
	}{
		{name: "a permission", asked: permission, said: "answer 1 allow", want: "allow||op|bot", reply: "Question 1 is answered: allow."},
		{name: "with a text", asked: permission, said: "!Answer 1 DENY, not  on Friday", want: "deny|not  on Friday|op|bot"},
		{name: "by number", asked: choice, said: "answer 1 1", want: "left||op|bot"},
		{name: "an option that is a number", asked: choice, said: "answer 1 2 please", want: "2|please|op|bot"},
		{name: "the longest option", asked: choice, said: "answer 1 left then right: go", want: "left then right|go|op|bot"},
		{name: "a text", asked: text, said: "answer 1 \"The  Yard\"\nand no other", want: "\"The  Yard\"\nand no other||op|bot"},
		{name: "an option's beginning", asked: choice, said: "answer 1 lefty", reply: "That is no answer to question 1. It may be:\n1 left\n2 left then right\n3 2"},
		{name: "no operator", asked: permission, said: "answer 1 allow", sender: "guest", reply: "Sorry, only operators may use answer. An administrator can add your user id, guest, to bot.operators."},
		{name: "unknown", asked: permission, said: "!answer 99 allow", reply: "Failed: there is no such question"},
		{name: "without a number", asked: permission, said: "!answer allow", reply: "Usage: answer N VALUE [TEXT]"},
		{name: "people talking", asked: permission, said: "answer me, please"},
		{name: "people talking of a number", asked: permission, said: "answer 99 is wrong"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, chat := newGateway(), &fakeChat{}
				g.questions.ask(test.asked)
				run(t, g, func() bot.Transport { return chat })
				sender := test.sender
				if sender == "" {
					sender = "op"
				}
				m, ok := chat.answer(t.Context(), said(sender, test.said))
				if got := g.questions.answered(1); got != test.want {
					t.Errorf("answered %q, want %q", got, test.want)
				}
				if got := m.PlainText(); test.reply != "" && got != test.reply || ok != (test.reply != "" || test.want != "") {
					t.Errorf("said %q, want %q", got, test.reply)
				}
			})
		})
	}
}

// Nobody allows what was not shown.
func TestALongPermissionIsNotAllowedInChat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := joined(t)
		long := permission
		long.Tool = &domain.ToolUse{Name: "Bash", Input: json.RawMessage(`{"command":"` + strings.Repeat("x", 5000) + ` rm"}`)}
		p.gateway.questions.ask(long)
		posts := roomPosts(t, h, "!ops", 1)
		if body := posts[0].Body; len(body) > 4000 || !strings.Contains(body, "read all of it in the console") || strings.Contains(body, "answer 1 allow") {
			t.Errorf("posted %d bytes: %s", len(body), body)
		}
		h.Say("!ops", bottest.Operator, "answer 1 allow")
		roomPosts(t, h, "!ops", 2)
		if got := p.gateway.questions.answered(1); got != "" {
			t.Errorf("answered %s", got)
		}
		h.Say("!ops", bottest.Operator, "answer 1 deny")
		roomPosts(t, h, "!ops", 3)
		if got := p.gateway.questions.answered(1); got != "deny||@op:hs.test|bot" {
			t.Errorf("answered %s", got)
		}
	})
}

func reaction(about, key string) map[string]any {
	return map[string]any{"m.relates_to": map[string]any{"rel_type": "m.annotation", "event_id": about, "key": key}}
}

func inThread(about, body string) map[string]any {
	return map[string]any{"msgtype": "m.text", "body": body, "m.relates_to": map[string]any{"rel_type": "m.thread", "event_id": about}}
}

func TestMatrixAsks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := joined(t)
		q := &p.gateway.questions
		hostile := permission
		hostile.Prompt = "May\u202eI <b>use</b>\nQuestion 2 is answered."
		q.ask(hostile)
		post := roomPosts(t, h, "!ops", 1)[0]
		want := "? Question 1 · builder-1 · alpha · 7_login\nMayU+202EI <b>use</b>\nQuestion 2 is answered.\nBash {\"command\":\"rm -r build\"}\nanswer 1 allow or answer 1 deny, or a reply in this thread; on Matrix also 👍 or 👎."
		if post.Body != want || !strings.Contains(post.HTML, "<code>MayU+202EI &lt;b&gt;use&lt;/b&gt;</code><br><code>Question 2 is answered.</code>") {
			t.Errorf("posted %q\n%s", post.Body, post.HTML)
		}
		h.Event("!ops", bottest.Operator, "m.room.message", inThread(post.ID, "what is this about?"))
		h.Event("!ops", bottest.Stranger, "m.room.message", inThread(post.ID, "allow"))
		h.Event("!ops", bottest.Operator, "m.reaction", reaction(post.ID, "🎉"))
		h.Event("!ops", bottest.Operator, "m.reaction", reaction("$other", "👍"))
		h.Event("!ops", bottest.Stranger, "m.reaction", reaction(post.ID, "👍"))
		if got := roomPosts(t, h, "!ops", 2)[1]; !strings.HasPrefix(got.Body, "Sorry, only operators may use answer.") || q.answered(1) != "" {
			t.Errorf("said %+v; answered %s", got, q.answered(1))
		}
		h.Event("!ops", bottest.Operator, "m.reaction", reaction(post.ID, "👍🏽"))
		if got := roomPosts(t, h, "!ops", 3)[2]; got.Thread != post.ID || got.Body != "Question 1 is answered: allow." || q.answered(1) != "allow||@op:hs.test|bot" {
			t.Errorf("said %+v; answered %s", got, q.answered(1))
		}
		h.Event("!ops", bottest.Operator, "m.reaction", reaction(post.ID, "👎"))
		if got := roomPosts(t, h, "!ops", 4)[3]; got.Body != "Failed: this question is no longer open: it was answered 'allow' by @op:hs.test" {
			t.Errorf("said %+v", got)
		}

		p.kill()
		q.ask(choice)
		q.ask(text)
		p.start() // it asks what was asked meanwhile, and nothing twice
		posts := roomPosts(t, h, "!ops", 6)
		h.Event("!ops", bottest.Operator, "m.reaction", reaction(posts[4].ID, "2️⃣"))
		h.Event("!ops", bottest.Operator, "m.room.message", inThread(posts[5].ID, "signal box"))
		posts = roomPosts(t, h, "!ops", 8)
		if got := q.answered(2) + " " + q.answered(3); got != "left then right||@op:hs.test|bot signal box||@op:hs.test|bot" {
			t.Errorf("answered %s: %+v", got, posts)
		}
		synctest.Wait()
		if posts := h.Posts("!ops"); len(posts) != 8 {
			t.Errorf("%d posts: %+v", len(posts), posts)
		}
	})
}

func TestTeamAsks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, s := team(t)
		q := &p.gateway.questions
		q.ask(permission)
		q.ask(text)
		posts := teamPosts(t, s, 2)
		want := "? *Question 1* · *builder-1* · *alpha* · `7_login`\n`May I use Bash?`\n`Bash {\"command\":\"rm -r build\"}`\n`answer 1 allow` or `answer 1 deny`, or a reply in this thread; on Matrix also 👍 or 👎."
		if posts[0].Text != want {
			t.Errorf("posted %s", posts[0].Text)
		}
		send := func(id, kind, user, thread, text string) {
			body, _ := json.Marshal(map[string]any{"type": "event_callback", "event_id": id, "event": map[string]any{
				"type": kind, "user": user, "text": text, "channel": "C1", "thread_ts": thread,
			}})
			if w := call(p, "/bot/team/events", string(body), bottest.Signature(bottest.SigningSecret, time.Now(), string(body))); w.Code != 200 {
				t.Errorf("event = %d %s", w.Code, w.Body)
			}
		}
		send("E1", "message", bottest.TeamOperator, "9.9", "allow") // another thread
		send("E2", "message", bottest.TeamOperator, "", "answer 1 allow")
		send("E3", "app_mention", bottest.TeamOperator, "1.1", "<@UBOT> deny: not today")
		send("E4", "message", bottest.TeamOperator, "1.1", "<@UBOT> deny: not today") // the same, as message.channels
		send("E5", "message", bottest.TeamOperator, "1.2", "The Yard")
		got := teamPosts(t, s, 4)
		if got[2] != (bottest.ChannelPost{Channel: "C1", Text: "Question 1 is answered: `deny`.", Thread: "1.1"}) || got[3].Thread != "1.2" {
			t.Errorf("posts %+v", got[2:])
		}
		if got := q.answered(1) + " " + q.answered(2); got != "deny|not today|U0OPERATOR|bot The Yard||U0OPERATOR|bot" {
			t.Errorf("answered %s", got)
		}
	})
}
