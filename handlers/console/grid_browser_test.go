package console_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"switchyard/internal/browsertest"
	"switchyard/internal/domain"
	"switchyard/internal/gatewaytest"
	"switchyard/internal/waittest"
)

const rows = `[...document.querySelectorAll('.grid-table tbody tr')].map((row) => row.id.replace('project-', '')).join(' ')`

// TestAWagonKeepsTheFocusWhenItsStoryMoves wherever it moves among other wagons.
func TestAWagonKeepsTheFocusWhenItsStoryMoves(t *testing.T) {
	browsertest.Parallel(t)
	s := newConsoleSite(t)
	stages := []string{"2_current", "3_qa", "4_merge"}
	set := func(at int) {
		list := board("1_backlog:", "2_current: 1_story_a", "3_qa: 2_story_b", "4_merge: 3_story_c", "5_done:")
		list[at+1].Items = append(list[at+1].Items, domain.Item{StoryID: "50_story_login", StoryName: "Login", Since: time.Now()})
		s.boards.set("alpha", list)
	}
	s.add("alpha", board("1_backlog:", "5_done:"))
	set(0)
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/")
	tab.Wait(`document.querySelectorAll('.wagon').length === 4`)
	const login = `document.querySelector('.wagon[href$="50_story_login"]')`
	browsertest.Eval[bool](tab, login+`.focus(), true`)
	for i := range 12 {
		at := (i + 1) % 3
		s.move("alpha", "50_story_login", stages[i%3], stages[at], time.Now())
		set(at)
		refresh(tab)
		tab.Wait(fmt.Sprintf(`%s?.closest('td').dataset.label === %q`, login, domain.StageTitle(stages[at])))
		if !browsertest.Eval[bool](tab, `document.activeElement === `+login) {
			t.Fatalf("after move %d the focus is on %s", i+1, browsertest.Eval[string](tab, `document.activeElement.outerHTML.slice(0, 200)`))
		}
	}
	s.move("alpha", "50_story_login", "2_current", "5_done", time.Now())
	s.boards.set("alpha", board("1_backlog:", "2_current: 1_story_a", "3_qa: 2_story_b", "4_merge: 3_story_c", "5_done: 50_story_login"))
	refresh(tab)
	tab.Wait(`!` + login)
	if at := browsertest.Eval[string](tab, `document.activeElement.closest('tr')?.id ?? ''`); at != "project-alpha" {
		t.Errorf("the story is done, and the focus is in %q", at)
	}
}

// TestRowsKeepTheirOrderWhileTheGridIsUsed until the reader takes over the new one.
func TestRowsKeepTheirOrderWhileTheGridIsUsed(t *testing.T) {
	browsertest.Parallel(t)
	s := newConsoleSite(t)
	at := time.Now().Add(-time.Hour)
	quiet, blocked := board("1_backlog:", "2_current: 1_story_a", "5_done:"), board("1_backlog:", "2_current: 1_story_a", "5_done:")
	blocked[1].Items[0].Blocked = "why"
	for i, name := range []string{"alpha", "beta", "gamma"} {
		s.add(name, quiet)
		s.move(name, "1_story_a", "1_backlog", "2_current", at.Add(-time.Duration(i)*time.Minute))
	}
	inOrder := regexp.MustCompile(`(?s)"project-alpha".*"project-beta".*"project-gamma"`)
	waittest.Until(t, "all boards are known", func() bool { return inOrder.MatchString(s.Get("/").Text) })
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/")
	tab.Wait(rows + ` === 'alpha beta gamma'`)
	browsertest.Eval[bool](tab, `document.querySelector('#project-alpha a').focus(), true`)
	s.boards.set("gamma", blocked)
	refresh(tab)
	tab.Wait(`document.querySelector('#project-gamma .troubles').innerText.includes('blocked')`)
	if got := browsertest.Eval[string](tab, rows); got != "alpha beta gamma" {
		t.Errorf("with the focus in the grid the rows are now %s", got)
	}
	tab.Find("button", "Order changed")
	browsertest.Eval[bool](tab, `document.activeElement.blur(), true`)
	s.boards.set("beta", board("1_backlog:", "2_current: 1_story_a, 2_story_b", "5_done:"))
	refresh(tab)
	tab.Wait(`document.querySelectorAll('#project-beta .wagon').length === 2`)
	if got := browsertest.Eval[string](tab, rows); got != "alpha beta gamma" {
		t.Errorf("leaving the grid reorders the rows: %s", got)
	}
	tab.Find("button", "Order changed").Click()
	tab.Wait(rows + `.startsWith('gamma')`)
	tab.Wait(`document.querySelector('[data-order]').hidden`)
}

