package console_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"switchyard/internal/browsertest"
)

// TestTheWallIsReadFromAfar: its text is large, it turns its pages, and it says when the gateway is away.
func TestTheWallIsReadFromAfar(t *testing.T) {
	browsertest.Parallel(t)
	s := newConsoleSite(t)
	for i := range 14 {
		s.add(fmt.Sprintf("project-%02d", i), board("1_backlog: 3_story_idea", "2_current: 7_story_login", "3_qa: 9_story_pay!waiting for a key", "5_done:"))
	}
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
	}
	tab.Accessible()
	if got := browsertest.Eval[string](tab, `document.querySelector('h1').textContent.trim()`); got != "Switchyard" {
		t.Errorf("the heading is %q", got)
	}
	// The stages are named once for lines that share them, and a window that is no wall scrolls in one direction only.
	if n := browsertest.Eval[int](tab, `[...document.querySelectorAll('.wall-sheet:first-child .at')].filter(e => e.textContent === 'QA' && e.offsetWidth > 1).length`); n != 1 {
		t.Errorf("a page of lines names its stage %d times", n)
	}
	for _, width := range []int64{360, 768, 1280} {
		tab.Size(width, 900)
		tab.Wait(`innerWidth === ` + strconv.FormatInt(width, 10))
		if wide := browsertest.Eval[int64](tab, `document.documentElement.scrollWidth`); wide > width {
			t.Errorf("at %d px it is %d px wide", width, wide)
		}
	}
	if n := browsertest.Eval[int](tab, `document.querySelectorAll('#wall :is(a, button, input, select)').length`); n != 0 {
		t.Errorf("%d controls", n)
	}
	if got := browsertest.Eval[string](tab, `getComputedStyle(document.querySelector('.wall-pages')).animationDuration`); got != "45s" {
		t.Errorf("3 pages turn in %s", got)
	}
	tab.Media("prefers-reduced-motion", "reduce") // pages turn without moving
	tab.Wait(`matchMedia('(prefers-reduced-motion: reduce)').matches && getComputedStyle(document.querySelector('.wall-pages')).animationDuration === "45s"`)
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
