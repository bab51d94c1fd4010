package console_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"switchyard/internal/browsertest"
	"switchyard/internal/domain"
)

// withOptions is what a coding agent asks with options.
func withOptions(questions string) domain.Question {
	q := domain.Question{
		Kind: domain.QuestionChoice, Lasting: true, Tool: &domain.ToolUse{Name: domain.AskUserQuestion, Input: json.RawMessage(`{"questions":[` + questions + `]}`)},
	}
	choices := q.Choices()
	if q.Prompt = choices[0].Prompt; len(choices) == 1 && !choices[0].Multiple {
		q.Options = choices[0].Labels()
	}
	return q
}

const (
	balance = `{"question":"Where is the balance kept?","header":"Balance","options":[{"label":"In our database","description":"One table."},{"label":"At the provider","description":"40 ms."},{"label":"<b>Both</b>","description":""}]}`
	rounded = `{"question":"Which round to 0.05?","header":"Currencies","multiSelect":true,"options":[{"label":"CHF","description":"Cash only."},{"label":"CZK","description":"Whole crowns."},{"label":"NZD, SEK"}]}`
)

// TestPeoplePickOptions by one press or key where there is one single choice, else several together; what is picked stays when
// the page refreshes itself.
func TestPeoplePickOptions(t *testing.T) {
	browsertest.Parallel(t)
	s := newConsoleSite(t)
	tab := browsertest.Open(t)
	tab.Size(1280, 900)
	open := func(q domain.Question) domain.Question {
		t.Helper()
		asked := s.asks(q)
		tab.Goto(fmt.Sprintf("%s/questions#question-%d", s.URL, asked.ID))
		tab.WaitText(q.Prompt)
		return asked
	}
	wantPicked := func(q domain.Question, want string) {
		t.Helper()
		q, err := s.Questions.Wait(t.Context(), q.ID, waitForAnswer)
		if err != nil || q.Answer == nil || string(domain.EncodeJSON(q.Answer.Answers)) != want {
			t.Errorf("picked %+v, %v; want %s", q.Answer, err, want)
		}
	}
	asked := open(withOptions(balance))
	tab.Accessible()
	tab.Find("button", "At the provider 40 ms.")
	browsertest.Eval[bool](tab, `(document.querySelector('.choice button').focus(), true)`)
	tab.Keys("3")
	wantPicked(asked, `{"Where is the balance kept?":"<b>Both</b>"}`)

	asked = open(withOptions(strings.Replace(balance, "Where", "And where", 1)))
	browsertest.Eval[bool](tab, `document.querySelector('.choice details').open = true`)
	tab.Find("textbox", "Something else").Type("in a file")
	tab.Find("button", "Send").Click()
	wantPicked(asked, `{"And where is the balance kept?":"in a file"}`)

	asked = open(withOptions(balance + "," + rounded))
	tab.WaitText("asks 2 questions")
	tab.WaitText("0 of 2 answered; they go together")
	tab.Find("checkbox", "CHF Cash only.").Click()
	tab.Find("checkbox", "NZD, SEK").Click()
	tab.Find("textbox", "And this").Type("own words")
	tab.WaitText("1 of 2 answered; they go together")
	tab.Find("textbox", "Something else").Type("nowhere")
	tab.WaitText("2 of 2 answered; they go together")
	s.asks(domain.Question{Kind: domain.QuestionText, Prompt: "Another one?", Lasting: true})
	tab.WaitText("Another one?") // the page has refreshed itself
	tab.WaitText("2 of 2 answered; they go together")
	tab.Accessible()
	tab.Find("button", "Send 2 answers")
	tab.Find("textbox", "Something else").Call(`function() { this.focus() }`)
	tab.Keys(kb.Enter, chromedp.ModifierCtrl)
	wantPicked(asked, `{"Where is the balance kept?":"nowhere","Which round to 0.05?":["CHF","NZD, SEK","own words"]}`)
	tab.WaitText("2 answers")
	tab.WaitText("CHF, NZD, SEK, own words")
	tab.Size(360, 800)
	asked = open(withOptions(strings.Replace(rounded, "Which", "And which", 1)))
	tab.Accessible()
	tab.Find("button", "Send")
	tab.Find("checkbox", "CHF Cash only.").Click()
	tab.Find("checkbox", "NZD, SEK").Click()
	tab.Find("textbox", "And this").Type("own words")
	tab.Find("button", "Send: CHF, NZD, SEK, “own words”").Click()
	wantPicked(asked, `{"And which round to 0.05?":["CHF","NZD, SEK","own words"]}`)
}

