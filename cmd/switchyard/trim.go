package main

import (
	"context"
	"runtime/debug"
	"time"

	"switchyard/internal/supervise"
)

// trimTimes are how long after the start memory is trimmed: when a gateway with a few projects has begun to follow them, and
// when one with thousands has stored what they had to tell.
var trimTimes = []time.Duration{time.Second, 12 * time.Second}

// trimMemory gives back to the system what only the start needed. The heap would keep it for minutes, as it is collected rarely
// while little happens; pages of the program file, of which the start maps nearly all, would stay for good.
func trimMemory(ctx context.Context) {
	began := time.Now()
	for _, after := range trimTimes {
		if !supervise.Sleep(ctx, time.Until(began.Add(after))) {
			return
		}
		debug.FreeOSMemory()
		unmapProgram()
	}
}
