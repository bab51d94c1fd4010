package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/internal/domain"
)

// TestTooManyOpenQuestionsAreRefused: too many of one asker, too many of all, and too long ones, each in its own words.
func TestTooManyOpenQuestionsAreRefused(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		now := time.UnixMilli(1_000_000)
		limits := domain.QuestionLimits{Own: 3, All: 6, Ended: 100, Inputs: 1000}
		ask := func(asker string, n int, tool *domain.ToolUse) error {
			_, err := db.AddQuestion(t.Context(), &domain.AuditEntry{}, domain.Question{
				Kind: domain.QuestionText, Prompt: "Which?", Key: fmt.Sprint(n), Asker: asker, AskedAt: now, Expires: now.Add(time.Hour), Tool: tool,
			}, "api", limits)
			return err
		}
		refused := func(err error, says string) {
			t.Helper()
			if domain.CodeOf(err) != domain.RateLimited || !strings.Contains(domain.MessageOf(err), says) {
				t.Errorf("%v, want %q", err, says)
			}
		}
		long := &domain.ToolUse{Name: "Write", Input: json.RawMessage(`"` + strings.Repeat("x", 700) + `"`)}
		refused(errors.Join(ask("0", 0, long), ask("0", 1, long)), "MiB of inputs already")
		var all sync.WaitGroup
		for n := range 5 {
			all.Go(func() {
				if err := ask(fmt.Sprint((n+1)%2), 2+n, nil); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		refused(ask("0", 10, nil), "you have 3 open")
		refused(ask("another", 10, nil), "6 questions are open here")
		if err := ask("0", 0, nil); err != nil {
			t.Errorf("what is open already: %v", err)
		}
		now = now.Add(2 * time.Hour)
		if err := ask("another", 10, nil); err != nil {
			t.Errorf("when all have expired: %v", err)
		}
	})
}

// TestAskingTakesNoLongerForWhatOthersHaveAsked, however long that is.
func TestAskingTakesNoLongerForWhatOthersHaveAsked(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		asked, now := 0, time.Now()
		ask := func(times int, detail string) (quickest time.Duration) {
			quickest = time.Hour
			for range times {
				asked++
				began := time.Now()
				if _, err := db.AddQuestion(t.Context(), &domain.AuditEntry{}, domain.Question{
					Kind: domain.QuestionText, Prompt: "Which?", Detail: detail, Key: fmt.Sprint(asked),
					Asker: fmt.Sprint(asked / 50), AskedAt: now, Expires: now.Add(time.Hour),
				}, "api", domain.AllowedQuestions); err != nil {
					t.Fatal(err)
				}
				quickest = min(quickest, time.Since(began))
			}
			return quickest
		}
		before := ask(10, "")
		ask(400, strings.Repeat("d", domain.MaxDetail))
		if after := ask(10, ""); after > 5*before+time.Millisecond {
			t.Errorf("%s, and %s once others ask 25 MiB", before, after)
		}
	})
}

// TestTheMedianIsOfAnswersAlone, and only of those after a time.
func TestTheMedianIsOfAnswersAlone(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		now := time.UnixMilli(1_000_000)
		want := func(median time.Duration) {
			t.Helper()
			if got, err := db.AnsweredWithin(t.Context(), now); err != nil || got != median {
				t.Errorf("%v, %v; want %v", got, err, median)
			}
		}
		want(0)
		for i, state := range []domain.QuestionState{
			domain.QuestionAnswered, domain.QuestionAnswered, domain.QuestionWithdrawn, domain.QuestionAnswered, domain.QuestionAnswered,
		} {
			q, err := db.AddQuestion(t.Context(), &domain.AuditEntry{}, domain.Question{
				Kind: domain.QuestionText, Prompt: fmt.Sprint(i), Asker: "7", AskedAt: now, Expires: now.Add(time.Hour), State: domain.QuestionOpen, Key: fmt.Sprint(i),
			}, "api", domain.AllowedQuestions)
			if err != nil {
				t.Fatal(err)
			}
			q.State, q.Ended, q.Answer = state, now.Add(time.Duration(i)*time.Minute), &domain.Answer{Value: "x"}
			if err := db.EndQuestion(t.Context(), &domain.AuditEntry{}, q); err != nil {
				t.Fatal(err)
			}
		}
		want(3 * time.Minute) // of 1, 3 and 4; the first ended too early
	})
}

// TestOldQuestionsAreRemoved: those that ended before a time, and all but a number that ended last; never open ones.
func TestOldQuestionsAreRemoved(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		now := time.UnixMilli(1_000_000)
		for i := range 6 {
			q, err := db.AddQuestion(t.Context(), &domain.AuditEntry{}, domain.Question{
				Kind: domain.QuestionText, Prompt: fmt.Sprint(i), Asker: "7", AskedAt: now, Expires: now.Add(time.Hour), State: domain.QuestionOpen, Key: fmt.Sprint(i),
			}, "api", domain.AllowedQuestions)
			if err != nil {
				t.Fatal(err)
			}
			if q.State, q.Ended = domain.QuestionWithdrawn, now.Add(time.Duration(i)*time.Second); i > 0 {
				if err := db.EndQuestion(t.Context(), &domain.AuditEntry{}, q); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, c := range []struct {
			before time.Time
			keep   int
			want   string
		}{
			{now, 10, "543210"}, {now.Add(2 * time.Second), 10, "54320"}, {now, 4, "54320"}, {now, 2, "540"}, {now.Add(time.Minute), 2, "0"},
		} {
			if err := db.RemoveQuestions(t.Context(), 0, c.before, c.keep); err != nil {
				t.Fatal(err)
			}
			left, err := db.Questions(t.Context(), "", false, now, 10)
			got := ""
			for _, q := range left {
				got += q.Prompt
			}
			if err != nil || got != c.want {
				t.Errorf("%+v leaves %q, %v", c, got, err)
			}
		}
	})
}
