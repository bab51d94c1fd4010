package console_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
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
	s.Get("/audit").WantText(t, "Asked a question")
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

// TestAHostileInputIsTextInABrowser: it makes no element, runs nothing and hides nothing; 10,000 lines are folded, and all there.
func TestAHostileInputIsTextInABrowser(t *testing.T) {
	browsertest.Parallel(t)
	s := newStorySite(t, true, map[string]string{"2_current/2_story_audit.md": "# Audit\n"})
	evil := `</code></pre></div></article><script>window.hacked = 1</script><img src=x onerror="window.hacked = 1"><a href="https://evil.example">Allow</a>` +
		`<form action="/questions/1/answer"><button name="value" value="allow">Deny</button></form><style>.deny { display: none }</style>` +
		`{{ .Secret }} <!-- [Allow](javascript:window.hacked=1) &lt;b&gt; "><svg onload=window.hacked=1>`
	const lines = 10_000
	var many strings.Builder
	for i := range lines {
		many.WriteString(strconv.FormatInt(int64(i), 36) + "\n")
	}
	input := func(v any) []byte {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	name := `<b onclick="window.hacked=1">Bash</b>`
	for _, tool := range []domain.ToolUse{
		{Name: name, CWD: &evil, Input: input(map[string]string{"command": evil, "description": evil})},
		{Name: name, CWD: &evil, Input: input(map[string]any{evil: evil, "list": []string{evil}})},
		{Name: "Bash", Input: input(map[string]string{"command": many.String()})},
	} {
		s.asks(domain.Question{Kind: domain.QuestionPermission, Prompt: evil, Detail: evil, StoryID: evil, Project: "webshop", Tool: &tool})
	}
	s.asks(domain.Question{Kind: domain.QuestionChoice, Prompt: evil, Detail: evil, Options: []string{evil, "other"}})
	tab := browsertest.Open(t)
	for _, page := range []string{"/questions", "/", "/questions?state=all"} {
		tab.Goto(s.URL + page)
		tab.WaitText("hacked = 1")
		const foreign = `main :is(img, script, style, svg[onload], a[href^="https:"], a[href^="javascript:"], [onclick], [onerror], form form, pre form, pre button)`
		if found := browsertest.Eval[[]string](tab, `[...document.querySelectorAll('`+foreign+`')].map(e => e.outerHTML)`); len(found) > 0 {
			t.Errorf("%s has %q", page, found)
		}
		if browsertest.Eval[bool](tab, `'hacked' in window`) {
			t.Errorf("%s runs what it shows", page)
		}
	}
	tab.Goto(s.URL + "/questions")
	texts := browsertest.Eval[[]string](tab, `[...document.querySelectorAll('.tool')].map(e => [...e.querySelectorAll('.exact .exact')].map(p => p.textContent).join(''))`)
	if len(texts) != 3 || texts[0] != evil || strings.Count(texts[1], `"`) < 4 || !strings.Contains(texts[1], `onerror=\"window.hacked = 1\"`) {
		t.Errorf("shown: %.2000q", texts)
	}
	if got := strings.Count(texts[2], "\n"); got != lines {
		t.Errorf("%d lines are there", got)
	}
	if height := browsertest.Eval[float64](tab, `document.querySelectorAll('article')[2].offsetHeight`); height > 800 {
		t.Errorf("the folded input is %v high", height)
	}
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

// TestAFileTooLongToReadIsAllowedWithATick: its two ends are shown, with its name and length, also among all questions. A short one is copied.
func TestAFileTooLongToReadIsAllowedWithATick(t *testing.T) {
	browsertest.Parallel(t)
	s := newConsoleSite(t)
	asksToWrite := func(text string) domain.Question {
		input := domain.EncodeJSON(map[string]string{"file_path": "rates/ta\u202eble.go", "content": text})
		return s.asks(domain.Question{Kind: domain.QuestionPermission, Prompt: "May I use Write?", Lasting: true, Tool: &domain.ToolUse{Name: "Write", Input: input}})
	}
	text := "package rates\n" + strings.Repeat("\t// many\n", 12_000) + "// the end\n"
	long := asksToWrite(text)
	tab := browsertest.Open(t)
	for _, page := range []string{"/questions", "/questions?state=all"} {
		tab.Goto(s.URL + page)
		tab.WaitText("rates/taU+202Eble.go")
		tab.WaitText("12,002 lines, 109 kB")
		tab.WaitText("11,994 lines, 108 kB between are not shown.")
		tab.WaitText("// the end")
		tab.Find("link", "Read all of it")
		if n := len(tab.All("button", "Allow")); n != 0 {
			t.Errorf("%s: %d buttons allow what is not shown", page, n)
		}
	}
	tab.Find("checkbox", "Allow it without having read all of it").Click()
	tab.Find("button", "Allow").Click()
	s.wantAnswer(long, domain.Allow)

	asksToWrite(strings.Repeat("\ta line\n", 20))
	tab.Goto(s.URL + "/questions")
	browsertest.Eval[bool](tab, `(navigator.clipboard.writeText = async (text) => { window.copied = text }, true)`)
	tab.Find("button", "Copy").Click()
	tab.WaitText("Copied")
	if copied := browsertest.Eval[string](tab, "window.copied"); copied != strings.Repeat("\ta line\n", 20) {
		t.Errorf("copied %q", copied)
	}
	s.Get("/questions").WantText(t, `Answered today <span class="n">1</span>`)
}

// TestOpenQuestionsComeBeforeEndedOnes on a page that is opened; one that ends under the reader's eyes stays in its place.
func TestOpenQuestionsComeBeforeEndedOnes(t *testing.T) {
	s := newConsoleSite(t)
	text := func(prompt string) domain.Question { return domain.Question{Kind: domain.QuestionText, Prompt: prompt} }
	first, second, third := s.asks(text("first?")), s.asks(text("second?")), s.asks(text("third?"))
	wantOrder := func(page gatewaytest.Answer, want ...domain.Question) {
		t.Helper()
		at := 0
		for _, q := range want {
			mark := fmt.Sprintf(`<article id="question-%d"`, q.ID)
			i := strings.Index(page.Text[at:], mark)
			if i < 0 {
				t.Fatalf("%s is not where it should be", mark)
			}
			at += i
		}
	}
	part := func(page gatewaytest.Answer) gatewaytest.Answer {
		t.Helper()
		found := regexp.MustCompile(`data-hx-get="(/questions[^"]*)"`).FindStringSubmatch(page.Text)
		if found == nil {
			t.Fatal("the page has no part")
		}
		address, _, _ := strings.Cut(strings.ReplaceAll(found[1], "&amp;", "&"), "v=")
		return s.Get(address+"v=", "HX-Request", "true").WantStatus(t, http.StatusOK)
	}
	page := s.Get("/questions").WantStatus(t, http.StatusOK)
	wantOrder(page, first, second, third)
	if err := s.Questions.Withdraw(domain.WithActor(t.Context(), new(domain.Administrator(domain.ViaOpen))), first.ID); err != nil {
		t.Fatal(err)
	}
	wantOrder(part(page), first, second, third)
	page = s.Get("/questions").WantStatus(t, http.StatusOK)
	wantOrder(page, second, third, first)
	wantOrder(part(page), second, third, first)
}

// TestADoubleClickAnswersOneQuestion: the next one has taken its place meanwhile.
func TestADoubleClickAnswersOneQuestion(t *testing.T) {
	browsertest.Parallel(t)
	s := newConsoleSite(t)
	first, second := s.asks(permissionFor("ls")), s.asks(permissionFor("rm -r /"))
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/questions")
	tab.Find("button", "Allow").Click()
	s.wantAnswer(first, domain.Allow)
	tab.Wait(`document.querySelectorAll('[data-question]').length === 1`)
	browsertest.Eval[bool](tab, `document.querySelector('[data-question] .allow').dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true, detail: 2}))`)
	tab.Find("button", "Deny").Click()
	s.wantAnswer(second, domain.Deny)
}

// TestAPermissionIsAnsweredInTheInbox by one key or a button, where all of it is in sight: on a phone it is opened first.
func TestAPermissionIsAnsweredInTheInbox(t *testing.T) {
	browsertest.Parallel(t)
	s := newConsoleSite(t)
	tab := browsertest.Open(t)
	tab.Size(1280, 900)
	show := func(q domain.Question, text string) domain.Question {
		t.Helper()
		asked := s.asks(q)
		tab.Goto(s.URL + "/")
		tab.Wait(fmt.Sprintf(`document.querySelector('[data-question]')?.innerText.includes(%q)`, text))
		return asked
	}
	open := func(q domain.Question) {
		t.Helper()
		if n := len(tab.All("button", "Allow")); n != 0 {
			t.Errorf("%d buttons allow what is not in sight", n)
		}
		browsertest.Eval[bool](tab, `(document.querySelector('[data-question] .title').focus(), true)`)
		tab.Keys("a")
		if q, err := s.Questions.Get(t.Context(), q.ID); err != nil || q.State != domain.QuestionOpen {
			t.Errorf("it was answered: %+v, %v", q, err)
		}
		if err := s.Questions.Withdraw(t.Context(), q.ID); err != nil {
			t.Fatal(err)
		}
	}
	short := permissionFor(`rm -r build\n  make`)
	cwd := "/src/web\u202eshop"
	short.Tool.CWD = &cwd
	asked := show(short, "rm -r build") // the directory has what cannot be seen
	tab.WaitText("Bash in /src/webU+202Eshop")
	tab.Keys("ja")
	s.wantAnswer(asked, domain.Allow)
	asked = show(permissionFor("ls -l"), "ls -l")
	tab.Find("button", "Deny").Click()
	s.wantAnswer(asked, domain.Deny)

	asked = show(permissionFor(strings.Repeat(`echo line\n`, 9)), "Read and answer")
	open(asked)
	asked = show(domain.Question{Kind: domain.QuestionChoice, Prompt: "Which table?", Options: []string{"carts", "orders"}}, "Which table?")
	tab.Find("button", "orders").Click()
	s.wantAnswer(asked, "orders")
	asked = show(domain.Question{Kind: domain.QuestionChoice, Prompt: "Which of three?", Options: []string{"a", "b", "c"}}, "Which of three?")
	tab.Find("link", "3 options")
	open(asked)
	tab.Size(360, 800)
	open(show(permissionFor("make"), "make"))
}

func TestReadersSeeInTheInboxWhatIsAsked(t *testing.T) {
	s := loggedIn(t, "")
	s.asks(permissionFor("make e2e"))
	_, token := gatewaytest.NamedToken(t, s.Service, "guest", domain.RoleViewer)
	viewer := &gatewaytest.Site{TB: t, URL: s.URL, Client: gatewaytest.NewClient(t)}
	viewer.Submit("/login", "token", token)
	viewer.Get("/").WantText(t, "asks to run a command", "make e2e").WantNoText(t, ">Deny")
}

// TestABlockedStoryThatAsksSaysBoth: the question first, then the block, which can be lifted without an answer.
func TestABlockedStoryThatAsksSaysBoth(t *testing.T) {
	browsertest.Parallel(t)
	s := newStorySite(t, true, map[string]string{"3_qa/2_story_audit.md": "---\nblocked: which provider?\n---\n# Audit log\n"})
	for _, prompt := range []string{"which provider?", "may I start?"} {
		s.asks(domain.Question{Kind: domain.QuestionText, Prompt: prompt, Project: "webshop", StoryID: "2_story_audit"})
		page := s.Get(auditPage).WantText(t, "Blocked", ">Unblock</button>").Text
		if strings.Index(page, prompt) > strings.Index(page, ">Unblock</button>") {
			t.Errorf("the block stands before the question %q", prompt)
		}
	}
	tab := browsertest.Open(t)
	tab.Goto(s.URL + auditPage)
	tab.Find("button", "Unblock").Click()
	tab.Wait(`!document.getElementById('main').innerText.includes('Unblock')`)
	tab.WaitText("may I start?")
	if text := s.file("3_qa/2_story_audit.md"); strings.Contains(text, "blocked") {
		t.Errorf("the file says %q", text)
	}
}
