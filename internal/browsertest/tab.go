package browsertest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

const (
	// patience is how long a page has to become as it should. It only passes whole where a test fails.
	patience = 90 * time.Second
	// answerTime is how long the browser has for one question of many: one asked between two pages may get no answer.
	answerTime = 5 * time.Second
)

// Tab is a browser tab with cookies and storage of its own. What cannot be done fails the test.
type Tab struct {
	testing.TB
	ctx context.Context

	console console
}

// places are for tests at work in the browser. Two keep two processors busy; of more, each only waits longer for the one browser.
// placed are the tests that have one. Two tests that waited for a second one would wait for each other for ever.
var (
	places = make(chan struct{}, 2)
	placed sync.Map
)

// Needed skips the test with -short. Open does so as well; a test that has much to do before calls this first.
func Needed(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a browser")
	}
}

// Open returns a new tab, 1280 by 800, which closes with the test. With -short, that is in make test-fast, it skips the test:
// no other rule skips any.
func Open(t testing.TB) *Tab {
	t.Helper()
	Needed(t)
	if _, has := placed.LoadOrStore(t, nil); has {
		t.Fatal("the test has a tab: Another opens more")
	}
	places <- struct{}{}
	t.Cleanup(func() { placed.Delete(t); <-places })
	return open(t)
}

// Another returns another new tab for the test.
func (t *Tab) Another() *Tab {
	t.Helper()
	return open(t.TB)
}

func open(t testing.TB) *Tab {
	t.Helper()
	parent, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := chromedp.NewContext(parent, chromedp.WithNewBrowserContext())
	tab := &Tab{TB: t, ctx: ctx}
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	tab.watchConsole()
	call(tab, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}) // other tabs have it as well
	tab.Size(1280, 800)
	return tab
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

// Zone sets the time zone of the reader, such as Asia/Tokyo.
func (t *Tab) Zone(name string) {
	t.Helper()
	call(t, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: name})
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

// until asks again and again, since between two pages there is no answer; ever less often, since questions take the time
// that the page needs to become as it should.
func (t *Tab) until(what string, holds func(ctx context.Context) (bool, error)) {
	t.Helper()
	deadline := time.After(patience)
	for pause := 20 * time.Millisecond; ; pause = min(pause*5/4, 200*time.Millisecond) {
		ctx, cancel := context.WithTimeout(t.ctx, answerTime)
		ok, err := holds(ctx)
		cancel()
		if ok && err == nil {
			return
		}
		select {
		case <-time.After(pause):
		case <-deadline:
			ctx, cancel := context.WithTimeout(t.ctx, answerTime)
			defer cancel()
			text, _ := chromedp.Run(ctx, chromedp.Evaluate[string]("location.href + '\\n' + document.body.innerText"))
			t.Fatalf("did not come about: %s (%v)\n%s", what, err, text)
		}
	}
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
		if things, err := t.query(ctx, "heading", heading, 1); len(things) > 0 || err != nil {
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
