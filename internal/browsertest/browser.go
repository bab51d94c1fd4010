// Package browsertest drives Chromium in tests. It finds elements as people do, by role and name, and fails a test
// whose page logs errors to the console, such as violations of the content security policy.
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

// without lists browser features to disable. The popups of the address bar are pages with a thousand scripts, which
// every new tab loads: that took a quarter of the time of all tests. chromedp disables the first two as well.
const without = "Translate,BlinkGenPropertyTrees,WebUIOmniboxPopup,WebUIOmniboxAimPopup,WebUIOmniboxFullPopup"

// browser is the single Chromium of a test process, started by the first tab.
var browser struct {
	sync.Mutex
	running bool // whether Run is running, which ends the browser
	ctx     context.Context
	end     func()
}

// Run runs the tests of a package and then ends the browser that they shared. A package whose tests open tabs must call
// it in TestMain, and exit with the status that it returns.
func Run(m *testing.M) int {
	browser.running = true
	defer func() {
		if browser.end != nil {
			browser.end()
		}
	}()
	return m.Run()
}

// shared returns the context of the browser, which it starts if necessary.
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
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(directory),
		// Without a graphics processor's emulation large pages are drawn in less processor time.
		chromedp.Flag("disable-software-rasterizer", true), chromedp.Flag("disable-gpu-rasterization", true),
		chromedp.Flag("disable-gpu-compositing", true),
		chromedp.WSURLReadTimeout(patience),
		chromedp.Flag("enable-blink-features", "ComputedAccessibilityInfo"), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-features", without),
		chromedp.Flag("allow-pre-commit-input", true)) // input before a new page is painted counts
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	end := func() {
		_ = chromedp.Cancel(ctx) // waits for the browser, so that its directory can be removed
		cancel()
		stop()
		_ = os.RemoveAll(directory) // may fail while helper processes of the browser still write there
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
	return "", fmt.Errorf("no browser (chromium, or the one that CHROMIUM names)")
}
