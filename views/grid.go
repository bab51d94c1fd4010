package views

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"
	"time"

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

// ShowOf returns the choice that an address names, ShowAll if it names none.
func ShowOf(asked string) Show {
	switch show := Show(asked); show {
	case ShowBusy, ShowTroubled:
		return show
	}
	return ShowAll
}

// grid is the pipeline grid: the tracks of projects, grouped by their stages.
type grid struct {
	groups     []*gridGroup
	quiet      int      // folded projects: nothing in work, nothing wrong
	quietNames []string // of the first maxQuiet of these
	hidden     int      // projects that do not match the filter
	// page of pages is shown; from and to are the numbers of its first and last track among all of them.
	page, pages, from, to, all int
	working                    int // stories in work in all projects
}

type gridGroup struct {
	id     string
	tracks []*track
}

// head returns the track whose stages are the group's heading; nil if it has no stages.
func (g *gridGroup) head() *track {
	if len(g.tracks[0].Stages) == 0 {
		return nil
	}
	return g.tracks[0]
}

const (
	// foldOver is the number of projects above which quiet ones are folded.
	foldOver = 30
	// maxTracks is the most tracks on a single page; if there are more, each page has pageTracks.
	maxTracks, pageTracks = 30, 24
	// maxQuiet is the most folded projects that are named.
	maxQuiet = 20
	// gridElements is about how many HTML elements the grid may have: the page may have 3,000, and 45 kB with its files.
	gridElements = 690
	// The cost of each item in the grid, in elements.
	trackCost, stationCost, wagonCost, groupCost = 13, 2, 6, 12
)

func newGrid(p OverviewProps) grid {
	order := p.Order
	if order == nil {
		order = NewTrackOrder(p.Pipelines, p.Alerts.Stuck)
	}
	g := grid{page: max(1, p.Page), working: order.working}
	page, room := g.cut(order, g.choose(order, p))
	var tracks []*track
	for _, i := range page {
		t := newTrack(&p.Pipelines[i], p.Alerts.Stuck[p.Pipelines[i].Project])
		t.active = t.Project == p.Active
		if int(i) < len(p.Charts) {
			t.days = p.Charts[i].Days
		}
		t.fill(p.Owners)
		tracks = append(tracks, t)
	}
	load(tracks, room)
	g.group(tracks)
	return g
}

// choose returns the indexes of the projects that have tracks, and counts the others.
func (g *grid) choose(order *TrackOrder, p OverviewProps) (shown []int32) {
	wanted := strings.ToLower(strings.TrimSpace(p.Filter))
	folds := wanted == "" && len(order.order) > foldOver
	for _, i := range order.order {
		t, name := &order.tracks[i], p.Pipelines[i].Project
		switch {
		case wanted != "" && !strings.Contains(strings.ToLower(name), wanted), !t.isShown(p.Show):
			g.hidden++
		case folds && t.working == 0 && !t.isTroubled() && name != p.Active:
			g.quiet++
			if len(g.quietNames) < maxQuiet {
				g.quietNames = append(g.quietNames, name)
			}
		default:
			shown = append(shown, i)
		}
	}
	return shown
}

// cut returns the tracks on the page, and how many stories it may have: those in trouble come first.
func (g *grid) cut(order *TrackOrder, shown []int32) (page []int32, room int) {
	g.all = len(shown)
	most := maxTracks
	if len(shown) > maxTracks {
		most = pageTracks
	}
	left := 0
	for at := 0; at < len(shown); {
		n, cost := order.pageLength(shown[at:min(at+most, len(shown))])
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
func (o *TrackOrder) pageLength(tracks []int32) (n, cost int) {
	seen := make([]uint64, 0, maxTracks) // stages
	for n < len(tracks) {
		t := &o.tracks[tracks[n]]
		stations := int(t.stations)
		c := trackCost + stationCost*stations
		if !slices.Contains(seen, t.stages) {
			seen = append(seen, t.stages)
			c += groupCost + stations
		}
		if n > 0 && cost+c > gridElements {
			break
		}
		n, cost = n+1, cost+c
	}
	return n, cost
}

// load leaves at most room stories on the tracks: the first of each station, starting with the first track, then the
// second of each, and so on. The others are only counted.
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

// group groups tracks by their stages, keeping their order; tracks without stages come last.
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

// TrackOrder is the order of all projects' tracks, with what it depends on.
type TrackOrder struct {
	pipelines []domain.ProjectPipeline
	tracks    []trackSummary // of pipelines, in their order
	order     []int32        // indexes of tracks, the worst trouble first
	working   int            // stories in work in all projects
}

type trackSummary struct {
	rank     int8
	stations int32
	working  int32
	stages   uint64 // a hash of the names of stages
	moved    time.Time
}

func NewTrackOrder(pipelines []domain.ProjectPipeline, stuck map[string][]string) *TrackOrder {
	o := &TrackOrder{
		pipelines: pipelines, tracks: make([]trackSummary, len(pipelines)),
		order: make([]int32, len(pipelines)),
	}
	for i := range pipelines {
		o.tracks[i], o.order[i] = summarizeTrack(&pipelines[i], stuck[pipelines[i].Project]), int32(i)
		o.working += int(o.tracks[i].working)
	}
	slices.SortFunc(o.order, o.byTrouble)
	return o
}

var stagesSeed = maphash.MakeSeed()

func summarizeTrack(p *domain.ProjectPipeline, stuck []string) trackSummary {
	t, sum := newTrack(p, stuck), p.Summary()
	rank := int8(2) // 0 if something has come to a halt, 1 for other trouble
	for _, at := range t.troubles {
		switch at.signal {
		case SignalStop:
			rank = 0
		case SignalCaution:
			rank = min(rank, 1)
		}
	}
	return trackSummary{rank, int32(t.to - t.from), int32(sum.Working), maphash.String(stagesSeed, t.stages()), sum.Moved}
}

func (t *trackSummary) isTroubled() bool { return t.rank < 2 }

func (t *trackSummary) isShown(show Show) bool {
	return (show != ShowBusy || t.working > 0) && (show != ShowTroubled || t.isTroubled())
}

// count returns how many projects are shown.
func (o *TrackOrder) count(show Show) (n int) {
	for i := range o.tracks {
		if o.tracks[i].isShown(show) {
			n++
		}
	}
	return n
}

// byTrouble orders tracks: the worst trouble first, then the last move, then the name.
func (o *TrackOrder) byTrouble(i, j int32) int {
	a, b := &o.tracks[i], &o.tracks[j]
	return cmp.Or(cmp.Compare(a.rank, b.rank), b.moved.Compare(a.moved),
		cmp.Compare(o.pipelines[i].Project, o.pipelines[j].Project))
}
