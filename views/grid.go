package views

import (
	"slices"
	"strings"
)

// Show selects the projects of the grid.
type Show string

const (
	ShowAll      Show = "" // all
	ShowBusy     Show = "busy"
	ShowTroubled Show = "troubled"
	// KeepAll stands for ShowAll in an address that keeps the reader's choice.
	KeepAll Show = "all"
)

// grid is the pipeline grid: the tracks of projects, those with the same stages below a common heading.
type grid struct {
	groups []*gridGroup
	quiet  []*track // folded away: nothing in work, nothing wrong
	hidden int      // tracks that the filter leaves out
	// page is the one that is shown, of pages; from and to are the places of its tracks among all of them.
	page, pages, from, to, all int
	working                    int // stories in work in all projects
}

type gridGroup struct {
	id     string
	tracks []*track
}

// head is the track whose stages are the group's heading; nil where they have none.
func (g *gridGroup) head() *track {
	if len(g.tracks[0].Stages) == 0 {
		return nil
	}
	return g.tracks[0]
}

const (
	// foldOver is the number of projects over which quiet ones are folded.
	foldOver = 30
	// maxTracks is how many tracks are on one page; where there are more, each page has pageTracks.
	maxTracks, pageTracks = 30, 24
	// maxQuiet is how many folded projects are named.
	maxQuiet = 20
	// gridElements is about how many elements of HTML the grid may have: the page may have 3,000, and 45 kB with its files.
	gridElements = 690
	// What things in the grid cost, in elements.
	trackCost, stationCost, wagonCost, groupCost = 13, 2, 6, 12
)

func newGrid(p OverviewProps) grid {
	g := grid{page: max(1, p.Page)}
	atWork := agentsAtWork(p.Agents)
	wanted := strings.ToLower(strings.TrimSpace(p.Filter))
	var shown []*track
	tracks := make([]track, len(p.Pipelines))
	for i := range p.Pipelines {
		pipeline, t := &p.Pipelines[i], &tracks[i]
		t.summarize(pipeline, p.Alerts.Stuck[pipeline.Project])
		t.active = pipeline.Project == p.Active
		if i < len(p.Charts) {
			t.days = p.Charts[i].Days
		}
		g.working += t.working
		switch {
		case wanted != "" && !strings.Contains(strings.ToLower(pipeline.Project), wanted),
			p.Show == ShowBusy && t.working == 0, p.Show == ShowTroubled && !t.troubled():
			g.hidden++
		case t.working == 0 && !t.troubled() && !t.active && wanted == "" && len(p.Pipelines) > foldOver:
			g.quiet = append(g.quiet, t)
		default:
			shown = append(shown, t)
		}
	}
	slices.SortFunc(shown, byTrouble)
	slices.SortFunc(g.quiet, byTrouble)
	page, room := g.cut(shown)
	for _, t := range page {
		t.fill(atWork[t.Project])
	}
	load(page, room)
	g.group(page)
	return g
}

// cut returns the tracks of the page, and how many stories it may hold: those in trouble are the first.
func (g *grid) cut(tracks []*track) (page []*track, room int) {
	g.all = len(tracks)
	most := maxTracks
	if len(tracks) > maxTracks {
		most = pageTracks
	}
	left := 0
	for at := 0; at < len(tracks); {
		n, cost := pageLength(tracks[at:min(at+most, len(tracks))])
		g.pages++
		if g.pages <= g.page {
			page, left, g.from, g.to = tracks[at:at+n], gridElements-cost, at+1, at+n
		}
		at += n
	}
	g.page = min(g.page, g.pages)
	return page, left / wagonCost
}

// load leaves at most room stories on the tracks: the first of each station, from the first track on, then the second of each,
// then the others. Those that are left out are counted.
func load(tracks []*track, room int) {
	shown := map[*station]int{}
	for n := range maxWagons {
		for _, t := range tracks {
			for i := range t.stations {
				if s := &t.stations[i]; len(s.wagons) > n && shown[s] == n && room > 0 {
					shown[s] = n + 1
					room--
				}
			}
		}
	}
	for _, t := range tracks {
		for i := range t.stations {
			t.stations[i].hide(shown[&t.stations[i]])
		}
	}
}

// pageLength is how many of these tracks fit on a page, and what they cost without their stories.
func pageLength(tracks []*track) (n, cost int) {
	seen := make([]*track, 0, 4) // one of each group
	for n < len(tracks) {
		t := tracks[n]
		stations := t.to - t.from
		c := trackCost + stationCost*stations
		if !slices.ContainsFunc(seen, t.hasStagesOf) {
			seen = append(seen, t)
			c += groupCost + stations
		}
		if n > 0 && cost+c > gridElements {
			break
		}
		n, cost = n+1, cost+c
	}
	return n, cost
}

// group puts tracks with the same stages together, in their order; those without any come last.
func (g *grid) group(tracks []*track) {
	byStages := map[string]*gridGroup{}
	var bare []*track
	for _, t := range tracks {
		if len(t.Stages) == 0 {
			bare = append(bare, t)
			continue
		}
		key := t.stages()
		group := byStages[key]
		if group == nil {
			group = &gridGroup{id: elementID("stages", key)}
			byStages[key], g.groups = group, append(g.groups, group)
		}
		group.tracks = append(group.tracks, t)
	}
	if len(bare) > 0 {
		g.groups = append(g.groups, &gridGroup{id: "stages-none", tracks: bare})
	}
}
