package browsertest

import (
	"context"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// tapTime is how long to wait for a touch to become a click before the next attempt: if the first one still led to
// another page, the second would hit anything there.
const tapTime = 20 * time.Second

// Tap touches the middle of the element, and again if that does not cause a click: a page that is just changing may
// take a touch for the beginning of another gesture. If the clicks of two touches come late, the second one does
// nothing.
func (g Thing) Tap() {
	g.tab.Helper()
	g.Call(`function() {
		window.taps?.listening.abort()
		const taps = window.taps = { clicks: 0, listening: new AbortController() }
		addEventListener('click', (event) => {
			if (taps.clicks++ === 0) return
			event.preventDefault()
			event.stopImmediatePropagation()
		}, { capture: true, signal: taps.listening.signal })
	}`)
	touches := 0
	var touched time.Time
	g.tab.until("the click of a tap", func(ctx context.Context) (bool, error) {
		waited := time.Since(touched) >= tapTime
		// A new page, to which the tap has led, has no counter.
		clicks, err := chromedp.Run(ctx, chromedp.Evaluate[int]("window.taps?.clicks ?? 1000"))
		if err != nil || clicks >= max(touches, 1) || clicks > 0 && waited {
			return true, err
		}
		if !waited {
			return false, nil
		}
		touches++
		touched = time.Now()
		x, y := g.middle()
		at := []*input.TouchPoint{{X: x, Y: y}}
		call(g.tab, input.DispatchTouchEvent, input.DispatchTouchEventParams{
			Type:        input.DispatchTouchEventTypeTouchStart,
			TouchPoints: at,
		})
		call(g.tab, input.DispatchTouchEvent, input.DispatchTouchEventParams{
			Type:        input.DispatchTouchEventTypeTouchEnd,
			TouchPoints: []*input.TouchPoint{},
		})
		return false, nil
	})
	g.tab.until("the end of a tap", func(ctx context.Context) (bool, error) {
		return chromedp.Run(ctx, chromedp.Evaluate[bool]("window.taps?.listening.abort(), true"))
	})
}
