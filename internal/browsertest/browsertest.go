// Package browsertest drives Chromium in tests: it finds things as people do, by role and name, and fails a test whose
// page complains in the console, as pages do that violate their content security policy.
package browsertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

const (
	// patience is how long a page has to become as it should. It only passes whole where a test fails.
	patience = 90 * time.Second
	// answerTime is how long the browser has for one question of many: one asked between two pages may get no answer.
	answerTime = 5 * time.Second
)

// Tab is a browser tab of a browser of its own. What cannot be done fails the test.
type Tab struct {
	testing.TB
	ctx context.Context

	mu         sync.Mutex
	complaints []string
}

// Open starts a browser and returns its tab, 1280 by 800. Both end with the test.
func Open(t testing.TB) *Tab {
	t.Helper()
	directory, err := os.MkdirTemp("", "browser")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(directory) }) // helpers of the browser that outlive it may still write there
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(executable(t)), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(directory), chromedp.WSURLReadTimeout(patience),
		chromedp.Flag("enable-blink-features", "ComputedAccessibilityInfo"), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-quic", true))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	tab := &Tab{TB: t, ctx: ctx}
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits for the browser, so that its directory can go
		cancel()
		stop()
	})
	messages := chromedp.Console(ctx)
	go func() {
		for message, err := range messages {
			if err != nil {
				return
			}
			if message.Type == chromedp.ConsoleError || message.IsException() {
				tab.mu.Lock()
				tab.complaints = append(tab.complaints, message.Text+" "+message.URL)
				tab.mu.Unlock()
			}
		}
	}()
	t.Cleanup(func() {
		for _, complaint := range tab.Complaints() {
			t.Errorf("the browser's console: %s", complaint)
		}
	})
	tab.Size(1280, 800)
	return tab
}

func executable(t testing.TB) string {
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("no browser: install chromium, or name one in CHROMIUM")
	return ""
}

// Complaints returns the errors in the browser's console since the last call. A test that takes them accepts them.
func (t *Tab) Complaints() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	complaints := t.complaints
	t.complaints = nil
	return complaints
}

