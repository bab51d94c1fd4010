// Command bench measures the built binary as a whole, over sockets, and prints a table of figures beside their goals.
// Ratios are medians of adjacent runs against net/http alone that serves the same bytes: absolute figures drift on a
// shared machine, ratios do not.
//
//	go run ./internal/bench -binary bin/switchyard [-write docs/performance.md]
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// row is one line of the table.
type row struct {
	what, measured, goal string
	met                  bool
}

// workDir holds a run's files; it is removed at the end.
var workDir string

// limits are the largest sizes at which growth is measured.
type limits struct{ projects, events int }

func main() {
	binary := flag.String("binary", "bin/switchyard", "the program to measure")
	write := flag.String("write", "", "write the table into this file, between its two marks")
	only := flag.String("only", "", "measure only the sections whose name contains this")
	var most limits
	flag.IntVar(&most.projects, "projects", 10_000, "the most projects that are followed")
	flag.IntVar(&most.events, "events", 10_000_000, "the most events in a database")
	bare := flag.String("bare", "", "measure nothing, but be the server by net/http alone of the files in this directory")
	listen := flag.String("listen", "", "where that server listens")
	flag.Parse()
	if *bare != "" {
		fmt.Fprintln(os.Stderr, "bench:", serveBare(*listen, *bare))
		os.Exit(1)
	}
	if err := run(*binary, *write, *only, most); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(binary, write, only string, most limits) error {
	var err error
	if binary, err = filepath.Abs(binary); err != nil {
		return err
	}
	if workDir, err = os.MkdirTemp("", "switchyard-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(workDir)
	sections := []struct {
		name    string
		measure func(binary string) ([]row, error)
	}{
		{"feed", measureFeed},
		{"gateway", measureGateway},
		{"pipeline", measurePipeline},
		{"delivery", measureDelivery},
		{"footprint", measureFootprint},
		{"hooks", measureHooks},
		{"usage", measureUsage},
		{"several", measureGateways},
		{"packages", measurePackages},
	}
	var table strings.Builder
	fmt.Fprintf(&table, "| what | measured | goal | |\n|---|---|---|---|\n")
	for _, section := range sections {
		if !strings.Contains(section.name, only) {
			continue
		}
		fmt.Fprintln(os.Stderr, "measuring", section.name)
		rows, err := section.measure(binary)
		if err != nil {
			return fmt.Errorf("%s: %w", section.name, err)
		}
		for _, r := range rows {
			result := "missed"
			switch {
			case r.goal == "":
				result = ""
			case r.met:
				result = "met"
			}
			fmt.Fprintf(&table, "| %s | %s | %s | %s |\n", r.what, r.measured, r.goal, result)
		}
	}
	for _, section := range []struct {
		name string
		grow func() (*growth, error)
	}{
		{"projects", func() (*growth, error) { return growProjects(binary, most.projects) }},
		{"events", func() (*growth, error) { return growEvents(binary, most.events) }},
	} {
		if !strings.Contains(section.name, only) {
			continue
		}
		fmt.Fprintln(os.Stderr, "measuring growth of", section.name)
		g, err := section.grow()
		if err != nil {
			return fmt.Errorf("%s: %w", section.name, err)
		}
		table.WriteString("\n" + g.table())
	}
	fmt.Print(table.String())
	if write == "" {
		return nil
	}
	return replaceTable(write, table.String())
}

// The table goes between these lines of the document.
const (
	tableBegin = "<!-- measured by make bench -->\n"
	tableEnd   = "<!-- end -->\n"
)

func replaceTable(path, table string) error {
	document, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(document), tableBegin)
	_, after, closed := strings.Cut(rest, tableEnd)
	if !found || !closed {
		return fmt.Errorf("%s lacks the lines that mark the table", path)
	}
	machine := fmt.Sprintf("%s, %d cores, %s/%s.\n\n", runtime.Version(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
	return os.WriteFile(path, []byte(before+tableBegin+machine+table+tableEnd+after), 0o644)
}
