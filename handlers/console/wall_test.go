package console_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"switchyard/internal/browsertest"
	"switchyard/internal/domain"
)

// TestTheWallIsReadFromAfar: its text is large, it fills the window and no more, each wagon has its name, it turns its
// pages, and it says when the gateway is away.
func TestTheWallIsReadFromAfar(t *testing.T) {
	browsertest.Parallel(t)
	s := newConsoleSite(t)
	for i := range 14 {
		list := board("1_backlog: 3_story_idea", "2_current: 7_story_login", "3_qa: 9_story_pay!waiting for a key", "5_done:")
		list[2].Items[0].StoryName = "Donaudampfschifffahrtsgesellschaftskapitänsmützenfabrikationsverordnung"
		list[1].Items = append(list[1].Items, domain.Item{StoryID: "8_story_far", StoryName: "عرض الأسعار بالدينار الكويتي مع ثلاث خانات عشرية في كل صفحة من الصفحات", Since: time.Now()})
		s.add(fmt.Sprintf("project-%02d", i), list)
	}
	s.asks(domain.Question{Project: "project-03", StoryID: "9_story_pay", Kind: domain.QuestionText, Prompt: "Which provider?"})
	tab := browsertest.Open(t)
	smallest := func() float64 {
		return browsertest.Eval[float64](tab, `Math.min(...[...document.querySelectorAll('#wall *')].filter(e => [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()) && e.getClientRects().length && !e.classList.contains('sr-only')).map(e => parseFloat(getComputedStyle(e).fontSize)))`)
	}
	for _, size := range []struct {
		width, height int64
		text          float64
	}{{1920, 1080, 18}, {3840, 2160, 28}} {
		tab.Size(size.width, size.height)
		tab.Goto(s.URL + "/wall")
		tab.WaitText("14 need somebody")
		if got := smallest(); got < size.text {
			t.Errorf("at %d px the smallest text has %v px", size.width, got)
		}
		if got := browsertest.Eval[string](tab, `(() => {
			const page = document.querySelector('.wall-sheet'), box = (e) => e.getBoundingClientRect(), wrong = []
			if (document.documentElement.scrollHeight > innerHeight || innerHeight - box(page).bottom > innerHeight / 15) wrong.push('the window is not filled')
			for (const car of page.querySelectorAll('.car')) {
				const list = box(car.parentElement), at = box(car), name = car.querySelector('.name')
				if (at.left >= list.right) continue // left out
				if (at.bottom > list.bottom + 1) wrong.push('cut: ' + name.textContent)
				if (!name.textContent || box(name).right > at.right || box(name).height < 15) wrong.push('no name in ' + car.innerHTML)
				// what has no room is at the end of the title: its first letter is in sight
				const first = document.createRange()
				first.setStart(name.firstChild, 0)
				first.setEnd(name.firstChild, 1)
				if (box(first).left < box(name).left - 1 || box(first).right > box(name).right + 1) wrong.push('it begins out of sight: ' + name.textContent)
			}
			for (const e of document.querySelectorAll('.wall-needs *')) if (box(e).right > box(page).left) wrong.push('over the panel: ' + e.textContent)
			if (page.children.length !== 7) wrong.push(page.children.length + ' projects on a page')
			return wrong.slice(0, 3).join('; ')
		})()`); got != "" {
			t.Errorf("at %d px: %s", size.width, got)
		}
	}
	if got := browsertest.Eval[string](tab, `document.querySelector('.wall-needs li').innerText.replace(/\s+/g, ' ')`); !strings.Contains(got, "asks · project-03") || !strings.Contains(got, "blocked Which provider?") {
		t.Errorf("a question and the block of its story: %s", got)
	}
	tab.Accessible()
	if got := browsertest.Eval[string](tab, `document.querySelector('h1').textContent.trim()`); got != "Switchyard" {
		t.Errorf("the heading is %q", got)
	}
	// A window that is no wall scrolls in one direction only.
	for _, width := range []int64{360, 768, 1280} {
		tab.Size(width, 900)
		tab.Wait(`innerWidth === ` + strconv.FormatInt(width, 10))
		if wide := browsertest.Eval[int64](tab, `document.documentElement.scrollWidth`); wide > width {
			t.Errorf("at %d px it is %d px wide", width, wide)
		}
		if cut := browsertest.Eval[string](tab, `[...document.querySelectorAll('.wall-top .facts > *')].filter((e) => e.checkVisibility() && e.getBoundingClientRect().right > innerWidth).map((e) => e.innerText).join()`); cut != "" {
			t.Errorf("at %d px it cuts %q", width, cut)
		}
	}
	if n := browsertest.Eval[int](tab, `document.querySelectorAll('#wall :is(a, button, input, select)').length`); n != 0 {
		t.Errorf("%d controls", n)
	}
	if got := browsertest.Eval[string](tab, `[...document.querySelectorAll('.wall-pages, .wall-at')].map((e) => getComputedStyle(e).animationDuration).join()`); got != "30s,30s" {
		t.Errorf("2 pages turn, and their mark moves, in %s", got)
	}
	tab.Media("prefers-reduced-motion", "reduce") // pages turn without moving
	tab.Wait(`matchMedia('(prefers-reduced-motion: reduce)').matches && getComputedStyle(document.querySelector('.wall-pages')).animationDuration === "30s"`)
	s.Server.CloseClientConnections()
	s.Server.Listener.Close()
	tab.Wait(`document.querySelector('.wall-lost').checkVisibility() && /as of \d\d:\d\d/.test(document.querySelector('.wall-lost').textContent)`)
	tab.Wait(`getComputedStyle(document.querySelector('.wall-body')).filter.includes('grayscale')`)
	for _, complaint := range tab.Complaints() {
		if !strings.Contains(complaint, "net::ERR_") && !strings.HasPrefix(complaint, "htmx:") {
			t.Error(complaint)
		}
	}
}
