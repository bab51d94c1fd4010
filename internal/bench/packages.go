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
		"polled part of 50 projects after a change, compressed", "./handlers", "PartChanged", "≤ 0.3 ms",
		milliseconds, func(ns float64) bool { return ns <= 3e5 },
	},
	{
		"rescan of 10,000 unchanged items", "./internal/board", "Rescan10000", "≤ 50 ms",
		milliseconds, func(ns float64) bool { return ns <= 5e7 },
	},
}

func milliseconds(ns float64) string { return fmt.Sprintf("%.2f ms", ns/1e6) }

func measurePackages(string) ([]row, error) {
	var table []row
	for _, b := range packageBenchmarks {
		figures, err := runBenchmark(b.pkg, b.benchmark, 3)
		if err != nil {
			return nil, err
		}
		ns := median(figures[""])
		table = append(table, row{b.what, b.figure(ns), b.goal, b.met(ns)})
	}
	return table, nil
}

var benchmarkLine = regexp.MustCompile(`(?m)^Benchmark\w+?(?:/(\S+?))?(?:-\d+)?\s+\d+\s+([\d.]+) ns/op`)

// runBenchmark returns the ns/op of each run of a benchmark, by the name of the part of it, "" for one without parts.
func runBenchmark(pkg, name string, count int) (map[string][]float64, error) {
	out, err := exec.Command("go", "test", "-run", "^$", "-bench", "^Benchmark"+name+"$", "-count", strconv.Itoa(count), pkg).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", name, err, out)
	}
	figures := map[string][]float64{}
	for _, match := range benchmarkLine.FindAllSubmatch(out, -1) {
		ns, err := strconv.ParseFloat(string(match[2]), 64)
		if err != nil {
			return nil, err
		}
		figures[string(match[1])] = append(figures[string(match[1])], ns)
	}
	if len(figures) == 0 {
		return nil, fmt.Errorf("no benchmark %s in %s: %s", name, pkg, out)
	}
	return figures, nil
}
