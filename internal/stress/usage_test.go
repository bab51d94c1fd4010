//go:build stress

package stress

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// usage is a gateway's resource usage.
type usage struct {
	goroutines, files int
	heap              float64 // MiB
}

// usage measures after some requests, which open connections for later ones and let the garbage collector run.
func (s *site) usage() usage {
	s.t.Helper()
	for range 20 {
		must(s.t, "GET", s.gateway.url+"/api/gateway/events?limit=1000", nil, nil)
		must(s.t, "GET", s.gateway.url+"/api/gateway/pipeline", nil, nil)
	}
	return usage{
		int(metric(s.t, s.gateway.url, "go_goroutines")), s.gateway.files(),
		metric(s.t, s.gateway.url, "go_memstats_heap_inuse_bytes") / (1 << 20),
	}
}

// useAndAbandon requests pipelines for a while, and leaves streams and held requests open without reading them.
func (s *site) useAndAbandon() {
	ctx, stop := context.WithTimeout(s.t.Context(), 30*time.Second)
	defer stop()
	var all sync.WaitGroup
	defer all.Wait()
	for i := range 60 { // the gateway holds 64 of one caller, which the reader is too
		path := []string{"/api/gateway/events/stream?after=0", "/api/gateway/events?wait=60s&after=1000000"}[i%2]
		all.Go(func() {
			request, err := http.NewRequestWithContext(ctx, "GET", s.gateway.url+path, nil)
			if err != nil {
				s.t.Error(err)
				return
			}
			if response, err := http.DefaultClient.Do(request); err == nil {
				<-ctx.Done()
				response.Body.Close()
			}
		})
	}
	for range 10 {
		all.Go(func() {
			for ctx.Err() == nil {
				_, _ = call(ctx, "GET", s.gateway.url+"/api/gateway/pipeline", "", nil, nil)
				pause(ctx, 100*time.Millisecond)
			}
		})
	}
}

// checkUsage checks that the usage of the gateway and the project servers is back at the baseline, once the longest call has ended.
// It tolerates small differences in connections and garbage.
func (s *site) checkUsage(baseline usage) {
	client.CloseIdleConnections()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	var now usage
	if !until(late, func() bool {
		now = s.usage()
		return now.goroutines <= baseline.goroutines+8 && now.files <= baseline.files+8 && now.heap <= baseline.heap+12
	}) {
		s.t.Errorf("the gateway holds %+v, before the faults %+v", now, baseline)
	}
	peak := s.gateway.memory("VmHWM:")
	s.log("the gateway holds %+v, and held at most %.0f MiB", now, peak)
	if peak > 200 {
		s.t.Errorf("the gateway took %.0f MiB", peak)
	}
	for _, p := range s.projects {
		if files := p.files(); files > p.baseline+5 {
			s.t.Errorf("%s has %d files open, at the beginning %d", p.name, files, p.baseline)
		}
	}
}
