package console_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"switchyard/internal/browsertest"
	"switchyard/internal/gatewaytest"
)

// everyPage lists the pages of a reader who has logged in.
var everyPage = []string{
	"/", "/projects", "/projects/alpha", "/projects/gamma", "/projects/alpha/stories/12_story_pay", "/search?q=story", "/agents", "/events", "/waiting", "/questions", "/notifications?kind=mail", "/flow",
	"/bot-config", "/sign-in", "/sign-in/setup", "/access", "/audit",
}

// loggedInTab is a tab whose reader has logged in.
func loggedInTab(t *testing.T, s *consoleSite) *browsertest.Tab {
	t.Helper()
	tab := browsertest.Open(t)
	tab.Goto(s.URL + "/login")
	tab.Find("textbox", "Token").Type(gatewaytest.AdminToken + kb.Enter)
	tab.Find("heading", "Overview")
	return tab
}

// wantNone requires that an expression which lists faults of the page finds none.
func wantNone(t *testing.T, tab *browsertest.Tab, what, expression string) {
	t.Helper()
	if wrong := browsertest.Eval[[]string](tab, expression); len(wrong) > 0 {
		t.Errorf("%s %s:\n%s", browsertest.Eval[string](tab, "location.pathname"), what, strings.Join(wrong, "\n"))
	}
}

// named returns an expression that lists the visible elements of a selector for which a condition holds.
func named(selector, condition string) string {
	return `[...document.querySelectorAll(` + "`" + selector + "`" + `)].filter(e => e.checkVisibility({visibilityProperty: true, opacityProperty: true}) && (` + condition + `))
		.map(e => e.outerHTML.slice(0, 200))`
}

const (
	// cut lists elements that extend beyond the page or their own box, without a scroll bar or an ellipsis.
	cut = `(() => {
		const style = getComputedStyle(e), box = e.getBoundingClientRect()
		const scrolls = e.closest('.board, .overflow-x-auto, .segments, .markdown, .output, .sr-only, thead, [popover]')
		const hides = ['hidden', 'clip'].includes(style.overflowX) && style.textOverflow !== 'ellipsis' && style.webkitLineClamp === 'none'
		return !scrolls && (box.right > document.documentElement.clientWidth + 1 || box.left < -1 || hides && e.scrollWidth > e.clientWidth + 1)
	})()`
	// covered lists controls whose middle is covered by something else.
	covered = `(() => {
		if (e.closest('.sr-only, [popover]') || getComputedStyle(e).pointerEvents === 'none') return false
		e.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'})
		const box = e.getClientRects()[0]
		const there = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2)
		return !e.contains(there) && !there?.contains(e) && ![...e.labels ?? []].some(l => l.contains(there))
	})()`
	controls = `a[href], button, input:not([type=hidden]), select, textarea, summary`
)

// TestEveryPageSuitsItsReader: by touch, at twice the size, with forced colours and reduced motion, and without scripts.
func TestEveryPageSuitsItsReader(t *testing.T) {
	browsertest.Parallel(t)
	s := newWholeSite(t)
	tab := loggedInTab(t, s)
	for _, path := range everyPage {
		tab.Phone()
		tab.Goto(s.URL + path)
		wantNone(t, tab, "has targets that are too small", named(controls, tooSmall))
		tab.Size(640, 450) // a window of 1280 by 900 at 200 %
		wantNone(t, tab, "at 200 % cuts", named("body *", cut))
		wantNone(t, tab, "at 200 % covers", named(controls, covered))
		tab.Size(1280, 900)
		tab.Media("forced-colors", "active", "prefers-reduced-motion", "reduce")
		followsSettings(t, tab)
		tab.Media()
		tab.Size(360, 780)
		tab.Scripts(false)
		tab.Goto(s.URL + path)
		worksWithoutScripts(t, tab)
		tab.Scripts(true)
	}
}

