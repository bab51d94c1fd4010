package console_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"switchyard/internal/browsertest"
	"switchyard/internal/domain"
	"switchyard/internal/waittest"
)

func backlogTask(id, status string) string {
	return "---\nid: " + id + "\ntitle: Task " + id + "\nstatus: " + status + "\n---\n\n## Acceptance Criteria\n" +
		"<!-- AC:BEGIN -->\n- [x] #1 It has `code`\n- [ ] #2 It is documented\n<!-- AC:END -->\n"
}

func backlogFiles() map[string]string {
	return map[string]string{
		"backlog/config.yml":                "statuses: [\"To Do\", \"In Progress\", \"Done\"]\n",
		"backlog/tasks/back-1 - a.md":       backlogTask("BACK-1", "In Progress"),
		"backlog/tasks/back-2 - b.md":       backlogTask("BACK-2", "Won't Do"),
		"backlog/tasks/back-3 - c.md":       backlogTask("BACK-3", "Done"),
		"backlog/drafts/draft-1 - d.md":     "---\nid: DRAFT-1\ntitle: A draft\n---\n",
		"backlog/completed/back-4 - e.md":   backlogTask("BACK-4", "Done"),
		"backlog/archive/tasks/back-5 -.md": backlogTask("BACK-5", "To Do"),
	}
}

const (
	backPage    = "/projects/webshop/stories/BACK-1"
	changePage  = "/projects/webshop/stories/add-dark"
	changeTasks = "openspec/changes/add-dark/tasks.md"
)

func TestAProjectsPageSpeaksTheWordsOfItsBoard(t *testing.T) {
	s := newLayoutSite(t, "backlog.md", backlogFiles())
	page := s.Get("/projects/webshop").WantStatus(t, http.StatusOK)
	page.WantText(t, ">In Progress<", "BACK-1", ">1/2<", "This board", ">Backlog.md<", ">backlog/<", "<code>updated_date</code>", "drafts")
	page.WantText(t, "1 story, folded; drafts are promoted, and tasks completed and archived, by backlog itself")
	page.WantText(t, "Won&#39;t Do", "this status is not in the board&#39;s configuration")
	s.Get("/").WantText(t, ">To Do</th>", ">In Progress</th>", ">Done</th>")
	page.WantNoText(t, "New story", "BACK-4", "BACK-2", "A draft")
	s.Get("/projects/webshop?open=7_won_t_do").WantText(t, ">Fold<", "This status is not in the board&#39;s configuration.", "BACK-2")
	s.Get("/projects/webshop?open=5_completed").WantText(t, "Drafts are promoted", "BACK-4").WantNoText(t, "BACK-5")
	s.Get(backPage).WantText(t, `title="3_in_progress">In Progress<`, "Move to <bdi>Done</bdi>", "Move to <bdi>To Do</bdi>").WantNoText(t, "Move to <bdi>Draft</bdi>", "Move to <bdi>Archived</bdi>")
	s.Get("/projects/webshop/stories/BACK-4").WantText(t, "It is not moved here: drafts are promoted").WantNoText(t, "Move to <bdi>")
}

func TestEveryPageNamesAStageInTheWordsOfItsBoard(t *testing.T) {
	s := newLayoutSite(t, "backlog.md", backlogFiles())
	version := version(t, s.Get(backPage))
	s.follow(s.Submit(backPage, "version", version, "do", "move", "stage", "2_to_do", "was", "3_in_progress")).WantText(t, "Moved to To Do.")
	s.Record("webshop", moved("BACK-2", "3_in_progress", "7_won_t_do", time.Now()))
	for path, words := range map[string][]string{
		"/events": {"In Progress → Won&#39;t Do"}, "/projects/webshop": {"In Progress → Won&#39;t Do"}, "/": {"In Progress → Won&#39;t Do"},
		"/projects/webshop/stories/BACK-2": {"In Progress → Won&#39;t Do"},
		"/audit":                           {`<del dir="auto">In Progress</del>`, `<ins dir="auto">To Do</ins>`},
		"/search?q=BACK":                   {" · Won&#39;t Do"},
		"/palette?q=BACK&here=/":           {" · Won&#39;t Do"},
		"/flow":                            {">In Progress</th>"},
	} {
		s.Get(path).WantText(t, words...).WantNoText(t, "Won t do", "In progress →", ">To do<")
	}
}

