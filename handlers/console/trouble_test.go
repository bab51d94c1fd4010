package console_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/internal/browsertest"
	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/waittest"
)

func TestAStuckStoryIsTroubleOfItsProject(t *testing.T) {
	s := newConsoleSite(t)
	stages := board("1_backlog:", "2_current: 14_story_login, 15_story_pay!no key", "3_done:")
	stages[1].Items[0].Since = time.Now().Add(-30 * time.Hour)
	stages[1].Items[1].Since = time.Now().Add(-3 * time.Hour)
	s.add("slow", stages[:])
	s.add("well", board("1_backlog:", "2_current: 1_story_a", "3_done:"))

	s.Get("/projects").WantText(t, "1 blocked", "1 stuck", "well", ">clear<")
	troubled := s.Get("/?show=troubled").WantText(t, "1 blocked", "1 stuck", "1 other project not shown")
	troubled.WantNoText(t, `id="project-well"`)
	s.Get("/projects/slow").WantText(t, "1 blocked", "1 stuck", "Login", "in this stage for", "1 d", "Stuck",
		"Pay", "in this stage for", "3 h", "Blocked: no key")
}

// TestWorkThatIsNotMergedIsTroubleOfItsStory: on its card, its page and its project, like a conflict.
func TestWorkThatIsNotMergedIsTroubleOfItsStory(t *testing.T) {
	s := newConsoleSite(t)
	stages := board("1_backlog:", "2_current: 14_story_login", "3_done: 15_story_pay")
	for i, work := range []domain.ItemWork{
		{Clash: &domain.Clash{Place: "<b>login", Files: []string{"go.mod"}, Count: 2}}, {Unmerged: &domain.UnmergedPlace{Place: "pay", Ahead: 1}},
	} {
		item := &stages[i+1].Items[0]
		work.Branch, work.Added, work.Uncommitted = []string{"story/14_story_login", "feature/<pay>"}[i], 1234, 1
		item.Work, item.Since = &work, time.Now().Add(-2*time.Hour)
	}
	s.add("shop", stages)
	s.Get("/").WantText(t, "Conflicts in shop", "&lt;b&gt;login: go.mod and 1 more", "Not merged in shop", "pay is 1 commit ahead",
		"1 conflict", "1 not on the base", "Conflicts with the base in 2 files; in this stage for")
	s.Get("/projects/shop").WantText(t, "1 conflict", "1 not on the base", "Conflicts with the base in 2 files", "Not on the base: 1 commit ahead")
	s.Get("/projects/shop/stories/14_story_login").WantText(t, `value="conflicts/shop/14_story_login"`, "Acknowledge</button>", "Conflicts with the base", "go.mod and 1 more")
	s.Get("/projects/shop/stories/15_story_pay").WantText(t, "Done, but not on the base", "pay is 1 commit ahead")
	s.Get("/search?q=pay").WantText(t, "not merged")
	s.Get("/projects/shop").WantText(t, "On branches", "on the branch", `title="story/14_story_login">story/…<`, "+1,234", "feature/&lt;pay&gt;")
	s.Get("/").WantText(t, "on the branch story/14_story_login")
	s.Get("/projects/shop?show=branches").WantText(t, "2 stories", "14_story_login", "15_story_pay")
	s.Get("/projects/shop?show=troubled").WantText(t, "14_story_login", "15_story_pay")
}

// TestAStoryIsAsOldInTheInboxAsOnItsTrack: how long it is blocked if it is, else how long it is in its stage.
func TestAStoryIsAsOldInTheInboxAsOnItsTrack(t *testing.T) {
	s := newConsoleSite(t)
	stages := board("1_backlog:", "2_current: 14_story_login, 15_story_pay!no key", "3_done:")
	s.boards.set("slow", stages)
	now := time.Now()
	stages[1].Items[0].Since, stages[1].Items[1].Since = now.Add(-54*time.Hour), now.Add(-3*time.Hour)
	s.Record("slow", moved("15_story_pay", "1_backlog", "2_current", now.Add(-3*time.Hour)),
		fmt.Sprintf(`{"type":"story_blocked","story_id":"15_story_pay","reason":"no key","timestamp_ms":%d}`, now.Add(-40*time.Minute).UnixMilli()))
	s.add("slow", nil)
	page := s.Get("/").WantText(t, "Blocked: no key; for ", "40 min", "Stuck; in this stage for ", "2 d")
	var ages []string
	for _, age := range regexp.MustCompile(`<time[^>]*>([0-9.]+ (?:min|h|d))<`).FindAllStringSubmatch(page.Text, -1) {
		ages = append(ages, age[1])
	}
	if !slices.Equal(ages, []string{"40 min", "2 d", "40 min", "2 d"}) {
		t.Errorf("ages in the inbox and on the track: %q", ages)
	}
}

