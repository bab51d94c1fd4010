package service_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/store/sqlite"
	"switchyard/internal/store/storetest"
)

// twice asks in a bubble of time, over a real database.
type twice struct {
	t *testing.T
	*service.Service
	asked context.Context // of all calls
}

func inTwice(t *testing.T, test func(twice)) {
	dir := storetest.Dir(t)
	synctest.Test(t, func(t *testing.T) {
		db, err := sqlite.Open(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		s := overBoard(t, db, &boardServer{})
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error)
		go func() { ran <- s.Questions.Run(ctx) }()
		asked, leave := context.WithCancel(t.Context())
		test(twice{t, s, asked})
		leave()
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
}

// call is one that is held until somebody answers.
type call struct {
	leave   func()
	decided chan string
}

// said is how a call has ended, "" for one that goes on.
func (c call) said() string {
	synctest.Wait()
	select {
	case text := <-c.decided:
		return text
	default:
		return ""
	}
}

func (w twice) as(who string, channel domain.Channel) context.Context {
	return domain.WithActor(w.asked, &domain.Actor{
		Who: who, Account: "token " + who, Via: domain.ViaToken, Role: domain.RoleOperator, Channel: channel,
	})
}

// uses asks whether a tool may be used.
func (w twice) uses(who string, channel domain.Channel, input, id, session string) call {
	ctx, leave := context.WithCancel(w.as(who, channel))
	c := call{leave, make(chan string, 1)}
	go func() {
		d, err := w.Questions.Permission(ctx, ctx, domain.ToolUse{Name: "Bash", Input: json.RawMessage(input)}, id, session)
		switch {
		case err != nil:
			c.decided <- domain.MessageOf(err)
		case d.Allowed:
			c.decided <- "allowed " + string(d.Input)
		default:
			c.decided <- "denied: " + d.Message
		}
	}()
	synctest.Wait()
	return c
}

// open returns the only question that is open.
func (w twice) open() domain.Question {
	w.t.Helper()
	var open []domain.Question
	for _, q := range w.Questions.Recent() {
		if q.State == domain.QuestionOpen {
			open = append(open, q)
		}
	}
	if len(open) != 1 {
		w.t.Fatalf("%d questions are open: %+v", len(open), open)
	}
	return open[0]
}

func (w twice) allow(id int64) {
	w.t.Helper()
	if _, err := w.Questions.Answer(w.as("mara", domain.ChannelConsole), id, domain.Answer{Value: domain.Allow}); err != nil {
		w.t.Fatal(err)
	}
}

func (w twice) want(c call, says string) {
	w.t.Helper()
	if got := c.said(); got != says {
		w.t.Errorf("%q, want %q", got, says)
	}
}

const hook, mcp = domain.ChannelHook, domain.ChannelMCP

// TestOneUseOfAToolIsOneQuestion, whichever ways it comes, and in whatever form its input is written; its answer reaches
// all who hold it, and each with the input as it came.
func TestOneUseOfAToolIsOneQuestion(t *testing.T) {
	inTwice(t, func(w twice) {
		first := w.uses("a", hook, `{"command":"make", "n":12345678901234567890}`, "", "s1")
		second := w.uses("a", mcp, `{"n":12345678901234567890,"command":"m\u0061ke"}`, "t1", "")
		w.allow(w.open().ID)
		w.want(first, `allowed {"command":"make", "n":12345678901234567890}`)
		w.want(second, `allowed {"n":12345678901234567890,"command":"m\u0061ke"}`)

		// Once an answer has reached a holder by one way, the next request by that way is a new question.
		first = w.uses("a", hook, `{"command":"make"}`, "", "s1")
		w.allow(w.open().ID)
		w.want(first, `allowed {"command":"make"}`)
		time.Sleep(50 * time.Second)
		w.want(w.uses("a", mcp, `{"command":"make"}`, "t2", ""), `allowed {"command":"make"}`) // late, by the other way
		for _, channel := range []domain.Channel{hook, mcp} {
			again := w.uses("a", channel, `{"command":"make"}`, "of "+string(channel), "s1")
			w.allow(w.open().ID)
			w.want(again, `allowed {"command":"make"}`)
			time.Sleep(2 * time.Minute)
		}

		// Nobody else's, no other session's, nothing else's, and nothing after a minute.
		first = w.uses("a", hook, `{"command":"make"}`, "", "s1")
		w.allow(w.open().ID)
		w.want(first, `allowed {"command":"make"}`)
		for name, other := range map[string]call{
			"another asker": w.uses("b", mcp, `{"command":"make"}`, "", ""), "another session": w.uses("a", mcp, `{"command":"make"}`, "", "s2"),
			"another number": w.uses("a", mcp, `{"n":12345678901234567891}`, "", ""),
		} {
			if got := other.said(); got != "" {
				t.Errorf("%s: %s", name, got)
			}
		}
		if n := w.Questions.Open(); n != 3 {
			t.Errorf("%d questions are open", n)
		}
		time.Sleep(61 * time.Second)
		w.want(w.uses("a", mcp, `{"command":"make"}`, "", "s1"), "")
	})
}

// TestAQuestionThatNobodyHoldsEnds after two minutes, unless somebody asks again, or it was made to last.
func TestAQuestionThatNobodyHoldsEnds(t *testing.T) {
	inTwice(t, func(w twice) {
		state := func(id int64, held bool, want domain.QuestionState) {
			t.Helper()
			if q, err := w.Questions.Get(w.t.Context(), id); err != nil || q.State != want || q.Held != held {
				t.Errorf("%s, held %v, %v; want %s, held %v", q.State, q.Held, err, want, held)
			}
		}
		held := w.uses("a", hook, `{"command":"make"}`, "", "s1")
		id := w.open().ID
		time.Sleep(10 * time.Minute)
		state(id, true, domain.QuestionOpen)
		second := w.uses("a", mcp, `{"command":"make"}`, "t1", "")
		held.leave()
		time.Sleep(10 * time.Minute)
		state(id, true, domain.QuestionOpen)
		second.leave()
		time.Sleep(110 * time.Second)
		state(id, false, domain.QuestionOpen)
		held = w.uses("a", hook, `{"command":"make"}`, "", "s1")
		state(w.open().ID, true, domain.QuestionOpen)
		time.Sleep(10 * time.Minute)
		state(id, true, domain.QuestionOpen)
		held.leave()
		time.Sleep(119 * time.Second)
		state(id, false, domain.QuestionOpen)
		time.Sleep(4 * time.Second)
		state(id, false, domain.QuestionWithdrawn)

		lasts, err := w.Questions.Ask(w.as("a", domain.ChannelAPI), domain.Question{Kind: domain.QuestionText, Prompt: "Which?", Lasting: true}, 0)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(59 * time.Minute)
		state(lasts.ID, false, domain.QuestionOpen)
		time.Sleep(2 * time.Minute)
		state(lasts.ID, false, domain.QuestionExpired)
	})
}

// TestAnAnswerThatReachedNobodyIsGivenOnce, to the same asker, within an hour.
func TestAnAnswerThatReachedNobodyIsGivenOnce(t *testing.T) {
	const input = `{"command":"make"}`
	inTwice(t, func(w twice) {
		answered := func() {
			t.Helper()
			c := w.uses("a", hook, input, "", "s1")
			c.leave()
			if got := c.said(); !strings.Contains(got, "ask again") {
				t.Fatalf("left: %s", got)
			}
			w.allow(w.open().ID)
		}
		answered()
		time.Sleep(59 * time.Minute)
		w.want(w.uses("b", hook, input, "", "s1"), "")
		w.Questions.Withdraw(w.as("b", hook), w.open().ID)
		w.want(w.uses("a", hook, input, "", "s1"), "allowed "+input)
		again := w.uses("a", hook, input, "", "s1")
		w.want(again, "")
		w.allow(w.open().ID)
		w.want(again, "allowed "+input)
		answered()
		time.Sleep(61 * time.Minute)
		w.want(w.uses("a", hook, input, "", "s1"), "")

		// The same for what is posted, and asked for by its id.
		ctx, ask := w.as("c", domain.ChannelAPI), domain.Question{Kind: domain.QuestionText, Prompt: "Which?", Lasting: true}
		for read := range 2 {
			q, err := w.Questions.Ask(ctx, ask, 0)
			if err == nil {
				_, err = w.Questions.Answer(w.as("mara", domain.ChannelBot), q.ID, domain.Answer{Value: "that"})
			}
			if err == nil && read == 1 {
				_, err = w.Questions.Wait(ctx, q.ID, 0)
			}
			if err != nil {
				t.Fatal(err)
			}
			again, err := w.Questions.Ask(ctx, ask, 0)
			if err != nil || (again.ID == q.ID) != (read == 0) || again.Again != (read == 0) {
				t.Errorf("asked after %d readings: %+v, %v", read, again, err)
			}
			if read == 1 {
				w.Questions.Withdraw(ctx, again.ID)
			}
		}
	})
}
