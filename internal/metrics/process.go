package metrics

import (
	"bytes"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	gometrics "runtime/metrics"
	"strconv"
	"syscall"
	"time"
)

var started = time.Now()

// WriteBuild writes the program's version, its commit if known, and Go's version.
func WriteBuild(t *Text, version string) {
	revision := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				revision = setting.Value
			}
		}
	}
	t.Metric("switchyard_build_info", "gauge", "Always 1; the labels are the version, revision and Go version.")
	t.Sample("switchyard_build_info", 1, "version", version, "revision", revision, "goversion", runtime.Version())
}

// WriteProcess writes the resources that the process uses. It omits those that only /proc shows if there is none.
func WriteProcess(t *Text) {
	samples := []gometrics.Sample{
		{Name: "/sched/goroutines:goroutines"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/gc/heap/goal:bytes"},
	}
	gometrics.Read(samples)
	value := func(i int) float64 { return float64(samples[i].Value.Uint64()) }
	t.Gauge("go_goroutines", "Goroutines that exist.", value(0))
	t.Gauge("go_memstats_heap_alloc_bytes", "Bytes of heap objects, including dead ones not yet collected.", value(1))
	t.Gauge("go_memstats_heap_inuse_bytes", "Bytes of heap spans in use.", value(1)+value(2))
	t.Counter("go_gc_cycles_total", "Garbage collections since the start.", value(3))
	t.Counter("go_memstats_alloc_bytes_total", "Bytes of heap objects allocated since the start.", value(4))
	t.Gauge("go_memstats_next_gc_bytes", "Bytes of heap at which the next collection begins.", value(5))
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) == nil {
		seconds := time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
		t.Counter("process_cpu_seconds_total", "User and system CPU time since the start.", seconds)
	}
	t.Gauge("process_start_time_seconds", "Start time of the process in Unix seconds.", math.Round(float64(started.UnixMilli()))/1000)
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil {
		t.Gauge("process_max_fds", "Maximum number of open files and sockets.", float64(limit.Cur))
	}
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		t.Gauge("process_open_fds", "Number of open files and sockets.", float64(len(open)-1)) // without the directory itself
	}
	status, _ := os.ReadFile("/proc/self/status")
	for _, line := range []struct{ key, name, help string }{
		{"VmRSS:", "process_resident_memory_bytes", "Resident memory."},
		{"VmHWM:", "process_resident_memory_peak_bytes", "Peak resident memory."},
		{"VmSize:", "process_virtual_memory_bytes", "Virtual memory."},
	} {
		if kib, ok := statusNumber(status, line.key); ok {
			t.Gauge(line.name, line.help, kib*1024)
		}
	}
}

// statusNumber returns the number after a key in /proc/self/status.
func statusNumber(status []byte, key string) (float64, bool) {
	_, rest, found := bytes.Cut(status, []byte("\n"+key))
	fields := bytes.Fields(rest)
	if !found || len(fields) == 0 {
		return 0, false
	}
	n, err := strconv.ParseFloat(string(fields[0]), 64)
	return n, err == nil
}