// TestAMoveThatIsUndoneMakesNoStoryYounger: neither in its stage nor in what needs attention, and it still counts as one
// stay.
func TestAMoveThatIsUndoneMakesNoStoryYounger(t *testing.T) {
	s := newConsoleSite(t)
	stages, now := board("1_backlog:", "2_current: 14_story_login", "3_qa:", "4_done:"), time.Now()
	came := now.Add(-8 * 24 * time.Hour)
	stages[1].Items[0].Since = came
	s.boards.set("slow", stages)
	s.move("slow", "14_story_login", "1_backlog", "2_current", came)
	for i := range 12 { // others are faster
		id := fmt.Sprintf("%d_story_fast", 20+i)
		s.move("slow", id, "1_backlog", "2_current", now.Add(-2*time.Hour))
		s.move("slow", id, "2_current", "4_done", now.Add(-time.Hour))
	}
	s.add("slow", nil)
	stuck := func() {
		t.Helper()
		s.Get("/").WantText(t, "Stuck in slow")
		s.Get("/projects/slow/stories/14_story_login").WantText(t, "Stuck", `<time datetime="`+came.UTC().Format("2006-01-02T15:04")).
			WantNoText(t, " before")
	}
	stuck()
	s.move("slow", "14_story_login", "2_current", "3_qa", now.Add(-10*time.Second))
	s.move("slow", "14_story_login", "3_qa", "2_current", now.Add(-time.Second))
	stuck()
}

// TestAProjectsPageTellsAQuestionFirst: at its head, and on the story's card in place of the block that says the same.
func TestAProjectsPageTellsAQuestionFirst(t *testing.T) {
	s := newStorySite(t, true, map[string]string{"3_qa/2_story_audit.md": auditLog, "3_qa/3_story_other.md": "# Other\n"})
	s.Get("/projects/webshop").WantText(t, "1 blocked", "Audit log", "Blocked: waiting for a key").WantNoText(t, "1 asks")
	q := s.asks(domain.Question{Kind: domain.QuestionText, Prompt: "Which <key>?", Project: "webshop", StoryID: "2_story_audit"})
	page := s.Get("/projects/webshop").WantText(t, "1 asks", "1 blocked", "Audit log", "asks for a text: Which &lt;key&gt;?", "blocked for ")
	page.WantNoText(t, "Blocked: waiting for a key")
	s.Get("/projects/webshop?show=troubled").WantText(t, "1 of 2 stories", "Audit log")
	s.Submit(fmt.Sprintf("/questions/%d/answer", q.ID), "value", "The one of staging")
	s.Get("/projects/webshop").WantText(t, "1 blocked", "Blocked: waiting for a key").WantNoText(t, "1 asks")
}

// TestAFailedMergeIsRetriedWhereItIsListed, by who may, if its project server accepts changes; the page stays.
func TestAFailedMergeIsRetriedWhereItIsListed(t *testing.T) {
	const file, label = "4_merge/7_story_cache.md", ">Retry the merge<"
	story := map[string]string{file: "---\nmerge_failure: conflict in go.mod\n---\n# Cache\n"}
	readOnly := newStorySite(t, false, story)
	readOnly.Get("/").WantText(t, "Merge failed in webshop", "Open").WantNoText(t, label)

	s := newStorySite(t, true, story)
	page := s.Get("/").WantText(t, "Merge failed in webshop", "conflict in go.mod", label)
	said := s.Submit("/projects/webshop/stories/7_story_cache", "do", "retry", "version", version(t, page), "was", "conflict in go.mod", "next", "/")
	if to := said.Header.Get("Location"); to != "/" {
		t.Errorf("it leads to %s", to)
	}
	page = s.follow(said).WantText(t, "“Cache”: The failed merge is cleared")
	if text := s.file(file); strings.Contains(text, "merge_failure") {
		t.Error(text)
	}
	waittest.Until(t, "nothing to retry", func() bool { return !strings.Contains(s.Get("/").Text, label) })
	s.submitUndo(page)
	waittest.Until(t, "the failure", func() bool { return strings.Contains(s.Get("/").Text, label) })
}

// TestTheBoardSaysWhatCanBeRetried, so that pages with lists ask no project server about stories.
func TestTheBoardSaysWhatCanBeRetried(t *testing.T) {
	s := newConsoleSiteWith(t, gatewaytest.NewProjectClient(t))
	s.Add("alpha", gatewaytest.ProjectServer(t, gatewaytest.Says(`{"project":"alpha","writable":true,"stages":[{"name":"4_merge","items":[`+
		`{"story_id":"7_pay","story_name":"Pay","blocked":null,"merge_failure":"conflict","since_ms":5,"version":"v1"},`+
		`{"story_id":"8_tax","story_name":"Tax","blocked":null,"merge_failure":"conflict","since_ms":6,"version":"v2","branch":"story/8_tax"}]}]}`),
		func(mux *http.ServeMux) {
			mux.HandleFunc("/api/stories/", func(_ http.ResponseWriter, r *http.Request) { t.Error(r.URL, "is asked for") })
		}))
	s.Answered()
	page := s.Get("/").WantText(t, "Merge failed in alpha", `name="version" value="v1"`)
	page.WantNoText(t, `value="v2"`) // nothing can be written where no work tree has it
}

// TestAFailedMergeIsRetriedOnAPhone from the inbox, with a thumb.
func TestAFailedMergeIsRetriedOnAPhone(t *testing.T) {
	browsertest.Parallel(t)
	s := newStorySite(t, true, map[string]string{"4_merge/7_story_cache.md": "---\nmerge_failure: conflict in go.mod\n---\n# Cache\n"})
	tab := browsertest.Open(t)
	tab.Phone()
	tab.Goto(s.URL + "/")
	wantNone(t, tab, "has targets that are too small", named(controls, tooSmall))
	tab.Find("button", "Retry the merge").Tap()
	tab.WaitText("The failed merge is cleared")
}
