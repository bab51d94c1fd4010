package flow

import "math"

// Chance is the chance that items or more are finished within some days.
func Chance(sample []int, items, days int) float64 {
	sum, chance := newDaily(sample).over(days), 0.0
	for i, p := range sum.of {
		if sum.first+i >= items {
			chance += p
		}
	}
	return math.Min(1, chance)
}
