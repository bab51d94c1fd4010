package browsertest

import (
	"os"
	"path/filepath"
	"testing"

	"switchyard/internal/waittest"
)

const (
	// rules are the rules for pages: WCAG 2.2, level AA, and best practice, as far as a program can check them.
	rules = `{
		runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
		resultTypes: ['violations'],
		rules: {'target-size': {enabled: true}},
	}`
	// rulesOfColours are the rules that depend on colours. They take half of the time.
	rulesOfColours = `{
		runOnly: {type: 'rule', values: ['color-contrast', 'link-in-text-block']},
		resultTypes: ['violations'],
	}`
	// layout is everything but colours that rules depend on: which elements there are, where, and whether they are shown.
	layout = `[...document.querySelectorAll('*')].map(e => {
		const box = e.getBoundingClientRect(), shown = e.checkVisibility({visibilityProperty: true, opacityProperty: true})
		const attributes = e.getAttributeNames().map(name => e.getAttribute(name))
		return [e.tagName, box.x, box.y, box.width, box.height, shown, ...attributes].join()
	}).join() + document.body.innerText`
)

// Accessible fails the test for each violation of accessibility rules that axe-core finds on the page in its current
// state.
func (t *Tab) Accessible() {
	t.Helper()
	meets(t, rules)
}

func meets(t *Tab, rules string) {
	t.Helper()
	if !Eval[bool](t, "'axe' in window") {
		// The page's content security policy does not apply to scripts sent through the debugging protocol.
		Eval[bool](t, axe(t)+"; true")
	}
	violations := Eval[[]string](t, `Promise.all(document.getAnimations()
		.filter(a => a.timeline === document.timeline && a.effect.getComputedTiming().iterations !== Infinity)
		.map(a => a.finished.catch(() => 0)))
		.then(() => axe.run(document, `+rules+`))
		.then(found => found.violations.flatMap(v => v.nodes.map(n => v.id + ': ' + n.html + '\n' + n.failureSummary)))`)
	for _, violation := range violations {
		t.Errorf("%s\n%s", where(t), violation)
	}
}

// AccessibleAt is Accessible at each of the widths, in light and dark colours. It also fails the test if the page is
// wider than the window. If dark differs in colours only, it checks only the rules that depend on them.
func (t *Tab) AccessibleAt(widths ...int64) {
	t.Helper()
	for _, width := range widths {
		t.Size(width, 900)
		t.Media("prefers-color-scheme", "light")
		t.Accessible()
		light := Eval[string](t, layout)
		t.Media("prefers-color-scheme", "dark")
		if Eval[string](t, layout) == light {
			meets(t, rulesOfColours)
		} else {
			t.Accessible()
		}
		if wide := Eval[int64](t, "document.documentElement.scrollWidth"); wide > width {
			t.Errorf("%s: the page is %d px wide", where(t), wide)
		}
	}
	t.Media("prefers-color-scheme", "light")
}

// where describes the page and how it is displayed.
func where(t *Tab) string {
	return Eval[string](t, `location.pathname + ' ' + innerWidth + ' px' +
		(matchMedia('(prefers-color-scheme: dark)').matches ? ' dark' : ' light')`)
}

// axe returns the source of axe-core, which make test installs.
func axe(t testing.TB) string {
	root := "." // tests run in the directory of their package
	for range 10 {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		root = filepath.Join(root, "..")
	}
	source, err := os.ReadFile(filepath.Join(root, "internal/browsertest/node_modules/axe-core/axe.min.js"))
	if err != nil {
		waittest.Missing(t, err)
	}
	return string(source)
}
