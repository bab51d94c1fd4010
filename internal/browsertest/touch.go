package browsertest

import (
	"context"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// Phone makes the tab a phone, 360 by 780, whose reader has no mouse.
func (t *Tab) Phone() {
	t.Helper()
	t.do(chromedp.EmulateViewport(360, 780, chromedp.EmulateMobile, chromedp.EmulateTouch))
}

// Tap touches the middle of the thing, again where no click comes of it: a page that is just changing takes a touch for the
// begin of something else.
func (g Thing) Tap() {
	g.tab.Helper()
	g.Call(`function() {
		window.tapped = false
		addEventListener('click', () => { window.tapped = true }, {capture: true, once: true})
	}`)
	var touched time.Time
	g.tab.until("the click of a tap", func(ctx context.Context) (bool, error) {
		// Another page knows nothing of the tap that has led to it.
		if tapped, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("window.tapped !== false")); tapped || err != nil || time.Since(touched) < answerTime {
			return tapped, err
		}
		touched = time.Now()
		x, y := g.middle()
		at := []*input.TouchPoint{{X: x, Y: y}}
		call(g.tab, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: input.DispatchTouchEventTypeTouchStart, TouchPoints: at})
		call(g.tab, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: input.DispatchTouchEventTypeTouchEnd, TouchPoints: []*input.TouchPoint{}})
		return false, nil
	})
}
