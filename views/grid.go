package views

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"switchyard/internal/domain"
)

// Show selects the projects of the grid.
type Show string

const (
	ShowAll      Show = "" // all
	ShowBusy     Show = "busy"
	ShowTroubled Show = "troubled"
)

// grid is the pipeline grid: every project's stages in common columns.
type grid struct {
	columns []string // names of stages, in their order
	compact bool     // there are so many rows that stories that are well are left out
	rows    []gridRow
	quiet   []gridRow // folded away: nothing in work, nothing wrong
	hidden  int       // rows that the filter leaves out
}

// compactFrom is the number of rows from which only stories in trouble are shown, the others counted.
const compactFrom = 24

type gridRow struct {
	domain.ProjectPipeline
	stuck  []string // ids of stories, sorted
	signal Signal
	word   string
	active bool
}

// gridCell is one stage of one project. Without a stage there is only the track.
type gridCell struct {
	stage *domain.Stage
	work  bool // its stories are shown, elsewhere they are counted
	ends  ends
}

// ends says where a project's track ends.
type ends string

const (
	endsNowhere ends = "" // it continues on both sides
	endsLeft    ends = "track-first"
	endsRight   ends = "track-last"
	endsBoth    ends = "track-first track-last"
	endsNone    ends = "track-none" // there is no track here
)

// foldFrom is the number of projects from which quiet ones are folded.
const foldFrom = 12

func newGrid(p OverviewProps) grid {
	g := grid{columns: columns(p.Pipelines)}
	g.rows = make([]gridRow, 0, len(p.Pipelines))
	wanted := strings.ToLower(strings.TrimSpace(p.Filter))
	for _, pipeline := range p.Pipelines {
		row := gridRow{ProjectPipeline: pipeline, stuck: p.Alerts.Stuck[pipeline.Project], active: pipeline.Project == p.Active}
		row.signal, row.word = projectState(pipeline, len(row.stuck))
		busy, troubled := inWork(pipeline) > 0, row.signal == SignalStop || row.signal == SignalCaution
		switch {
		case !strings.Contains(strings.ToLower(pipeline.Project), wanted),
			p.Show == ShowBusy && !busy, p.Show == ShowTroubled && !troubled:
			g.hidden++
		case !busy && !troubled && !row.active && wanted == "" && len(p.Pipelines) >= foldFrom:
			g.quiet = append(g.quiet, row)
		default:
			g.rows = append(g.rows, row)
		}
	}
	g.compact = len(g.rows) >= compactFrom
	return g
}

// columns is the union of all stages, ordered by number, then by name.
func columns(pipelines []domain.ProjectPipeline) []string {
	seen := map[string]bool{}
	var names []string
	for _, p := range pipelines {
		for _, stage := range p.Stages {
			if !seen[stage.Name] {
				seen[stage.Name] = true
				names = append(names, stage.Name)
			}
		}
	}
	number := func(name string) int {
		digits, _, _ := strings.Cut(name, "_")
		n, _ := strconv.Atoi(digits) // what has no number comes first
		return n
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(number(a), number(b)), cmp.Compare(a, b)) })
	return names
}

// cells are a project's stages in the columns of the grid.
func cells(p domain.ProjectPipeline, columns []string) []gridCell {
	row := make([]gridCell, len(columns))
	from, to := domain.WorkStages(p.Stages)
	first, last := len(columns), -1
	for i := range p.Stages {
		column := slices.Index(columns, p.Stages[i].Name)
		row[column].stage = &p.Stages[i]
		row[column].work = i >= from && i < to
		first, last = min(first, column), max(last, column)
	}
	for i := range row {
		switch {
		case i < first || i > last:
			row[i].ends = endsNone
		case i == first && i == last:
			row[i].ends = endsBoth
		case i == first:
			row[i].ends = endsLeft
		case i == last:
			row[i].ends = endsRight
		}
	}
	return row
}

// chips is how many stories a cell shows; the others are counted.
const chips = 3

// shown returns the stories that a cell shows, those in trouble first, and how many more there are.
func (c gridCell) shown(compact bool, stuck []string) (items []domain.Item, more int) {
	if !c.work {
		return nil, 0
	}
	for _, wanted := range []Signal{SignalStop, SignalCaution, SignalNone} {
		if wanted == SignalNone && compact {
			break
		}
		for _, item := range c.stage.Items {
			if signal, _ := storyState(item, stuck); signal == wanted {
				items = append(items, item)
			}
		}
	}
	items, rest := split(items, chips)
	return items, len(rest)
}
