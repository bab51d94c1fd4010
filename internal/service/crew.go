package service

import (
	"sync"
	"time"
)

// slowJob is how long a job counts as one of those that a crew runs at once. A job that takes longer waits for something
// else than us, and must not keep the others from being run.
const slowJob = 10 * time.Millisecond

// crew is a pool of workers. It runs jobs in the order in which they come, size of them at once, not counting slow ones.
// Its goroutines end when there is nothing to do.
type crew struct {
	size int

	mu      sync.Mutex
	queue   []func()
	working int // goroutines that are not in a slow job
}

// add has job run soon. It does not wait. A job must not panic.
func (c *crew) add(job func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = append(c.queue, job)
	c.hire()
}

// hire starts another worker where there is work for it. Callers hold mu.
func (c *crew) hire() {
	if len(c.queue) > 0 && c.working < c.size {
		c.working++
		go c.work()
	}
}

// work runs jobs until there are none, or until one was so slow that another worker took this one's place.
func (c *crew) work() {
	var slow *time.Timer
	for {
		c.mu.Lock()
		if len(c.queue) == 0 {
			c.queue = nil // frees what it was sliced from
			c.working--
			c.mu.Unlock()
			return
		}
		job := c.queue[0]
		c.queue[0] = nil
		c.queue = c.queue[1:]
		c.mu.Unlock()
		if slow == nil {
			slow = time.AfterFunc(slowJob, c.replace)
		} else {
			slow.Reset(slowJob)
		}
		job()
		if !slow.Stop() {
			return
		}
	}
}

func (c *crew) replace() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.working--
	c.hire()
}
