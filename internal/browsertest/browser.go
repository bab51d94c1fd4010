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

	"switchyard/internal/waittest"
)

// without lists browser features to disable. The popups of the address bar are pages with a thousand scripts, which
// every new tab loads: that took a quarter of the time of all tests. chromedp disables the first two as well.
const without = "Translate,BlinkGenPropertyTrees,WebUIOmniboxPopup,WebUIOmniboxAimPopup,WebUIOmniboxFullPopup"

// browser is a Chromium of a test process, started by its first tab.
type browser struct {
	sync.Mutex
	names []string // programs, the first that there is counts
	ctx   context.Context
	end   func()
}

// whole is the browser that people use, and light the same without windows, which takes little more than half of the
// processor time, but shows no notifications.
var (
	whole = &browser{names: []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"}}
	light = &browser{names: append([]string{os.Getenv("CHROMIUM"), "chromium-headless-shell"}, whole.names...)}
)

var running bool // Run is running, which ends the browsers

// Run runs the tests of a package and then ends the browsers that they shared. A package whose tests open tabs must
// call it in TestMain, and exit with the status that it returns.
func Run(m *testing.M) int {
	running = true
	defer func() {
		for _, b := range []*browser{whole, light} {
			if b.end != nil {
				b.end()
			}
		}
	}()
	return m.Run()
}

// context returns the context of the browser, which it starts if necessary.
func (b *browser) context() (context.Context, error) {
	b.Lock()
	defer b.Unlock()
	if b.ctx != nil {
		return b.ctx, nil
	}
	if !running {
		return nil, fmt.Errorf("TestMain must call browsertest.Run, which ends the browser")
	}
	path, err := b.executable()
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
	b.ctx, b.end = ctx, end
	return ctx, nil
}

func needed(t testing.TB, b *browser) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a browser")
	}
	if _, err := b.executable(); err != nil {
		waittest.Missing(t, err)
	}
}

func (b *browser) executable() (string, error) {
	for _, name := range b.names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no browser (chromium, or the one that CHROMIUM names)")
}