// followsSettings checks that nothing moves, neither by itself nor when parts refresh, and that everything shows in
// forced colours.
func followsSettings(t *testing.T, tab *browsertest.Tab) {
	t.Helper()
	tab.Keys(kb.Tab) // from here on, focus shows
	if !browsertest.Eval[bool](tab, `matchMedia('(forced-colors: active)').matches && matchMedia('(prefers-reduced-motion)').matches`) {
		t.Fatal("the settings are not in force")
	}
	wantNone(t, tab, "moves", named("*", `parseFloat(getComputedStyle(e).animationDuration) > 0.001 || parseFloat(getComputedStyle(e).transitionDuration) > 0`))
	wantNone(t, tab, "has fields without an edge", named("main :is(.input, .btn)", `getComputedStyle(e).borderTopStyle === 'none' || parseFloat(getComputedStyle(e).borderTopWidth) < 1`))
	wantNone(t, tab, "hides the focus from", named(controls, `(e.focus({preventScroll: true}), ![e, e.closest('.card') ?? e].some(e => getComputedStyle(e).outlineStyle !== 'none'))`))
	wantNone(t, tab, "hides what is chosen", named(`a[aria-current], [aria-pressed="true"]`, `(() => {
		const look = (e) => ['backgroundColor', 'color', 'borderBottomColor', 'outlineStyle'].map(p => getComputedStyle(e)[p]).join()
		const others = [...e.closest('ul, fieldset, [role=group], form, main').querySelectorAll(e.tagName)].filter(o => !o.matches('[aria-current], [aria-pressed="true"]'))
		return others.some(o => look(o) === look(e))
	})()`))
	wantNone(t, tab, "hides words", named("body *", `e.childElementCount === 0 && e.textContent.trim() !== '' &&
		getComputedStyle(e).forcedColorAdjust !== 'none' && getComputedStyle(e).color === getComputedStyle(document.body).backgroundColor`)) // the browser puts that colour behind the text
	wantNone(t, tab, "hides its tracks", named(`.rail, .stage, .journey li`, `getComputedStyle(e, '::before').display !== 'none' && getComputedStyle(e, '::before').content !== 'none' &&
		getComputedStyle(e, '::before').backgroundColor === getComputedStyle(document.body).backgroundColor`))
	const shiftsOfARefresh = `new Promise(done => {
		const parts = [...document.querySelectorAll('[data-live]')]
		if (!parts.length) done(0)
		let shifts = 0, settled = 0
		new PerformanceObserver(list => { for (const entry of list.getEntries()) shifts += entry.value }).observe({type: 'layout-shift'})
		document.addEventListener('htmx:configRequest', ({ detail }) => { // without a version, parts are sent in full
			detail.path = detail.path.replace(/([?&])v=[^&]*/, '$1')
		})
		document.addEventListener('htmx:afterSettle', () => {
			if (++settled === parts.length) requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(shifts))))
		})
		setTimeout(() => done(-1), 80000)
		for (const part of parts) htmx.trigger(part, 'refresh')
	})`
	shown := func() string { return browsertest.Eval[string](tab, `document.body.innerText`) }
	before := shown()
	shifts := browsertest.Eval[float64](tab, shiftsOfARefresh)
	for after := shown(); shifts != 0 && after != before; after = shown() { // a new minute has begun, whose ages may be wider
		before, shifts = after, browsertest.Eval[float64](tab, shiftsOfARefresh)
	}
	if shifts != 0 {
		t.Errorf("%s shifts by %v when it refreshes", browsertest.Eval[string](tab, "location.pathname"), shifts)
	}
}

// worksWithoutScripts checks that there is no button that needs scripts, and nothing that says that the page is live.
func worksWithoutScripts(t *testing.T, tab *browsertest.Tab) {
	t.Helper()
	if len(tab.All("heading", "")) == 0 {
		t.Errorf("%s has no heading", browsertest.Eval[string](tab, "location.pathname"))
	}
	wantNone(t, tab, "shows what needs scripts", named(".needs-script, [data-live-state], [data-copy], [data-pause]", "true"))
	wantNone(t, tab, "has buttons that do nothing", named("button", `!e.popoverTargetElement && (e.type !== 'submit' || !e.form?.getAttribute('action') && !('api' in e.form.dataset))`))
	wantNone(t, tab, "cuts", named("body *", cut))
}
