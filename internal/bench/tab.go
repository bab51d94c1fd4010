package main

import (
	"context"
	"fmt"
	"html"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// tab sends the requests of a browser's tab: the page once, then its part at the page's interval.
type tab struct {
	client   *http.Client
	base     string
	address  string // of the part, with the version that is shown
	interval time.Duration
}

var (
	liveAddress  = regexp.MustCompile(`data-hx-get="([^"]+)"\s+data-hx-trigger="every (\d+)s`)
	elementStart = regexp.MustCompile(`<[a-zA-Z]`)
)

func openTab(base, path string) (*tab, error) {
	t := &tab{base: base, client: &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: 1},
		Timeout:   30 * time.Second,
	}}
	status, body, err := t.get(path, false)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%s: status %d", path, status)
	}
	if err == nil {
		err = t.show(body)
	}
	return t, err
}

// show takes the part's next address from an answer.
func (t *tab) show(body string) error {
	found := liveAddress.FindStringSubmatch(body)
	if found == nil {
		return fmt.Errorf("no part refreshes itself in %d bytes of answer", len(body))
	}
	t.address = html.UnescapeString(found[1])
	seconds, err := time.ParseDuration(found[2] + "s")
	t.interval = seconds
	return err
}

func (t *tab) get(path string, part bool) (status int, body string, err error) {
	request, err := http.NewRequest(http.MethodGet, t.base+path, nil)
	if err != nil {
		return 0, "", err
	}
	if part {
		request.Header.Set("HX-Request", "true")
	}
	response, err := t.client.Do(request) // accepts gzip, like a browser
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, string(content), err
}

// refresh requests the part once.
func (t *tab) refresh() error {
	status, body, err := t.get(t.address, true)
	switch {
	case err != nil || status == http.StatusNoContent:
		return err
	case status != http.StatusOK:
		return fmt.Errorf("%s: status %d", t.address, status)
	}
	return t.show(body)
}

// keepTabs keeps tabs of the page open until ctx ends, and returns how many of their requests failed.
func keepTabs(ctx context.Context, base, path string, count int) int64 {
	var failed atomic.Int64
	var done sync.WaitGroup
	for i := range count {
		done.Go(func() {
			select {
			case <-time.After(time.Duration(i) * 2 * time.Second / time.Duration(count)): // not all opened at once
			case <-ctx.Done():
				return
			}
			t, err := openTab(base, path)
			if err != nil {
				failed.Add(1)
				return
			}
			tick := time.NewTicker(t.interval)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
				case <-ctx.Done():
					return
				}
				if t.refresh() != nil {
					failed.Add(1)
				}
			}
		})
	}
	done.Wait()
	return failed.Load()
}

// countElements returns the number of elements in a page.
func countElements(page string) int {
	return len(elementStart.FindAllString(strings.ToLower(page), -1))
}
