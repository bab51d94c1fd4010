package console_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp/kb"

	"switchyard/internal/browsertest"
	"switchyard/internal/domain"
	"switchyard/internal/service"
)

const (
	auditFile  = "2_story_audit.md"
	auditCard  = `document.getElementById('story-2_story_audit')`
	auditStage = auditCard + `.closest('[data-stage]').dataset.stage`
)

func boardSite(t *testing.T, allowWrites bool) *storySite {
	t.Helper()
	return newStorySite(t, allowWrites, map[string]string{
		"1_backlog/1_story_login.md": "# Login\n", "3_qa/" + auditFile: "# Audit log\n", "5_done/4_story_old.md": "# Old\n",
	})
}

func (s *storySite) wantIn(t *testing.T, stage string) {
	t.Helper()
	if s.file(stage+"/"+auditFile) == "" {
		t.Errorf("the story is not in %s", stage)
	}
}

func TestACardIsDraggedToAnotherStage(t *testing.T) {
	browsertest.Parallel(t)
	s := boardSite(t, true)
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/projects/webshop")
	card := tab.Find("link", "2 Audit log")
	drop := card.Drag(tab.Find("heading", "Merge 0"))
	tab.Wait(`document.querySelector('[data-stage="4_merge"]').matches('.may.on')`)
	tab.WaitText("Merge: moves its file to 4_merge")
	drop()
	tab.WaitText("“Audit log”: Moved to Merge.")
	tab.Wait(auditStage + ` === '4_merge'`)
	s.wantIn(t, "4_merge")
	if at := browsertest.Eval[string](tab, `location.pathname`); at != "/projects/webshop" {
		t.Errorf("the page is now %s", at)
	}
	press(tab, tab.Find("button", "Undo"), kb.Enter)
	tab.WaitText("“Audit log”: Moved to QA.")
	tab.Wait(auditStage + ` === '3_qa'`)
	s.wantIn(t, "3_qa")
	drop = tab.Find("link", "2 Audit log").Drag(tab.Find("heading", "0 Archived , 0 stories, folded")) // a folded one, too
	drop()
	tab.WaitText("“Audit log”: Moved to Archived.")
	s.wantIn(t, "6_archived")
}

// TestACardIsMovedByKeyboard: space lifts it, the arrows choose, space drops it, Escape puts it back, and all of it is said.
func TestACardIsMovedByKeyboard(t *testing.T) {
	browsertest.Parallel(t)
	s := boardSite(t, true)
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/projects/webshop")
	said := func(text string) {
		t.Helper()
		tab.Wait(`document.getElementById('announcer').textContent.includes('` + text + `')`)
	}
	press(tab, tab.Find("link", "2 Audit log"), " ")
	said("2 Audit log is lifted. It may go to Backlog, Current, Merge, Done, Archived.")
	tab.Keys(kb.ArrowRight)
	said("Merge: moves its file to 4_merge")
	tab.Keys(kb.Escape)
	said("2 Audit log is back in QA.")
	tab.Wait(`!document.querySelector('.may, .lifted')`)
	tab.Keys(" " + kb.ArrowLeft)
	said("Current: moves its file to 2_current")
	tab.Keys(" ")
	tab.WaitText("“Audit log”: Moved to Current.")
	tab.Wait(auditStage + ` === '2_current'`)
	s.wantIn(t, "2_current")
	tab.Wait(`document.activeElement.closest('.card') === ` + auditCard)
	tab.Keys(" " + kb.Tab)
	said("2 Audit log is back in Current.")
}

