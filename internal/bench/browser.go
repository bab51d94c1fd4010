package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/chromedp/chromedp"
)

// shownPage is how fast Chromium loads a page, the median of several loads.
type shownPage struct {
	Shown    float64 // ms until the first contentful paint
	Loaded   float64 // ms until the load event
	Elements float64
}

// loadInBrowser loads a page, false if there is no Chromium.
func loadInBrowser(url string) (l shownPage, found bool, err error) {
	path, err := exec.LookPath(cmp.Or(os.Getenv("CHROMIUM"), "chromium"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "there is no Chromium to load pages with")
		return l, false, nil
	}
	directory, err := os.MkdirTemp(workDir, "browser-")
	if err != nil {
		return l, false, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(directory),
		chromedp.WSURLReadTimeout(time.Minute))
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	ctx, cancel := chromedp.NewContext(ctx)
	defer cancel()
	defer func() { _ = chromedp.Cancel(ctx) }()
	ctx, end := context.WithTimeout(ctx, 2*time.Minute)
	defer end()
	var loads []shownPage
	for range repeats {
		if err := chromedp.Do(ctx, chromedp.Navigate(url)); err != nil {
			return l, false, err
		}
		// The paint's performance entry exists two frames later.
		one, err := chromedp.Run(ctx, chromedp.Evaluate[shownPage](`new Promise(done => {
			const measure = () => done({
				Shown: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0,
				Loaded: performance.getEntriesByType("navigation")[0].loadEventEnd,
				Elements: document.querySelectorAll("*").length,
			})
			requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(measure, 50)))
		})`, chromedp.EvalAwaitPromise))
		if err != nil {
			return l, false, err
		}
		loads = append(loads, one)
	}
	slices.SortFunc(loads, func(a, b shownPage) int { return cmp.Compare(a.Loaded, b.Loaded) })
	return loads[len(loads)/2], true, nil
}
