package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"switchyard/internal/browsertest"
	"switchyard/internal/domain"
)

// waitForAnswer is long enough for a loaded machine.
const waitForAnswer = 30 * time.Second

// asks asks a question as an administrator.
func (s *consoleSite) asks(q domain.Question) domain.Question {
	s.TB.Helper()
	asked, err := s.Questions.Ask(domain.WithActor(s.TB.Context(), new(domain.Administrator(domain.ViaOpen))), q, 0)
	if err != nil {
		s.TB.Fatal(err)
	}
	return asked
}

func (s *consoleSite) wantAnswer(q domain.Question, want string) {
	s.TB.Helper()
	q, err := s.Questions.Wait(s.TB.Context(), q.ID, waitForAnswer)
	if err != nil || q.State != domain.QuestionAnswered || q.Answer.Value != want {
		s.TB.Errorf("question %d: %+v, %v", q.ID, q, err)
	}
}

func permissionFor(command string) domain.Question {
	return domain.Question{
		Kind: domain.QuestionPermission, Prompt: "May I run this?",
		Tool: &domain.ToolUse{Name: "Bash", Input: []byte(`{"command":"` + command + `"}`)},
	}
}

// TestQuestionsAreShownExactlyAndNeverAsMarkup: what an agent writes cannot look like something else.
func TestQuestionsAreShownExactlyAndNeverAsMarkup(t *testing.T) {
	s := newConsoleSite(t)
	s.Get("/questions").WantStatus(t, http.StatusOK).WantText(t, "<h1>Questions</h1>", "Nobody asks")
	s.asks(permissionFor(`rm \u202Etxt.x <script>alert(1)</script>`))
	s.asks(domain.Question{Kind: domain.QuestionText, Prompt: "<img src=x onerror=alert(1)>"})
	s.Get("/questions").WantText(t, "<mark>U+202E</mark>", "hidden character", "&lt;img src=x").
		WantNoText(t, "\u202e", "<script>alert", "<img src=x")
	s.Get("/").WantText(t, "<b>2</b> <span>ask</span>")
}

func TestQuestionsAreAnsweredWithoutScripts(t *testing.T) {
	browsertest.Parallel(t)
	s := newConsoleSite(t)
	asked := s.asks(domain.Question{Kind: domain.QuestionChoice, Prompt: "Which table?", Options: []string{"carts", "orders"}})
	tab := browsertest.Open(t)
	tab.Scripts(false)
	tab.Goto(s.URL + "/questions")
	tab.Find("button", "orders").Click()
	s.wantAnswer(asked, "orders")
}

// TestAPermissionIsAllowedOnlyWhenItsTextWasShown: Allow appears with the lines that were folded. Keys do the same.
func TestAPermissionIsAllowedOnlyWhenItsTextWasShown(t *testing.T) {
	browsertest.Parallel(t)
	s := newConsoleSite(t)
	long := s.asks(permissionFor(strings.Repeat(`echo line\n`, 200)))
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/questions")
	tab.WaitText("Unfold the text")
	if n := len(tab.All("button", "Allow")); n != 0 {
		t.Errorf("%d buttons allow what nobody has read", n)
	}
	browsertest.Eval[bool](tab, `(document.querySelector('[data-question]').focus(), true)`)
	tab.Keys("a")
	tab.Find("button", "Allow")
	if q, err := s.Questions.Get(t.Context(), long.ID); err != nil || q.State != domain.QuestionOpen {
		t.Errorf("the first key allowed it: %+v, %v", q, err)
	}
	tab.Keys("a")
	s.wantAnswer(long, domain.Allow)
	short := s.asks(permissionFor("ls"))
	tab.Goto(s.URL + "/questions")
	press(tab, tab.Find("button", "Deny"), kb.Enter)
	s.wantAnswer(short, domain.Deny)
}
