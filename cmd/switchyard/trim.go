package main

import (
	"context"
	"runtime/debug"
	"time"

	"switchyard/internal/supervise"
)

// trimTimes are the times after the start at which memory is trimmed: when a gateway with a few projects has stored what their
// pipelines showed, the last thing of a start that needs much of the program, and when one with thousands has.
var trimTimes = []time.Duration{2500 * time.Millisecond, 12 * time.Second}

// trimMemory returns memory that only the start needed to the system. The heap would keep it for minutes, as an idle gateway rarely
// collects; pages of the program file, nearly all of which the start touches, would stay mapped for good.
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