// TestARefreshLosesNoDrag, and one that shows the story somewhere else ends it with a word.
func TestARefreshLosesNoDrag(t *testing.T) {
	browsertest.Parallel(t)
	s := boardSite(t, true)
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/projects/webshop")
	press(tab, tab.Find("link", "2 Audit log"), " "+kb.ArrowRight)
	tab.Wait(`document.querySelector('[data-stage="4_merge"]').matches('.on')`)
	if err := os.WriteFile(filepath.Join(s.dir, "2_current/7_story_new.md"), []byte("# New here\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tab.WaitText("New here")
	tab.Wait(`document.querySelector('[data-stage="4_merge"]').matches('.may.on') && ` + auditCard + `.matches('.lifted')`)
	tab.Keys(" ")
	tab.WaitText("“Audit log”: Moved to Merge.")
	s.wantIn(t, "4_merge")

	press(tab, tab.Find("link", "2 Audit log"), " "+kb.ArrowLeft)
	tab.Wait(`document.querySelector('[data-stage="3_qa"]').matches('.on')`)
	if err := os.Rename(filepath.Join(s.dir, "4_merge", auditFile), filepath.Join(s.dir, "1_backlog", auditFile)); err != nil {
		t.Fatal(err)
	}
	tab.WaitText("2 Audit log was moved meanwhile.")
	tab.Wait(`!document.querySelector('.may, .lifted')`)
	s.wantIn(t, "1_backlog")
}

// TestARefusedCardGoesBackWithAWord: one that was moved a moment ago, and one of somebody else, which can be taken over.
func TestARefusedCardGoesBackWithAWord(t *testing.T) {
	browsertest.Parallel(t)
	s := boardSite(t, true)
	zoe := domain.Actor{Who: "zoe", Account: "token z", Role: domain.RoleOperator}
	if _, _, err := s.Claims.Claim(domain.WithActor(t.Context(), &zoe), "webshop", service.ClaimRequest{StoryID: "2_story_audit"}); err != nil {
		t.Fatal(err)
	}
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/projects/webshop")
	drop := tab.Find("link", "2 Audit log").Drag(tab.Find("heading", "Merge 0"))
	drop()
	tab.WaitText("is claimed by zoe")
	tab.Wait(auditStage + ` === '3_qa' && !document.querySelector('.lifted')`)
	s.wantIn(t, "3_qa")
	tab.Find("button", "Take over").Click()
	tab.WaitText("“Audit log”: Moved to Merge.")
	s.wantIn(t, "4_merge")
	page := s.follow(s.Submit(auditPage, "do", "move", "stage", "5_done", "was", "3_qa", "next", "/projects/webshop"))
	page.WantStatus(t, http.StatusOK).WantText(t, "it was moved to Merge meanwhile", `id="board-title"`)
	s.wantIn(t, "4_merge")
}

// TestAFingerLiftsACardByResting on it, and scrolls the board otherwise.
func TestAFingerLiftsACardByResting(t *testing.T) {
	browsertest.Parallel(t)
	s := boardSite(t, true)
	tab := browsertest.Open(t)
	tab.Phone()
	tab.Goto(s.URL + "/projects/webshop")
	x, y := tab.Find("link", "2 Audit log").Middle()
	tab.TouchAt(input.DispatchTouchEventTypeTouchStart, x, y)
	tab.TouchAt(input.DispatchTouchEventTypeTouchMove, x, y-40)
	tab.TouchAt(input.DispatchTouchEventTypeTouchMove, x, y-80)
	tab.TouchAt(input.DispatchTouchEventTypeTouchEnd, x, y-80)
	if browsertest.Eval[bool](tab, `document.querySelector('.may, .ghost') !== null`) {
		t.Error("a finger that scrolls lifts a card")
	}
	tab.Goto(s.URL + "/projects/webshop") // where nothing scrolls any more
	x, y = tab.Find("link", "2 Audit log").Middle()
	tab.TouchAt(input.DispatchTouchEventTypeTouchStart, x, y)
	tab.Wait(`document.querySelector('.ghost')`)
	at := browsertest.Eval[float64](tab, `scrollY`)
	to := browsertest.Eval[[]float64](tab, `(box => [box.left + box.width / 2, box.top + box.height / 2])(document.querySelector('[data-stage="2_current"] h3').getBoundingClientRect())`)
	tab.TouchAt(input.DispatchTouchEventTypeTouchMove, x, y-5)
	tab.TouchAt(input.DispatchTouchEventTypeTouchMove, to[0], to[1])
	tab.Wait(`document.querySelector('[data-stage="2_current"]').matches('.on')`)
	if now := browsertest.Eval[float64](tab, `scrollY`); now != at {
		t.Errorf("the page has scrolled from %v to %v", at, now)
	}
	tab.TouchAt(input.DispatchTouchEventTypeTouchEnd, 0, 0)
	tab.WaitText("“Audit log”: Moved to Current.")
	s.wantIn(t, "2_current")
}

// TestStagesThatOnlyTheBoardsToolFillsTakeNoCard, and a card of a board that follows from its boxes says so.
func TestStagesThatOnlyTheBoardsToolFillsTakeNoCard(t *testing.T) {
	browsertest.Parallel(t)
	s := newLayoutSite(t, "backlog.md", backlogFiles())
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/projects/webshop")
	press(tab, tab.Find("link", "BACK-1 Task BACK-1"), " ")
	tab.WaitText("It may go to To Do, Done.")
	if got := browsertest.Eval[string](tab, `[...document.querySelectorAll('.no')].map(e => e.dataset.stage).join()`); got != "1_draft,5_completed,6_archived,7_won_t_do" {
		t.Errorf("hatched: %s", got)
	}
	tab.Keys(kb.ArrowRight + " ")
	tab.WaitText("Moved to Done.")
	if text := s.file("backlog/tasks/back-1 - a.md"); !strings.Contains(text, "status: Done") {
		t.Error(text)
	}
	s = newLayoutSite(t, "openspec", map[string]string{changeTasks: "- [x] 1.1 one\n- [ ] 1.2 two\n"})
	tab.Goto(s.URL + "/projects/webshop")
	press(tab, tab.Find("link", "add-dark Add dark"), " ")
	tab.WaitText("is not moved here.")
	tab.WaitText("follows from the boxes")
}

func TestNobodyDragsWhereWritingIsNotAllowed(t *testing.T) {
	s := boardSite(t, false)
	s.Get("/projects/webshop").WantStatus(t, http.StatusOK).WantNoText(t, `id="drag"`)
	boardSite(t, true).Get("/projects/webshop").WantText(t, `id="drag"`)
}