// TestAPlanIsApprovedOnlyWhenItWasOpened: until then there is no button for it, and its key opens the plan. It is copied as it was sent.
func TestAPlanIsApprovedOnlyWhenItWasOpened(t *testing.T) {
	browsertest.Parallel(t)
	s := newConsoleSite(t)
	text := "# Mail\n\n" + strings.Repeat("a paragraph\n\n", 20) + "## At the end\n\nthe last word"
	asked := s.asks(domain.Question{
		Kind: domain.QuestionPermission, Prompt: "May I carry out this plan?", Lasting: true,
		Tool: &domain.ToolUse{Name: domain.ExitPlanMode, Input: domain.EncodeJSON(map[string]string{"plan": text})},
	})
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/questions")
	tab.Find("button", "Keep planning")
	wantHidden := func() {
		t.Helper()
		if n := len(tab.All("button", "Approve")); n != 0 || browsertest.Eval[bool](tab, `document.querySelector('.plan').innerText.includes('the last word')`) {
			t.Errorf("%d buttons approve what nobody has read", n)
		}
	}
	wantHidden()
	browsertest.Eval[bool](tab, `(document.querySelector('[data-question]').focus(), navigator.clipboard.writeText = async (text) => { window.copied = text }, true)`)
	tab.Find("button", "Copy").Click()
	tab.WaitText("Copied")
	if copied := browsertest.Eval[string](tab, "window.copied"); copied != text {
		t.Errorf("copied %q", copied)
	}
	browsertest.Eval[bool](tab, `(document.querySelector('[data-question]').focus(), true)`)
	tab.Keys("a")
	tab.Find("button", "Approve")
	tab.WaitText("the last word")
	if q, err := s.Questions.Get(t.Context(), asked.ID); err != nil || q.State != domain.QuestionOpen {
		t.Errorf("the first key approved it: %+v, %v", q, err)
	}
	browsertest.Eval[bool](tab, `document.querySelector('.plan details').open = false`)
	wantHidden()
	browsertest.Eval[bool](tab, `document.querySelector('.plan details').open = true`)
	tab.Find("button", "Approve").Click()
	s.wantAnswer(asked, domain.Allow)
}

// TestAPlanIsShownAsMarkdown, hides nothing, and is approved or kept with a word, which also works without scripts.
func TestAPlanIsShownAsMarkdown(t *testing.T) {
	s := newConsoleSite(t)
	plan := func(input string) domain.Question {
		return s.asks(domain.Question{
			Kind: domain.QuestionPermission, Prompt: "May I use ExitPlanMode?", Lasting: true,
			Tool: &domain.ToolUse{Name: domain.ExitPlanMode, Input: json.RawMessage(input)},
		})
	}
	first := plan(`{"plan":"# Mail\n\n1. Send it.\n2. Say <script>so\u202e</script>.\n"}`)
	s.Get("/questions").WantText(t, "has a plan", "Mail</", "<li>Send it.", "U+202E", ">Approve", ">Keep planning", "keeps planning by itself").
		WantNoText(t, "<script>so", "\u202e", "planFilePath")
	s.Submit(fmt.Sprintf("/questions/%d/answer", first.ID), "value", domain.Deny, "text", "no new table")
	q, err := s.Questions.Get(t.Context(), first.ID)
	if err != nil || q.Answer == nil || q.Answer.Value != domain.Deny || q.Answer.Text != "no new table" {
		t.Errorf("%+v, %v", q.Answer, err)
	}
	s.Get("/questions").WantText(t, "Keeps planning")
	second := plan(`{}`)
	s.Get("/questions").WantText(t, "Its client has sent no plan")
	s.Submit(fmt.Sprintf("/questions/%d/answer", second.ID), "value", domain.Allow)
	s.wantAnswer(second, domain.Allow)
	s.Get("/questions").WantText(t, "Plan approved")

	long := "# Mail\n\n" + strings.Repeat("- a step\n", 8) + "```\n\n# a comment\n\nmake\n```\n\n## Tests\n\nmany\n\n## What I leave alone\n\nthe rest\n"
	plan(string(domain.EncodeJSON(map[string]string{"plan": long})))
	s.Get("/questions").WantText(t, "Plan</b>", "24 lines", "a comment", "make", `class="middle"`, "The other 7 lines", ": “Tests”, “What I leave alone”", "many", "Unfold the plan")
}
