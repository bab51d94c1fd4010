package browsertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

const (
	// patience is how long to wait for a page to become as expected. Only failing tests wait that long.
	patience = 90 * time.Second
	// answerTime is how long to wait for the browser's response to the first of several attempts: between two pages there
	// may be none.
	answerTime = 5 * time.Second
)

// Tab is a browser tab with separate cookies and storage. Its methods fail the test if they cannot do their work.
type Tab struct {
	testing.TB
	browser *browser
	ctx     context.Context

	console console
}

// slots limits the tests that use the browser at once. Two keep two processors busy; with more, each only waits longer
// for the one browser. holders are the tests that have a slot: two tests that each waited for a second one would
// deadlock.
var (
	slots   = make(chan struct{}, 2)
	holders sync.Map
)

// Needed skips the test with -short. Open does so as well; call Needed first in a test that has much to do before Open.
func Needed(t testing.TB) {
	t.Helper()
	needed(t, light)
}

// Parallel begins a test that needs a browser: Needed, beside other tests of its package.
func Parallel(t *testing.T) {
	t.Helper()
	Needed(t)
	t.Parallel()
}

// Open returns a new tab, 1280 by 800 pixels, which is closed at the end of the test. With -short, as in make
// test-fast, it skips the test.
func Open(t testing.TB) *Tab {
	t.Helper()
	return first(t, light)
}

// OpenWhole is Open for what only the browser that people use can do, such as notifications.
func OpenWhole(t testing.TB) *Tab {
	t.Helper()
	return first(t, whole)
}

func first(t testing.TB, b *browser) *Tab {
	t.Helper()
	needed(t, b)
	if _, has := holders.LoadOrStore(t, nil); has {
		t.Fatal("the test has a tab: Another opens more")
	}
	slots <- struct{}{}
	t.Cleanup(func() { holders.Delete(t); <-slots })
	return open(t, b)
}

// Another opens another tab for the test.
func (t *Tab) Another() *Tab {
	t.Helper()
	return open(t.TB, t.browser)
}

func open(t testing.TB, b *browser) *Tab {
	t.Helper()
	parent, err := b.context()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := chromedp.NewContext(parent, chromedp.WithNewBrowserContext())
	tab := &Tab{TB: t, browser: b, ctx: ctx}
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	tab.console.watch(tab)
	// other tabs have it as well
	call(tab, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
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

// Phone makes the tab a phone of 360 by 780 pixels, with a touch screen and no mouse.
func (t *Tab) Phone() {
	t.Helper()
	t.do(chromedp.EmulateViewport(360, 780, chromedp.EmulateMobile, chromedp.EmulateTouch))
}

// Media sets media features: prefers-color-scheme, dark, …; and the medium: media, print.
func (t *Tab) Media(pairs ...string) {
	t.Helper()
	var media emulation.SetEmulatedMediaParams
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i] == "media" {
			media.Media = pairs[i+1]
		} else {
			media.Features = append(media.Features, &emulation.MediaFeature{Name: pairs[i], Value: pairs[i+1]})
		}
	}
	call(t, emulation.SetEmulatedMedia, media)
}

// Letters sets how large the reader wants text, in pixels; 16 is usual.
func (t *Tab) Letters(size int64) {
	t.Helper()
	call(t, page.SetFontSizes, page.SetFontSizesParams{FontSizes: &page.FontSizes{Standard: size, Fixed: size * 13 / 16}})
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

// Wait waits until the page, including its scripts, has loaded and a JavaScript expression is true.
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

// until polls, since between two pages there may be no response, at growing intervals, since polling takes time from
// the page.
func (t *Tab) until(what string, holds func(ctx context.Context) (bool, error)) {
	t.Helper()
	deadline := time.After(patience)
	// What is given up is answered all the same: on a busy machine each next attempt would wait for the one before.
	answer := answerTime
	for pause := 20 * time.Millisecond; ; pause = min(pause*5/4, 200*time.Millisecond) {
		ctx, cancel := context.WithTimeout(t.ctx, answer)
		ok, err := holds(ctx)
		cancel()
		if ok && err == nil {
			return
		}
		if errors.Is(err, context.DeadlineExceeded) {
			answer = min(2*answer, patience)
		}
		select {
		case <-time.After(pause):
		case <-deadline:
			ctx, cancel := context.WithTimeout(t.ctx, answer)
			defer cancel()
			text, _ := chromedp.Run(ctx, chromedp.Evaluate[string]("location.href + '\\n' + document.body.innerText"))
			t.Fatalf("did not come about: %s (%v)\n%s", what, err, text)
		}
	}
}

// Keys types text, which may contain the special keys of package kb, with other keys held.
func (t *Tab) Keys(text string, held ...chromedp.Modifier) {
	t.Helper()
	t.do(chromedp.KeyEvent(text, chromedp.KeyModifiers(held...)))
}

// KeysTo types keys that lead to the page with this heading. It types them again if they have no effect: on a busy
// machine the time between keys of a sequence may be too long.
func (t *Tab) KeysTo(keys, heading string) {
	t.Helper()
	var typed time.Time
	t.until("heading "+heading+" after "+keys, func(ctx context.Context) (bool, error) {
		if things, err := query(ctx, t, "heading", heading, 1); len(things) > 0 || err != nil {
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

// TouchAt touches the page at a position, or moves the touch there, or, with "touchEnd", ends it.
func (t *Tab) TouchAt(kind input.DispatchTouchEventType, x, y float64) {
	t.Helper()
	at := []*input.TouchPoint{{X: x, Y: y}}
	if kind == input.DispatchTouchEventTypeTouchEnd {
		at = []*input.TouchPoint{}
	}
	call(t, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: kind, TouchPoints: at})
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

// Complaints returns the errors in the browser's console since the last call. They then no longer fail the test.
func (t *Tab) Complaints() []string {
	t.Helper()
	number := t.console.newMark()
	write := fmt.Sprintf("console.debug(%q), true", mark+fmt.Sprint(number))
	// Messages arrive in order, but late: once the mark has arrived, so have all messages before it.
	t.until("a mark in the console", func(ctx context.Context) (bool, error) {
		_, err := chromedp.Run(ctx, chromedp.Evaluate[bool](write))
		return t.console.reached(number), err
	})
	return t.console.take()
}
