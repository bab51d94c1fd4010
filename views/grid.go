package views

import (
	"cmp"
	"slices"
	"strings"

	"switchyard/internal/domain"
)

// Show selects the projects of the grid.
type Show string

const (
	ShowAll      Show = "" // all
	ShowBusy     Show = "busy"
	ShowTroubled Show = "troubled"
	// KeepAll means ShowAll in the address that keeps the reader's choice.
	KeepAll Show = "all"
)

// ShowOf returns the choice that an address names, ShowAll for none.
func ShowOf(asked string) Show { return oneOf(Show(asked), ShowBusy, ShowTroubled) }

// grid is the pipeline grid: the tracks of projects, grouped by their stages.
type grid struct {
	groups     []*gridGroup
	quiet      int      // folded projects: nothing in work, nothing wrong
	quietNames []string // of the first maxQuiet of these
	hidden     int      // projects that do not match the filter
	// page of pages is shown; from and to are the numbers of its first and last track among all.
	page, pages, from, to, all int
	compact                    bool // one line for each project, with one story per station
	wordy                      bool // room for a second line in each wagon, on wide windows
}

type gridGroup struct {
	id     string
	tracks []*track
	alone  bool // its only project has its own words at the stations
	moving int  // projects without trouble from here on, where it is the first of these
}

// head returns the track whose stages are the group's heading; nil if it has no stages.
func (g *gridGroup) head() *track {
	if len(g.tracks[0].Stages) == 0 {
		return nil
	}
	return g.tracks[0]
}

const (
	// maxTracks is how many tracks fit on a single page; if there are more, each page has pageTracks.
	maxTracks, pageTracks = 30, 24
	// compactOver is the number of tracks on a page above which each has one line, and of projects above which quiet
	// ones are folded; wordyUpTo is the most tracks with second lines.
	compactOver, wordyUpTo = 12, 6
	// maxQuiet is how many folded projects are named.
	maxQuiet = 20
	// gridElements is about how many HTML elements the grid may have: the page may have 3,000, and 45 kB with its files.
	gridElements = 900
	// The cost of each item in the grid, in elements.
	trackCost, stationCost, wagonCost, groupCost = 13, 2, 6, 12
)

func newGrid(p OverviewProps) grid {
	g := grid{page: max(1, p.Page)}
	page, room := g.cut(g.choose(p))
	tracks := make([]*track, len(page))
	for i, t := range page {
		tracks[i] = t.filled(p.Owners, p.Alerts.Asking, p.Sessions, maxWagons)
		tracks[i].active = t.Project == p.Active
	}
	g.compact, g.wordy = len(page) > compactOver, len(page) <= wordyUpTo
	load(tracks, room, g.most())
	g.group(tracks)
	return g
}

// choose returns the projects that have tracks, and counts the others.
func (g *grid) choose(p OverviewProps) (shown []*track) {
	wanted := strings.ToLower(strings.TrimSpace(p.Filter))
	folds := wanted == "" && len(p.Order.tracks) > compactOver
	for _, t := range p.Order.tracks {
		switch {
		case wanted != "" && !strings.Contains(strings.ToLower(t.Project), wanted), !t.isShown(p.Show):
			g.hidden++
		case folds && t.sum.Working == 0 && !t.isTroubled() && t.Project != p.Active:
			g.quiet++
			if len(g.quietNames) < maxQuiet {
				g.quietNames = append(g.quietNames, t.Project)
			}
		default:
			shown = append(shown, t)
		}
	}
	return shown
}

// cut returns the tracks on the page, and how many stories it may have: those in trouble come first.
func (g *grid) cut(shown []*track) (page []*track, room int) {
	g.all = len(shown)
	most := maxTracks
	if len(shown) > maxTracks {
		most = pageTracks
	}
	left := 0
	for at := 0; at < len(shown); {
		n, cost := pageLength(shown[at:min(at+most, len(shown))])
		g.pages++
		if g.pages <= g.page {
			page, left, g.from, g.to = shown[at:at+n], gridElements-cost, at+1, at+n
		}
		at += n
	}
	g.page = min(g.page, g.pages)
	return page, left / wagonCost
}

