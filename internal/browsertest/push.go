package browsertest

import (
	"context"
	"strings"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/serviceworker"
	"github.com/chromedp/chromedp"
)

// AllowNotifications lets the pages of an origin show notifications, as a reader does who is asked.
func AllowNotifications(t *Tab, origin string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	_, err := chromedp.CallBrowser(ctx, cdpbrowser.SetPermission, cdpbrowser.SetPermissionParams{
		Permission: &cdpbrowser.PermissionDescriptor{Name: "notifications"}, Origin: origin,
		Setting:          cdpbrowser.PermissionSettingGranted,
		BrowserContextID: chromedp.FromContext(t.ctx).BrowserContextID,
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Before has a script run before those of each page from now on.
func Before(t *Tab, script string) {
	t.Helper()
	call(t, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
}

// Push hands a text to the service worker of the page's origin, as the browser does when its push service has one, and
// returns when a notification is shown. Chromium's tools lose one of ten: after a while it hands the text over again,
// whose tag makes both one notification.
func Push(t *Tab, text string) {
	t.Helper()
	registrations := make(chan serviceworker.RegistrationID, 100)
	origin := Eval[string](t, "location.origin")
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	err := chromedp.Listen(ctx, func(event any) {
		if updated, ok := event.(*serviceworker.EventWorkerRegistrationUpdated); ok {
			for _, r := range updated.Registrations {
				if strings.HasPrefix(r.ScopeURL, origin) && !r.IsDeleted {
					registrations <- r.RegistrationID
				}
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	message := serviceworker.DeliverPushMessageParams{Origin: origin, Data: text}
	call(t, serviceworker.Enable, cdp.Empty{})
	select {
	case message.RegistrationID = <-registrations:
	case <-ctx.Done():
		t.Fatal("the page has no service worker")
	}
	shown := `navigator.serviceWorker.ready.then((r) => r.getNotifications()).then((all) => all.length > 0)`
	for ctx.Err() == nil {
		call(t, serviceworker.DeliverPushMessage, message)
		for again := time.After(10 * time.Second); ; {
			if Eval[bool](t, shown) {
				return
			}
			select {
			case <-time.After(50 * time.Millisecond):
				continue
			case <-again:
			}
			break
		}
	}
	t.Fatal("the service worker shows nothing")
}

// EvalInWorker evaluates JavaScript in the service worker of the page's origin.
func EvalInWorker[T any](t *Tab, expression string) T {
	t.Helper()
	origin := Eval[string](t, "location.origin")
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	all, err := chromedp.Targets(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var value T
	for _, info := range all {
		if info.Type != "service_worker" || !strings.HasPrefix(info.URL, origin) {
			continue
		}
		worker, cancel := chromedp.NewContext(ctx, chromedp.WithTargetID(info.TargetID))
		defer cancel()
		if value, err = chromedp.Run(worker, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise)); err != nil {
			t.Fatalf("%s: %v", expression, err)
		}
		return value
	}
	t.Fatal("no service worker runs")
	return value
}
