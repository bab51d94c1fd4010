package main

import "math"

// descriptorLimit returns how many files and connections this process may have open: here memory is the limit.
func descriptorLimit() uint64 { return math.MaxUint64 }