// TestTheInboxTakesAThirdOfTheWindow at most, from its heading to what is folded: alerts of one kind in a list, those of
// several gathered by kind, with their counts.
func TestTheInboxTakesAThirdOfTheWindow(t *testing.T) {
	browsertest.Parallel(t)
	s := newConsoleSite(t)
	list := board("1_backlog:", "2_current: 1_a, 2_b, 3_c, 4_d, 5_e, 6_f, 7_g, 8_h, 9_i, 10_j, 11_k, 12_l", "5_done:")
	for i := range list[1].Items {
		list[1].Items[i].Blocked = "which of the two tables is the source of truth, and who decides that before the release?"
	}
	s.add("alpha", list)
	tab := browsertest.Open(t)
	sizes := [][2]int64{{1280, 800}, {720, 900}, {360, 780}, {2560, 1440}, {1280, 600}}
	check := func(of int) {
		t.Helper()
		for _, size := range sizes {
			tab.Size(size[0], size[1])
			refresh(tab)
			tab.Wait(fmt.Sprintf(`innerWidth === %d && (document.querySelector('.inbox').getBoundingClientRect().bottom -
				document.getElementById('attention-title').getBoundingClientRect().top) / innerHeight <= 1 / 3 + 0.001`, size[0]))
			shown := browsertest.Eval[int](tab, `document.querySelectorAll('.rows > ul > li').length`)
			more := browsertest.Eval[string](tab, `document.querySelector('#attention-rest summary').innerText`)
			if shown < 1 || more != fmt.Sprint(of-shown, " more") {
				t.Errorf("%d × %d: %d of %d lines, then %q", size[0], size[1], shown, of, more)
			}
		}
	}
	tab.Goto(s.URL + "/")
	tab.Wait(`document.querySelectorAll('.inbox li').length === 12`)
	check(12)

	failed := board("1_backlog:", "2_current:", "3_merge: 1_a, 2_b, 3_c, 4_d, 5_e, 6_f, 7_g", "5_done:")
	for i := range failed[2].Items {
		failed[2].Items[i].MergeFailure = "conflict in stock/query.go"
	}
	s.add("beta", failed)
	// A question and the block of its story are one row, and count once.
	s.asks(domain.Question{Project: "alpha", StoryID: "3_c", Kind: domain.QuestionChoice, Prompt: "Which table?", Options: []string{"Old", "New"}})
	const groups = `[...document.querySelectorAll('.alert-groups a')].map((a) => a.firstElementChild.nextSibling.textContent.trim() + ' ' + a.querySelector('b').textContent).join(', ')`
	tab.Wait(groups + ` === 'Questions 1, Blocked 11, Merges failed 7' && document.title.startsWith('(19) ')`)
	row := browsertest.Eval[string](tab, `document.querySelector('.rows').innerText.replace(/\s+/g, ' ')`)
	for _, part := range []string{"3_c", "■ blocked", "admin asks which way · alpha", "Which table?", "Old", "New"} {
		if !strings.Contains(row, part) {
			t.Errorf("the question's row has no %q: %s", part, row)
		}
	}
	tab.Size(1280, 800)
	browsertest.Eval[bool](tab, `document.getElementById('needs-blocked').click(), true`)
	tab.Wait(`location.search === '?needs=blocked' && document.querySelector('.alert-groups [aria-current]').innerText.includes('Blocked')`)
	if browsertest.Eval[bool](tab, `[...document.querySelectorAll('.rows .where')].some((at) => !at.textContent.includes('Blocked in alpha'))`) {
		t.Error("the group of what is blocked shows other rows")
	}
	check(11)
	tab.Accessible()
}

