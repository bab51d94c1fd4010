package main

import (
	"fmt"
	"strings"
)

// growth is a table of how figures grow with the size of something, each with its ratio to the previous step.
type growth struct {
	title string
	of    string // what increases at each step
	sizes []string
	names []string             // of figures, in the order in which they were added
	cells map[string][]float64 // by name, for each size
	units map[string]string
	goals map[string]string
}

func newGrowth(title, of string) *growth {
	return &growth{
		title: title, of: of, cells: map[string][]float64{}, units: map[string]string{},
		goals: map[string]string{},
	}
}

// step begins the next column.
func (g *growth) step(size int) { g.sizes = append(g.sizes, thousands(size)) }

// add adds a figure to the current column.
func (g *growth) add(name string, value float64, unit, goal string) {
	if _, known := g.cells[name]; !known {
		g.names = append(g.names, name)
	}
	for len(g.cells[name]) < len(g.sizes)-1 { // an earlier step may lack the figure
		g.cells[name] = append(g.cells[name], -1)
	}
	g.cells[name] = append(g.cells[name], value)
	g.units[name] = unit
	if goal != "" {
		g.goals[name] = goal
	}
}

// table returns the growth as Markdown. A ratio of 1.0 means that a figure does not grow.
func (g *growth) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n\n| %s | %s | goal at the last step |\n|---%s|---|\n", g.title, g.of,
		strings.Join(g.sizes, " | "), strings.Repeat("|---:", len(g.sizes)))
	for _, name := range g.names {
		fmt.Fprintf(&b, "| %s |", name)
		before := -1.0
		for _, value := range g.cells[name] {
			switch {
			case value < 0:
				b.WriteString(" |")
			case before > 0:
				fmt.Fprintf(&b, " %s (× %.1f) |", figure(value, g.units[name]), value/before)
			default:
				fmt.Fprintf(&b, " %s |", figure(value, g.units[name]))
			}
			before = value
		}
		b.WriteString(strings.Repeat(" |", len(g.sizes)-len(g.cells[name])))
		fmt.Fprintf(&b, " %s |\n", g.goals[name])
	}
	return b.String()
}

// figure returns a value with at least three digits.
func figure(value float64, unit string) string {
	switch {
	case value >= 100 || value == float64(int(value)):
		return fmt.Sprintf("%.0f %s", value, unit)
	case value >= 10:
		return fmt.Sprintf("%.1f %s", value, unit)
	}
	return fmt.Sprintf("%.2f %s", value, unit)
}

// thousands returns a number with commas.
func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