// pageLength returns how many of these tracks fit on a page, and what they cost without their stories.
func pageLength(tracks []*track) (n, cost int) {
	seen := map[string]bool{} // stages
	for _, t := range tracks {
		stations := t.to - t.from
		c := trackCost + stationCost*stations
		if !seen[t.key] {
			seen[t.key] = true
			c += groupCost + stations
		}
		if n > 0 && cost+c > gridElements {
			break
		}
		n, cost = n+1, cost+c
	}
	return n, cost
}

// most is how many stories a station shows.
func (g *grid) most() int {
	if g.compact {
		return 1
	}
	return maxWagons
}

// load keeps at most room stories on the tracks, and most at a station: the first of each station, starting with the
// first track, then the second of each, and so on. The others are only counted.
func load(tracks []*track, room, most int) {
	shown := map[*station]int{}
	for n := range most {
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

// group groups tracks by their stages, keeping their order; tracks without stages come last.
func (g *grid) group(tracks []*track) {
	byStages := map[string]*gridGroup{}
	var bare []*track
	for _, t := range tracks {
		if len(t.Stages) == 0 {
			bare = append(bare, t)
			continue
		}
		group := byStages[t.key]
		if group == nil {
			group = &gridGroup{id: elementID("stages", t.key)}
			byStages[t.key], g.groups = group, append(g.groups, group)
		}
		group.tracks = append(group.tracks, t)
	}
	g.troubledFirst()
	if len(bare) > 0 {
		g.groups = append(g.groups, &gridGroup{id: "stages-none", tracks: bare})
	}
	for i, group := range g.groups {
		group.alone = i > 0 && len(group.tracks) == 1 && len(group.tracks[0].Stages) > 0
		group.tracks[0].alone = group.alone
	}
}

// troubledFirst moves tracks without trouble from several groups into their own groups behind all others.
func (g *grid) troubledFirst() {
	if !g.compact || len(g.groups) < 2 {
		return
	}
	var clear []*gridGroup
	moving := 0
	for _, group := range g.groups {
		if at := slices.IndexFunc(group.tracks, func(t *track) bool { return !t.isTroubled() }); at >= 0 {
			clear = append(clear, &gridGroup{id: within(group.id, "rest"), tracks: group.tracks[at:]})
			moving += len(group.tracks) - at
			group.tracks = group.tracks[:at]
		}
	}
	g.groups = slices.DeleteFunc(g.groups, func(group *gridGroup) bool { return len(group.tracks) == 0 })
	if len(clear) > 0 && len(g.groups) > 0 {
		clear[0].moving = moving
	}
	g.groups = append(g.groups, clear...)
}

// TrackOrder is the tracks of all projects without their stations, the worst trouble first.
type TrackOrder struct {
	tracks  []*track
	working int // stories in work in all projects
}

// NewTrackOrder makes the tracks of all projects. charts are in the order of the pipelines; they may be missing.
func NewTrackOrder(pipelines []domain.ProjectPipeline, alerts domain.Alerts, charts []domain.Charts) *TrackOrder {
	o := &TrackOrder{tracks: make([]*track, len(pipelines))}
	asking := map[string]map[domain.AlertKind]int{}
	for key, kind := range alerts.Asking {
		if asking[key.Project] == nil {
			asking[key.Project] = map[domain.AlertKind]int{}
		}
		asking[key.Project][kind]++
	}
	for i := range pipelines {
		t := newTrack(&pipelines[i], alerts.Overdue[pipelines[i].Project], asking[pipelines[i].Project])
		if t.at = i; i < len(charts) {
			t.days = charts[i].Days
		}
		o.tracks[i] = t
		o.working += t.sum.Working
	}
	slices.SortFunc(o.tracks, func(a, b *track) int { // then the last move, then the name
		return cmp.Or(a.worst().order()-b.worst().order(), b.sum.Moved.Compare(a.sum.Moved),
			cmp.Compare(a.Project, b.Project))
	})
	return o
}

// count returns how many projects are shown.
func (o *TrackOrder) count(show Show) int {
	return howMany(o.tracks, func(t *track) bool { return t.isShown(show) })
}

func (t *track) isTroubled() bool { return t.worst().order() < SignalNone.order() }

func (t *track) isShown(show Show) bool {
	return (show != ShowBusy || t.sum.Working > 0) && (show != ShowTroubled || t.isTroubled())
}
