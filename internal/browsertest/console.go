package browsertest

import (
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

// watch collects the errors in the tab's console. Errors that the test does not take with Complaints fail it.
func (c *console) watch(t *Tab) {
	messages := chromedp.Console(t.ctx)
	go func() {
		for message, err := range messages {
			if err != nil {
				return
			}
			c.note(message)
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

func (c *console) reached(number int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.marked >= number
}

// take returns the complaints since the last call.
func (c *console) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	complaints := c.complaints
	c.complaints = nil
	return complaints
}

// newMark returns the number of the next mark.
func (c *console) newMark() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.marks++
	return c.marks
}
