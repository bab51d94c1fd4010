package browsertest

import (
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// Phone makes the tab a phone, 360 by 780, whose reader has no mouse.
func (t *Tab) Phone() {
	t.Helper()
	t.do(chromedp.EmulateViewport(360, 780, chromedp.EmulateMobile, chromedp.EmulateTouch))
}

// Tap touches the middle of the thing.
func (g Thing) Tap() {
	g.tab.Helper()
	x, y := g.middle()
	call(g.tab, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: input.DispatchTouchEventTypeTouchStart, TouchPoints: []*input.TouchPoint{{X: x, Y: y}}})
	call(g.tab, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: input.DispatchTouchEventTypeTouchEnd, TouchPoints: []*input.TouchPoint{}})
}
