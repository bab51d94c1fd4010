package browsertest

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Thing is an element on the page.
type Thing struct {
	tab *Tab
	id  runtime.RemoteObjectID
}

// All returns all elements with this role and accessible name that are visible to assistive technology. An empty name
// matches any.
func (t *Tab) All(role, name string) []Thing {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	things, err := query(ctx, t, role, name, math.MaxInt32)
	if err != nil {
		t.Fatal(err)
	}
	return things
}

// Find waits until the page, including its scripts, has loaded, and returns the first element with this role and
// accessible name.
func (t *Tab) Find(role, name string) Thing {
	t.Helper()
	var things []Thing
	t.until(role+" "+name, func(ctx context.Context) (_ bool, err error) {
		if things, err = query(ctx, t, role, name, 1); len(things) == 0 || err != nil {
			return false, err
		}
		return chromedp.Run(ctx, chromedp.Evaluate[bool]("document.readyState === 'complete'"))
	})
	return things[0]
}

// candidates returns a selector for elements that may have a role: getting the role of every element of a large page
// takes seconds.
func candidates(role string) string {
	switch role {
	case "button":
		return "button, summary, input, [role=button]"
	case "link":
		return "a, [role=link]"
	case "heading":
		return "h1, h2, h3, [role=heading]"
	case "textbox", "searchbox", "checkbox":
		return "input, textarea, [role=" + role + "]"
	case "combobox":
		return "select, input, [role=combobox]"
	}
	return "input, textarea, select, nav, main, header, footer, form, section, table, ul, ol, dialog, [role]"
}

// find checks visibility and text first: for a role or a name the browser rebuilds its accessibility tree each time,
// which takes tens of milliseconds.
const find = `((selector, role, name, limit) => {
	const found = []
	for (const e of document.querySelectorAll(selector)) {
		if (!e.checkVisibility({visibilityProperty: true})) continue
		const texts = e.labels?.length ? [...e.labels] : [e]
		const text = (e.ariaLabel || texts.map(t => t.textContent).join(' ')).replace(/\s+/g, ' ').trim()
		const otherwise = e.matches('[aria-labelledby], table, form, section, nav')
		if (text !== '' && !otherwise && !text.includes(name)) continue
		if (e.computedRole !== role || name !== '' && e.computedName !== name) continue
		if (found.push(e) === limit) break
	}
	return found
})(%q, %q, %q, %d)`

// query returns the first limit matching elements. It runs a script in the page, which uses a feature enabled at the
// browser's start: the protocol's own query blocks the page forever if it comes between two pages.
func query(ctx context.Context, t *Tab, role, name string, limit int) ([]Thing, error) {
	list, err := chromedp.Run(ctx, chromedp.Evaluate[*runtime.RemoteObject](fmt.Sprintf(find, candidates(role), role, name,
		limit)))
	if err != nil {
		return nil, err
	}
	properties, err := chromedp.Call(ctx, runtime.GetProperties,
		runtime.GetPropertiesParams{ObjectID: list.ObjectID, OwnProperties: new(true)})
	if err != nil {
		return nil, err
	}
	var things []Thing
	for _, property := range properties.Result {
		if property.Value != nil && property.Value.Subtype == "node" {
			things = append(things, Thing{t, property.Value.ObjectID})
		}
	}
	return things, nil
}

// Call calls a JavaScript function with the element as this, and returns its result as text.
func (g Thing) Call(function string) string {
	g.tab.Helper()
	ctx, cancel := context.WithTimeout(g.tab.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.CallFunctionOn[string](
		"function() { return String(("+function+").call(this)) }",
		func(p *runtime.CallFunctionOnParams) { p.ObjectID = g.id }))
	if err != nil {
		g.tab.Fatalf("%s: %v", function, err)
	}
	return value
}

// Click clicks the middle of the element with the mouse.
func (g Thing) Click() {
	g.tab.Helper()
	x, y := g.middle()
	g.tab.do(chromedp.MouseClickXY(x, y))
}

// ClickAround presses the mouse button on the element, calls happens, and releases the button at the same position.
func (g Thing) ClickAround(happens func()) {
	g.tab.Helper()
	x, y := g.middle()
	g.tab.do(chromedp.MouseEvent(chromedp.MouseMoved, x, y),
		chromedp.MouseEvent(chromedp.MousePressed, x, y, chromedp.ButtonLeft, chromedp.ClickCount(1)))
	happens()
	g.tab.do(chromedp.MouseEvent(chromedp.MouseReleased, x, y, chromedp.ButtonLeft, chromedp.ClickCount(1)))
}

// Drag presses the mouse button on the element and moves the mouse to the middle of another one. It returns a function
// that releases the button there.
func (g Thing) Drag(to Thing) (drop func()) {
	g.tab.Helper()
	x, y := g.middle()
	g.tab.do(chromedp.MouseEvent(chromedp.MouseMoved, x, y),
		chromedp.MouseEvent(chromedp.MousePressed, x, y, chromedp.ButtonLeft, chromedp.ClickCount(1)),
		chromedp.MouseEvent(chromedp.MouseMoved, x+10, y, chromedp.ButtonLeft))
	x, y = to.middle()
	g.tab.do(chromedp.MouseEvent(chromedp.MouseMoved, x, y, chromedp.ButtonLeft))
	return func() {
		g.tab.Helper()
		g.tab.do(chromedp.MouseEvent(chromedp.MouseReleased, x, y, chromedp.ButtonLeft, chromedp.ClickCount(1)))
	}
}

// Middle scrolls to the element and returns the position of its middle.
func (g Thing) Middle() (x, y float64) { return g.middle() }

// middle scrolls to the element and returns the position of its middle. What is open and in sight stays where it is: a
// menu is placed beside its button again one frame after the page was scrolled.
func (g Thing) middle() (x, y float64) {
	g.tab.Helper()
	box := g.Call(`function() {
		if (this.closest('[popover]')) this.scrollIntoViewIfNeeded()
		else this.scrollIntoView({block: 'center', behavior: 'instant'})
		const r = this.getBoundingClientRect()
		return (r.left + r.width / 2) + ' ' + (r.top + r.height / 2)
	}`)
	if _, err := fmt.Sscan(box, &x, &y); err != nil {
		g.tab.Fatal(box, err)
	}
	return x, y
}

// Type focuses the element and replaces its content by text.
func (g Thing) Type(text string) {
	g.tab.Helper()
	g.Call("function() { this.focus(); this.select?.() }")
	g.tab.Keys(text)
}

// Text returns the text of the element.
func (g Thing) Text() string {
	g.tab.Helper()
	return strings.TrimSpace(g.Call("function() { return this.innerText }"))
}
