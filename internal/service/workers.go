package service

import (
	"log/slog"
	"sync"
	"time"

	"switchyard/internal/supervise"
)

// slowJob is the time after which a job no longer counts as occupying a worker: it is waiting for the network, and must not keep
// other jobs from running.
const slowJob = 10 * time.Millisecond

// workers runs jobs in their order, size of them at once, not counting slow ones. Its goroutines end when there is nothing to do.
// A goroutine for each job would cost more, since each stack has to grow (make bench, "fresh pipeline of 1,000 projects": 92 ms of
// CPU instead of 79).
type workers struct {
	size int
	log  *slog.Logger

	mu      sync.Mutex
	queue   []func()
	working int // the number of workers that are not in a slow job
}

// add queues a job without waiting for it.
func (w *workers) add(job func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = append(w.queue, job)
	w.start()
}

// start starts another worker if there is work for it. The caller holds mu.
func (w *workers) start() {
	if len(w.queue) > 0 && w.working < w.size {
		w.working++
		supervise.Go(w.log, "fetch", w.work)
	}
}

// work runs jobs until there are none, or until one was so slow that another worker has taken its place. The last one may panic.
func (w *workers) work() {
	var slow *time.Timer
	running := false
	defer func() {
		if running && slow.Stop() {
			w.replace()
		}
	}()
	for {
		job := w.next()
		if job == nil {
			return
		}
		if slow == nil {
			slow = time.AfterFunc(slowJob, w.replace)
		} else {
			slow.Reset(slowJob)
		}
		running = true
		job()
		running = false
		if !slow.Stop() {
			return
		}
	}
}

// next returns the next job. It returns nil when there is none; then the worker must end.
func (w *workers) next() (job func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		w.queue = nil // frees the underlying array
		w.working--
		return nil
	}
	job, w.queue[0] = w.queue[0], nil
	w.queue = w.queue[1:]
	return job
}

func (w *workers) replace() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.working--
	w.start()
}
