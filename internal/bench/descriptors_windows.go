package main

import "math"

func descriptors() int { return math.MaxInt }