func TestABoxIsTickedAndUndone(t *testing.T) {
	s := newLayoutSite(t, "openspec", map[string]string{changeTasks: "- [x] 1.1 one\n- [ ] 1.2 two\n", "openspec/changes/x/tasks.md": "- [x] a\n"})
	s.Get("/projects/webshop").WantText(t, "openspec archive x", ">OpenSpec<", ">openspec/changes/<")
	page := s.Get(changePage).WantText(t, "It is not moved here", "The last one moves it to Done", "openspec archive add-dark")
	page.WantNoText(t, "Move to <bdi>")
	old := version(t, page)
	tick := func(version, line, done string) (fields []string) {
		return []string{"version", version, "do", "tick", "line", line, "done", done, "was", "1.2 two"}
	}
	page = s.follow(s.Submit(changePage, tick(old, "2", "true")...)).WantText(t, "Ticked “1.2 two”.", `title="4_done">Done<`, "2/2")
	if got := s.file(changeTasks); got != "- [x] 1.1 one\n- [x] 1.2 two\n" {
		t.Errorf("%q", got)
	}
	s.Submit(changePage, tick(old, "1", "false")...).WantStatus(t, http.StatusConflict).WantText(t, "Not done: the story has changed meanwhile")
	s.Get("/audit").WantText(t, "line 2 open", "line 2 done")
	page = s.follow(s.submitUndo(page)).WantText(t, "Cleared “1.2 two”.", "1/2")
	if got := s.file(changeTasks); got != "- [x] 1.1 one\n- [ ] 1.2 two\n" {
		t.Errorf("%q", got)
	}
	now := version(t, page)
	for line, words := range map[string]string{"9": "There is no box on line 9.", "x": "There is no box on line 0."} {
		s.Submit(changePage, tick(now, line, "true")...).WantStatus(t, http.StatusBadRequest).WantText(t, words)
	}
	s.Submit(changePage, "version", now, "do", "move", "stage", "4_done").WantStatus(t, http.StatusBadRequest).WantText(t, "follows from the boxes")
}

func TestBrowserTicksABox(t *testing.T) {
	browsertest.Parallel(t)
	s := newLayoutSite(t, "backlog.md", backlogFiles())
	tab := browsertest.Open(t)
	for _, scripts := range []bool{true, false} {
		tab.Scripts(scripts)
		tab.Goto(s.URL + backPage)
		press(tab, tab.Find("checkbox", "#2 It is documented"), " ")
		tab.WaitText("Ticked “#2 It is documented”.")
		tab.Wait(`document.getElementById('tick-10').ariaChecked === 'true'`)
		if scripts {
			tab.Wait(`document.activeElement.id === 'tick-10'`)
		}
		if text := s.file("backlog/tasks/back-1 - a.md"); !strings.Contains(text, "- [x] #2") || strings.Contains(text, "updated_date") {
			t.Errorf("more or less than a box has changed: %s", text)
		}
		press(tab, tab.Find("button", "Undo"), kb.Enter)
		tab.WaitText("Cleared “#2 It is documented”.")
		tab.Wait(`document.getElementById('tick-10').ariaChecked === 'false'`)
	}
}

