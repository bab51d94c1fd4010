package metrics

import (
	"slices"
	"strconv"
)

// bucketLimits are the upper bounds of a histogram's buckets, in seconds, from small responses to held ones.
var bucketLimits = [...]float64{0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30, 60}

// histogram counts durations in seconds.
type histogram struct {
	counts [len(bucketLimits) + 1]uint64 // not cumulative; the last one is above all limits
	sum    float64
}

func (h *histogram) add(value float64) {
	bucket, _ := slices.BinarySearch(bucketLimits[:], value)
	h.counts[bucket]++
	h.sum += value
}

func (h *histogram) write(t *Text, name string, labels ...string) {
	below := uint64(0)
	for i, count := range h.counts {
		limit := "+Inf"
		if i < len(bucketLimits) {
			limit = strconv.FormatFloat(bucketLimits[i], 'g', -1, 64)
		}
		below += count
		t.Sample(name+"_bucket", float64(below), append(labels, "le", limit)...)
	}
	t.Sample(name+"_sum", h.sum, labels...)
	t.Sample(name+"_count", float64(below), labels...)
}
