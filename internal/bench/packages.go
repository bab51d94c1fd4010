package main

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
)

// packageBenchmarks are the figures that benchmarks of packages measure, by the benchmark's name.
var packageBenchmarks = []struct {
	what, pkg, benchmark, goal string
	figure                     func(nsPerOp float64) string
	met                        func(nsPerOp float64) bool
}{
	{
		"redemption of a join token", "./internal/service", "Redemption", "≥ 5,000 a second",
		func(ns float64) string { return fmt.Sprintf("%.0f a second", 1e9/ns) }, func(ns float64) bool { return ns <= 2e5 },
	},
	{
		"1,000 agents written behind", "./internal/service", "WriteBehind", "≤ 5 ms",
		milliseconds, func(ns float64) bool { return ns <= 5e6 },
	},
	{
		"rescan of 10,000 unchanged items", "./internal/board", "Rescan10000", "≤ 50 ms",
		milliseconds, func(ns float64) bool { return ns <= 5e7 },
	},
}

func milliseconds(ns float64) string { return fmt.Sprintf("%.2f ms", ns/1e6) }

var benchmarkLine = regexp.MustCompile(`(?m)^Benchmark\S+\s+\d+\s+([\d.]+) ns/op`)

func measurePackages(string) ([]row, error) {
	var table []row
	for _, b := range packageBenchmarks {
		out, err := exec.Command("go", "test", "-run", "^$", "-bench", "^Benchmark"+b.benchmark+"$", "-count", "3", b.pkg).CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("%s: %w: %s", b.benchmark, err, out)
		}
		var figures []float64
		for _, match := range benchmarkLine.FindAllSubmatch(out, -1) {
			ns, err := strconv.ParseFloat(string(match[1]), 64)
			if err != nil {
				return nil, err
			}
			figures = append(figures, ns)
		}
		if len(figures) == 0 {
			return nil, fmt.Errorf("no benchmark %s in %s: %s", b.benchmark, b.pkg, out)
		}
		ns := median(figures)
		table = append(table, row{b.what, b.figure(ns), b.goal, b.met(ns)})
	}
	return table, nil
}
