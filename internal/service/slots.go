package service

import "time"

// slowJob is how long a job holds its slot at most. One that takes longer is waiting for something other than us, and must
// not keep the others from running.
const slowJob = 10 * time.Millisecond

// slots is how many jobs run at once, not counting slow ones: one value for each that holds a slot.
type slots chan struct{}

// run runs job as soon as there is a slot for it. A job must not panic.
func (s slots) run(job func()) {
	s.take()
	s.use(job)
}

func (s slots) take() { s <- struct{}{} }

func (s slots) giveBack() { <-s }

// use runs job in a slot that was taken, and gives that back.
func (s slots) use(job func()) {
	slow := time.AfterFunc(slowJob, s.giveBack)
	job()
	if slow.Stop() {
		s.giveBack()
	}
}
