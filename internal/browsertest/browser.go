// Package browsertest drives Chromium in tests: it finds things as people do, by role and name, and fails a test whose
// page complains in the console, as pages do that violate their content security policy.
package browsertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
)

// without are features that the browser does without. The popups of its address bar are pages of a thousand scripts, which
// every new tab loads: that took a quarter of the time of all tests. chromedp turns the first two off, too.
const without = "Translate,BlinkGenPropertyTrees,WebUIOmniboxPopup,WebUIOmniboxAimPopup,WebUIOmniboxFullPopup"

// browser is the one Chromium of a test process, which the first tab starts.
var browser struct {
	sync.Mutex
	running bool // whether Run is under way, which ends the browser
	ctx     context.Context
	end     func()
}

// Run runs the tests of a package and then ends the browser that they shared. A package whose tests open tabs calls it in
// TestMain, and exits with what it returns.
func Run(m *testing.M) int {
	browser.running = true
	defer func() {
		if browser.end != nil {
			browser.end()
		}
	}()
	return m.Run()
}

// shared returns the context of the browser, which it starts where there is none.
func shared() (context.Context, error) {
	browser.Lock()
	defer browser.Unlock()
	if browser.ctx != nil {
		return browser.ctx, nil
	}
	if !browser.running {
		return nil, fmt.Errorf("TestMain must call browsertest.Run, which ends the browser")
	}
	path, err := executable()
	if err != nil {
		return nil, err
	}
	directory, err := os.MkdirTemp("", "browser")
	if err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(directory), chromedp.WSURLReadTimeout(patience),
		chromedp.Flag("enable-blink-features", "ComputedAccessibilityInfo"), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-features", without),
		chromedp.Flag("allow-pre-commit-input", true)) // what is clicked or typed before a new page is painted counts
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	end := func() {
		_ = chromedp.Cancel(ctx) // waits for the browser, so that its directory can go
		cancel()
		stop()
		_ = os.RemoveAll(directory) // helpers of the browser that outlive it may still write there
	}
	if err := chromedp.Do(ctx); err != nil {
		end()
		return nil, err
	}
	browser.ctx, browser.end = ctx, end
	return ctx, nil
}

func executable() (string, error) {
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no browser: install chromium, or name one in CHROMIUM")
}