// TestManyProjectsHaveALineEach, few ones about 34 px a story; a station says the worst of what it does not show.
func TestManyProjectsHaveALineEach(t *testing.T) {
	browsertest.Parallel(t)
	s := newConsoleSite(t)
	list := board("1_backlog:", "2_current: 1_story_a!no key, 2_story_b, 3_story_c", "3_merge: 4_story_d", "4_done:")
	list[1].Items[1].MergeFailure = "conflict"
	s.add("alpha", list)
	tab := browsertest.Open(t)
	const height, rest = `document.getElementById('project-alpha').getBoundingClientRect().height`, `document.querySelector('#project-alpha .more > a')`
	tab.Goto(s.URL + "/")
	if got := browsertest.Eval[float64](tab, height); got > 3*34 {
		t.Errorf("three stories are %v px high", got)
	}
	for i := range 12 {
		s.add(fmt.Sprintf("project-%02d", i), list)
	}
	s.add("clear", board("1_backlog:", "2_current: 9_story_z", "3_merge:", "4_done:"))
	tab.Goto(s.URL + "/")
	if got := browsertest.Eval[string](tab, `document.querySelector('.band').innerText + ', ' + document.querySelector('.band + tr').id`); got != "Moving, nothing wrong 1 project, project-clear" {
		t.Errorf("the projects without trouble: %q", got)
	}
	s.add("alone", board("1_ideas:", "2_doing: 9_story_z", "3_over:"))
	tab.Goto(s.URL + "/")
	const right = `document.querySelector('#project-%s > .days').getBoundingClientRect()`
	if got := browsertest.Eval[bool](tab, fmt.Sprintf(`Math.abs(`+right+`.left - `+right+`.left) < 2`, "alone", "alpha")); !got {
		t.Error("a project alone with its stages is not as wide as the others")
	}
	tab.Size(800, 1000)
	if got := browsertest.Eval[bool](tab, `['alpha', 'clear'].map((name) => document.querySelector('#project-' + name + ' > .last').getBoundingClientRect().left).every((at, _, all) => Math.abs(at - all[0]) < 2)`); !got {
		t.Error("at 800 px the stages of a band are not below the others'")
	}
	tab.Size(1280, 800)
	// What is wrong comes before what is not, whatever stages it has.
	s.add("odd", board("1_ideas:", "2_doing: 9_story_z!no key", "3_over:"))
	tab.Goto(s.URL + "/")
	const order = `[...document.querySelectorAll('.band, #project-clear, #project-alone, #project-odd')].map((row) => row.className === 'band' ? row.innerText : row.id).join()`
	if got := browsertest.Eval[string](tab, order); !strings.HasPrefix(got, "project-odd,") || strings.Count(got, "Moving, nothing wrong 2 projects") != 1 {
		t.Errorf("the order is %s", got)
	}
	if got := browsertest.Eval[float64](tab, height); got > 37 {
		t.Errorf("of many projects one is %v px high", got)
	}
	if got := browsertest.Eval[string](tab, rest+`.className + ' ' + `+rest+`.textContent`); got != "signal-caution +2 more" {
		t.Errorf("the hidden stories, of which one's merge has failed: %q", got)
	}
	tab.Accessible()
}

func TestThePhonesLayoutEndsAt720Pixels(t *testing.T) {
	browsertest.Parallel(t)
	s := sampleSite(t)
	tab := browsertest.Open(t)
	for _, path := range []string{"/", "/projects/alpha"} {
		tab.Goto(s.URL + path)
		for width, want := range map[int64]string{719: "bottom", 720: "top", 920: "top"} {
			tab.Size(width, 800)
			at := browsertest.Eval[string](tab, `document.querySelector('nav[aria-label=Pages]').getBoundingClientRect().top > 400 ? 'bottom' : 'top'`)
			wide := browsertest.Eval[int64](tab, `document.documentElement.scrollWidth`)
			if at != want || wide > width {
				t.Errorf("%s at %d px: the navigation is at the %s, the page %d px wide", path, width, at, wide)
			}
		}
	}
	tab.Goto(s.URL + "/")
	for width, want := range map[int64]string{719: "block", 720: "table-row"} {
		tab.Size(width, 800)
		if got := browsertest.Eval[string](tab, `getComputedStyle(document.querySelector('.grid-table tbody tr')).display`); got != want {
			t.Errorf("at %d px a project is a %s", width, got)
		}
	}
	gatewaytest.NamedToken(t, s.Service, "ci", domain.RoleViewer)
	for path, narrow := range map[string]string{"/projects": "grid", "/access": "flex"} {
		tab.Goto(s.URL + path)
		for width, want := range map[int64]string{719: narrow, 720: "table-row"} {
			tab.Size(width, 800)
			got := browsertest.Eval[string](tab, `getComputedStyle(document.querySelector('.table tbody tr')).display`)
			if wide := browsertest.Eval[int64](tab, `document.documentElement.scrollWidth`); got != want || wide > width {
				t.Errorf("%s at %d px: a row is a %s, the page %d px wide", path, width, got, wide)
			}
		}
	}
}
