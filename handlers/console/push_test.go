package console_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"switchyard/internal/browsertest"
	"switchyard/internal/domain"
	"switchyard/internal/pushtest"
	"switchyard/internal/waittest"
)

// TestBrowserIsPushedTo: the page subscribes the browser, a question is pushed through its push service, the service worker shows
// it, and a click opens the console. The push service is ours: the browser's own is on the Internet.
func TestBrowserIsPushedTo(t *testing.T) {
	browsertest.Parallel(t)
	s := newConsoleSite(t)
	s.deliver()
	service := pushtest.New(t)
	device, _ := json.Marshal(service.Device())
	tab := browsertest.OpenWhole(t)
	browsertest.AllowNotifications(tab, s.URL)
	browsertest.Before(tab, fmt.Sprintf(`{
		const { endpoint, p256dh, auth } = %s
		PushManager.prototype.getSubscription = async () => ({
			options: { applicationServerKey: new Uint8Array(65).buffer },
			unsubscribe: async () => { sessionStorage.ended = 'the one of another key' },
		})
		PushManager.prototype.subscribe = async (options) => {
			sessionStorage.asked = JSON.stringify({ visible: options.userVisibleOnly, key: options.applicationServerKey.length })
			return { toJSON: () => ({ endpoint, keys: { p256dh, auth } }) }
		}
	}`, device))
	tab.Goto(s.URL + "/notifications")
	tab.Find("button", "Turn on").Click()
	tab.Wait(`document.querySelector('[aria-label="My devices"]') !== null`)
	tab.WaitText("This browser is on.")
	if asked := browsertest.Eval[string](tab, "sessionStorage.asked"); asked != `{"visible":true,"key":65}` {
		t.Errorf("subscribed with %s", asked)
	}
	if ended := browsertest.Eval[string](tab, "sessionStorage.ended"); ended != "the one of another key" {
		t.Errorf("ended: %q", ended)
	}
	s.asks(domain.Question{Kind: domain.QuestionText, Prompt: "Which <b>table</b>?"})
	waittest.Until(t, "the question is pushed", service.Got)
	text := service.Text()
	browsertest.Push(tab, text)
	shown := "navigator.serviceWorker.ready.then((r) => r.getNotifications()).then((all) => all.map((n) => n.title + '/' + n.body + '/' + n.data).join())"
	if got := browsertest.Eval[string](tab, shown); got != "Switchyard: asks/admin asks: Which <b>table</b>?/" {
		t.Errorf("shown is %q; pushed was %s", got, text)
	}
	opened := browsertest.EvalInWorker[string](tab, `(async () => {
		let opened = ''
		self.clients.openWindow = async (address) => { opened = address }
		const [notification] = await self.registration.getNotifications()
		self.dispatchEvent(new NotificationEvent('notificationclick', { notification }))
		return opened + ' ' + (await self.registration.getNotifications()).length
	})()`)
	if opened != s.URL+"/ 0" {
		t.Errorf("a click opened %s", opened)
	}
	tab.Find("button", "Remove").Click()
	tab.Wait(`document.querySelector('[aria-label="My devices"]') === null`)
	tab.WaitText("The browser asks once for your permission.")
}