func (t *Tab) do(steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

func call[P, R any](t *Tab, command cdp.Command[P, R], params P) R {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	result, err := chromedp.Call(ctx, command, params)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// Goto loads a page.
func (t *Tab) Goto(address string) {
	t.Helper()
	t.do(chromedp.Navigate(address))
}

// Size sets the size of the page in pixels.
func (t *Tab) Size(width, height int64) {
	t.Helper()
	t.do(chromedp.EmulateViewport(width, height))
}

// Media sets media features: prefers-color-scheme, dark, …
func (t *Tab) Media(pairs ...string) {
	t.Helper()
	var features []*emulation.MediaFeature
	for i := 0; i < len(pairs); i += 2 {
		features = append(features, &emulation.MediaFeature{Name: pairs[i], Value: pairs[i+1]})
	}
	call(t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
}

// Scripts turns JavaScript of pages on or off, from the next page on.
func (t *Tab) Scripts(on bool) {
	t.Helper()
	call(t, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !on})
}

// Eval evaluates JavaScript in the page.
func Eval[T any](t *Tab, expression string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// Wait waits until a JavaScript expression is true in a page that is loaded whole, its scripts included.
func (t *Tab) Wait(expression string) {
	t.Helper()
	t.until(expression, func(ctx context.Context) (bool, error) {
		return chromedp.Run(ctx, chromedp.Evaluate[bool]("document.readyState === 'complete' && Boolean("+expression+")"))
	})
}

// WaitText waits until the page shows this text.
func (t *Tab) WaitText(text string) {
	t.Helper()
	t.Wait(fmt.Sprintf("document.body?.innerText.includes(%q)", text))
}

// until asks again and again, since between two pages there is no answer.
func (t *Tab) until(what string, holds func(ctx context.Context) (bool, error)) {
	t.Helper()
	deadline := time.After(patience)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		ctx, cancel := context.WithTimeout(t.ctx, answerTime)
		ok, err := holds(ctx)
		cancel()
		if ok && err == nil {
			return
		}
		select {
		case <-again.C:
		case <-deadline:
			ctx, cancel := context.WithTimeout(t.ctx, answerTime)
			defer cancel()
			text, _ := chromedp.Run(ctx, chromedp.Evaluate[string]("location.href + '\\n' + document.body.innerText"))
			t.Fatalf("did not come about: %s (%v)\n%s", what, err, text)
		}
	}
}

// Thing is something on the page.
type Thing struct {
	tab *Tab
	id  runtime.RemoteObjectID
}

// All returns everything on the page that has this role and accessible name and is shown to assistive technology. An
// empty name is any.
func (t *Tab) All(role, name string) []Thing {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	things, err := t.query(ctx, role, name)
	if err != nil {
		t.Fatal(err)
	}
	return things
}

// Find waits for the first thing that has this role and accessible name on a page that is loaded whole, its scripts included.
func (t *Tab) Find(role, name string) Thing {
	t.Helper()
	var things []Thing
	t.until(role+" "+name, func(ctx context.Context) (_ bool, err error) {
		if things, err = t.query(ctx, role, name); len(things) == 0 || err != nil {
			return false, err
		}
		return chromedp.Run(ctx, chromedp.Evaluate[bool]("document.readyState === 'complete'"))
	})
	return things[0]
}

// candidates selects what may have a role: to ask every element of a large page takes seconds.
func candidates(role string) string {
	switch role {
	case "button":
		return "button, summary, input, [role]"
	case "link":
		return "a, [role]"
	case "heading":
		return "h1, h2, h3, [role]"
	}
	return "input, textarea, select, nav, main, header, footer, form, section, table, ul, ol, dialog, [role]"
}

// find looks at the texts first: to compute a name takes milliseconds.
const find = `((selector, role, name) => [...document.querySelectorAll(selector)].filter(e => {
	const text = e.textContent.replace(/\s+/g, ' ').trim()
	const named = e.matches('[aria-label], [aria-labelledby], input, select, textarea, table, form, section, nav')
	return (text === '' || named || text.includes(name)) && e.computedRole === role && (name === '' || e.computedName === name)
}))(%q, %q, %q)`

// query asks the page itself, with a feature that the browser is started with. The protocol's own way to ask blocks the
// page for good when it meets the moment between two pages.
func (t *Tab) query(ctx context.Context, role, name string) ([]Thing, error) {
	list, err := chromedp.Run(ctx, chromedp.Evaluate[*runtime.RemoteObject](fmt.Sprintf(find, candidates(role), role, name)))
	if err != nil {
		return nil, err
	}
	properties, err := chromedp.Call(ctx, runtime.GetProperties, runtime.GetPropertiesParams{ObjectID: list.ObjectID, OwnProperties: new(true)})
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

// Call calls a JavaScript function with the thing as this, and returns what it returns as text.
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

// Click clicks with the mouse in the middle of the thing.
func (g Thing) Click() {
	g.tab.Helper()
	var x, y float64
	box := g.Call(`function() {
		this.scrollIntoView({block: 'center', behavior: 'instant'})
		const r = this.getBoundingClientRect()
		return (r.left + r.width / 2) + ' ' + (r.top + r.height / 2)
	}`)
	if _, err := fmt.Sscan(box, &x, &y); err != nil {
		g.tab.Fatal(box, err)
	}
	g.tab.do(chromedp.MouseClickXY(x, y))
}

// Type focuses the thing, selects what is in it and types text in its place.
func (g Thing) Type(text string) {
	g.tab.Helper()
	g.Call("function() { this.focus(); this.select?.() }")
	g.tab.Keys(text)
}

// Text is the text that the thing shows.
func (g Thing) Text() string {
	g.tab.Helper()
	return strings.TrimSpace(g.Call("function() { return this.innerText }"))
}

// Keys types text, which may hold the special keys of package kb.
func (t *Tab) Keys(text string) {
	t.Helper()
	t.do(chromedp.KeyEvent(text))
}

// KeysTo types keys that lead to the page with this heading, again where nothing comes of it: those that belong together
// may be too far apart when the machine is busy.
func (t *Tab) KeysTo(keys, heading string) {
	t.Helper()
	var typed time.Time
	t.until("heading "+heading+" after "+keys, func(ctx context.Context) (bool, error) {
		if things, err := t.query(ctx, "heading", heading); len(things) > 0 || err != nil {
			return len(things) > 0, err
		}
		if time.Since(typed) < answerTime {
			return false, nil
		}
		typed = time.Now()
		return false, chromedp.Do(ctx, chromedp.KeyEvent(keys))
	})
	t.Find("heading", heading)
}

// Screenshot writes the whole page as a PNG file.
func (t *Tab) Screenshot(path string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(path, png, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
