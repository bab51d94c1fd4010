//go:build !linux

package waittest

import (
	"runtime/metrics"
	"time"
)

// CPUTime returns about the CPU time that this process has used.
func CPUTime() time.Duration {
	samples := []metrics.Sample{{Name: "/cpu/classes/total:cpu-seconds"}, {Name: "/cpu/classes/idle:cpu-seconds"}}
	metrics.Read(samples)
	return time.Duration((samples[0].Value.Float64() - samples[1].Value.Float64()) * float64(time.Second))
}

// ThreadTime returns CPUTime: threads have none of their own on all systems.
func ThreadTime() time.Duration { return CPUTime() }
