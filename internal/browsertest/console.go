package browsertest

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/chromedp/chromedp"
)

// console is what a tab has written to the browser's console.
type console struct {
	mu         sync.Mutex
	complaints []string
	marks      int // how many marks have been written
	marked     int // the last mark received
}

const mark = "switchyard's tests: mark "

// watchConsole collects the errors in the console. Errors that the test does not take with Complaints fail it.
func (t *Tab) watchConsole() {
	messages := chromedp.Console(t.ctx)
	go func() {
		for message, err := range messages {
			if err != nil {
				return
			}
			t.console.note(message)
		}
	}()
	t.Cleanup(func() {
		if t.Failed() {
			return // perhaps because the browser no longer responds
		}
		for _, complaint := range t.Complaints() {
			t.Errorf("the browser's console: %s", complaint)
		}
	})
}

func (c *console) note(message chromedp.ConsoleMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := len(c.complaints) - 1
	switch number, isMark := strings.CutPrefix(message.Text, mark); {
	case isMark:
		_, _ = fmt.Sscan(number, &c.marked)
	case message.Type != chromedp.ConsoleError && !message.IsException():
	case !strings.HasPrefix(message.Text, "htmx:sendAbort"):
		c.complaints = append(c.complaints, message.Text+" "+message.URL)
	case last >= 0 && strings.HasPrefix(c.complaints[last], "htmx:afterRequest"):
		// htmx logs two lines when a page is left during a request, which is not an error.
		c.complaints = c.complaints[:last]
	}
}

// Complaints returns the errors in the browser's console since the last call. They then no longer fail the test.
func (t *Tab) Complaints() []string {
	t.Helper()
	t.console.mu.Lock()
	t.console.marks++
	number := t.console.marks
	t.console.mu.Unlock()
	// Messages arrive in order, but late: once the mark has arrived, so have all messages before it.
	t.until("a mark in the console", func(ctx context.Context) (bool, error) {
		if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool](fmt.Sprintf("console.debug(%q), true",
			mark+fmt.Sprint(number)))); err != nil {
			return false, err
		}
		return t.console.reached(number), nil
	})
	t.console.mu.Lock()
	defer t.console.mu.Unlock()
	complaints := t.console.complaints
	t.console.complaints = nil
	return complaints
}

func (c *console) reached(number int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.marked >= number
}
