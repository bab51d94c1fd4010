package console_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"switchyard/internal/browsertest"
	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
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

// TestNoPageHasAQuestionsHiddenCharacters in its HTML, neither in a text nor in an attribute, while it is open or afterwards.
func TestNoPageHasAQuestionsHiddenCharacters(t *testing.T) {
	s := newStorySite(t, true, map[string]string{"2_current/2_story_audit.md": "# Audit\n"})
	const evil = "a\u202eb\u2066\u0007\u200bc"
	cwd := evil
	input, _ := json.Marshal(map[string]string{"command": evil, "x": evil})
	tool := &domain.ToolUse{Name: "Bash" + evil, Input: input, CWD: &cwd}
	var asked []domain.Question
	for _, q := range []domain.Question{
		{Kind: domain.QuestionPermission, Prompt: evil, Tool: tool, Detail: evil},
		{Kind: domain.QuestionChoice, Prompt: evil, Options: []string{evil, "two\r\nlines"}},
		{Kind: domain.QuestionText, Prompt: evil},
	} {
		q.Project, q.StoryID = "webshop", "2_story_audit"
		asked = append(asked, s.asks(q))
		q.StoryID += evil
		s.asks(q)
	}
	look := func() {
		t.Helper()
		for _, page := range []string{"/", "/questions", "/questions?state=all", "/audit", "/projects/webshop", auditPage} {
			text := s.Get(page).WantStatus(t, http.StatusOK).Text
			if i := strings.IndexFunc(text, func(r rune) bool { return domain.IsHidden(r) && r != '\r' }); i >= 0 {
				t.Errorf("%s: %q", page, text[max(0, i-100):min(i+50, len(text))])
			}
		}
	}
	look()
	answer := func(n int, name, value string) gatewaytest.Answer {
		return s.Submit(fmt.Sprintf("/questions/%d/answer", asked[n].ID), name, value, "next", "/questions")
	}
	answer(0, "value", "deny").WantStatus(t, http.StatusSeeOther)
	answer(1, "option", "3").WantStatus(t, http.StatusBadRequest)
	answer(1, "option", "1").WantStatus(t, http.StatusSeeOther)
	answer(2, "value", evil).WantStatus(t, http.StatusSeeOther)
	for n, want := range []string{"deny", evil, evil} {
		s.wantAnswer(asked[n], want)
	}
	look()
	answer(2, "value", "late")
	look()
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