// TestBrowserUnfoldsAColumn and folds it again, with and without scripts.
func TestBrowserUnfoldsAColumn(t *testing.T) {
	browsertest.Parallel(t)
	s := newLayoutSite(t, "backlog.md", backlogFiles())
	tab := browsertest.Open(t)
	for _, scripts := range []bool{true, false} {
		tab.Scripts(scripts)
		tab.Goto(s.URL + "/projects/webshop")
		openByKeyboard(tab, "/projects/webshop?open=6_archived")
		tab.WaitText("Task BACK-5")
		press(tab, tab.Find("link", "Fold"), kb.Enter)
		tab.Wait(`!document.body.textContent.includes('Task BACK-5')`)
	}
}

func TestBrowserBoardsOfOtherLayoutsAreAccessible(t *testing.T) {
	browsertest.Parallel(t)
	files := backlogFiles()
	files["backlog/tasks/back-6 - long.md"] = strings.Replace(backlogTask("BACK-6", "In Progress"), "Task", strings.Repeat("long", 60), 1)
	s := newLayoutSite(t, "backlog.md", files)
	tab := browsertest.Open(t)
	for _, path := range []string{"/projects/webshop", "/projects/webshop?open=7_won_t_do", backPage} {
		tab.Goto(s.URL + path)
		tab.AccessibleAt(360, 768, 1280)
	}
	tab.Media("prefers-color-scheme", "dark")
	tab.Goto(s.URL + "/projects/webshop")
	tab.AccessibleAt(1280)
	tab.Phone()
	for _, path := range []string{"/projects/webshop", backPage} {
		tab.Goto(s.URL + path)
		wantNone(t, tab, "has targets that are too small", named(controls, tooSmall))
	}
}

// TestAColumnThatNobodyConfiguredComesWithItsFirstStory, while somebody looks at the page.
func TestAColumnThatNobodyConfiguredComesWithItsFirstStory(t *testing.T) {
	browsertest.Parallel(t)
	s := newLayoutSite(t, "backlog.md", backlogFiles())
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/projects/webshop")
	tab.WaitText("In Progress")
	text := strings.Replace(s.file("backlog/tasks/back-1 - a.md"), "In Progress", "On Hold", 1)
	if err := os.WriteFile(filepath.Join(s.dir, "backlog/tasks/back-1 - a.md"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "the column", func() bool { return strings.Contains(s.Get("/projects/webshop").Text, "On Hold") })
	tab.WaitText("On Hold")
}

// TestABoardIsFiltered by the names and ids of its stories, in the address.
func TestABoardIsFiltered(t *testing.T) {
	s := sampleSite(t)
	const login, search = `href="/projects/alpha/stories/14_story_login`, `href="/projects/alpha/stories/9_story_search`
	s.Get("/projects/alpha").WantText(t, `data-hx-get="/projects/alpha"`, ">5 stories</span>", login, search)
	page := s.Get("/projects/alpha?q=LOG").WantText(t, "alpha with LOG", `href="/projects/alpha?q=LOG&amp;show=mine"`, ">1 of 5 stories</span>", login)
	page.WantNoText(t, search, "<h2 id=\"flow")
	s.Get("/projects/alpha?q=9_story").WantText(t, search).WantNoText(t, "12_story_pay")
	s.Get("/projects/alpha?q=s&show=troubled").WantText(t, "12_story_pay").WantNoText(t, search)
	s.Get("/projects/alpha?q="+strings.Repeat("a", domain.MaxFilter+1)).WantStatus(t, http.StatusBadRequest)
}

// TestBrowserFiltersABoard while somebody types, and Escape shows all again.
func TestBrowserFiltersABoard(t *testing.T) {
	browsertest.Parallel(t)
	s := sampleSite(t)
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/projects/alpha")
	tab.Find("searchbox", "Filter stories").Type("login")
	tab.WaitText("1 of 5 stories")
	tab.Wait(`location.search === '?q=login'`)
	tab.Accessible()
	tab.Keys(kb.Escape)
	tab.WaitText("5 stories")
	tab.Wait(`document.querySelectorAll('#project [href*="/stories/"]').length >= 5`)
}
