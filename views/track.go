package views

import (
	"slices"
	"strconv"
	"strings"

	"switchyard/internal/domain"
)

func stageWord(s *domain.Stage) string { return domain.Cut(s.Title(), 60) }

// station is a stage on a track.
type station struct {
	name   string
	title  string  // the board's word for it
	wagons []wagon // at most as many as it shows
	more   int     // how many others there are
	worst  Signal  // of those
}

// maxWagons is the most stories that a station of the grid shows; the others are counted.
const maxWagons = 3

// add inserts a story among those shown, at most most, in constant time.
func (s *station) add(w wagon, most int) {
	at := len(s.wagons)
	for at > 0 && w.order() < s.wagons[at-1].order() {
		at--
	}
	s.wagons = slices.Insert(s.wagons, at, w)
	s.hide(most)
}

// hide shows only the first n stories and counts the others.
func (s *station) hide(n int) {
	if len(s.wagons) > n {
		s.count(s.wagons[n].signal, len(s.wagons)-n)
		s.wagons = s.wagons[:n]
	}
}

// count counts stories that are not shown, the worst of which has a signal.
func (s *station) count(worst Signal, n int) {
	if s.worst == "" || worst.order() < s.worst.order() {
		s.worst = worst
	}
	s.more += n
}

// isFull reports whether a story of this rank or worse will not be shown.
func (s *station) isFull(rank, most int) bool {
	return most > 0 && len(s.wagons) == most && rank >= s.wagons[most-1].order()
}

// track is a project's stages of work, with the backlog before and the finished stories after them.
type track struct {
	*domain.ProjectPipeline
	at            int // its index among the projects by name
	sum           domain.PipelineSummary
	active        bool
	alone         bool          // no other project has its stages
	troubles      []trouble     // the worst first
	backlog, done *domain.Stage // nil if there is none
	from, to      int           // the range of stages that have stations
	key           string        // what stages returns
	stations      []station
	cut           int // how many more stages of work there are
	overdue       domain.Overdue
	days          []domain.DayCount
}

type trouble struct {
	signal Signal
	words  string
}

func (t trouble) isStuck() bool { return strings.HasSuffix(t.words, domain.AlertStuck.Word()) }

// maxStations is how many stages of work a track shows at most.
const maxStations = 24

func newTrack(p *domain.ProjectPipeline, overdue domain.Overdue, asking map[domain.AlertKind]int) *track {
	sum := p.Summary()
	t := &track{ProjectPipeline: p, sum: sum, overdue: overdue, troubles: troubles(p, overdue)}
	for _, kind := range []domain.AlertKind{domain.AlertWaiting, domain.AlertQuestion} {
		if n := asking[kind]; n > 0 {
			words := domain.Count(n, kind.Word(), strings.TrimSuffix(kind.Word(), "s"))
			t.troubles = slices.Insert(t.troubles, 0, trouble{SignalAsks, words})
		}
	}
	if sum.From > 0 {
		t.backlog = &p.Stages[sum.From-1]
	}
	if sum.To < len(p.Stages) {
		t.done = &p.Stages[sum.To]
	}
	t.cut = max(0, sum.To-sum.From-maxStations)
	t.from, t.to = sum.From, sum.To-t.cut
	t.key = t.stages()
	return t
}

func (t *track) worst() Signal {
	worst := SignalNone
	for _, one := range t.troubles {
		if one.signal.order() < worst.order() {
			worst = one.signal
		}
	}
	return worst
}

// filled returns a copy of the track with its stations, which show up to most stories. owners are who works on stories,
// asking the stories whose agents wait for a person, sessions the sessions working on them.
func (t track) filled(
	owners *domain.Owners, asking map[domain.StoryKey]domain.AlertKind, sessions map[domain.StoryKey][]domain.AgentSession,
	most int,
) *track {
	for _, stage := range t.Stages[t.from:t.to] {
		s := station{name: stage.Name, title: stageWord(&stage)}
		for _, item := range stage.Items {
			key := domain.StoryKey{Project: t.Project, ID: item.StoryID}
			kind, waits := asking[key]
			signal, _ := stateWord(item, t.overdue)
			if !waits && s.isFull(signal.order(), most) { // there may be 20,000
				s.count(signal, 1)
				continue
			}
			_, state := storyState(item, t.overdue)
			owner := owners.Of(t.Project, item.StoryID)
			says, _ := lastLine(owner.Output)
			w := wagon{Item: item, signal: signal, state: state, agent: owner.Name, says: domain.Cut(says, 200)}
			w.overdue = t.overdue.Of(item.StoryID)
			if waits {
				w.asks, w.signal = kind.Word(), SignalAsks
			} else if list := sessions[key]; len(list) > 0 {
				w.session = &list[0]
			}
			s.add(w, most)
		}
		t.stations = append(t.stations, s)
	}
	return &t
}

func (t *track) counts() string {
	var list []string
	add := func(stage string, n int) { list = append(list, stage+": "+thousands(n)) }
	if t.backlog != nil {
		add(stageWord(t.backlog), len(t.backlog.Items))
	}
	for _, s := range t.stations {
		add(s.title, len(s.wagons)+s.more)
	}
	if t.done != nil {
		add(stageWord(t.done), len(t.done.Items))
	}
	return strings.Join(list, ", ")
}

// troubles returns what is wrong with a project, worst first; without any trouble, that it is clear.
func troubles(p *domain.ProjectPipeline, overdue domain.Overdue) (list []trouble) {
	switch {
	case !p.Reachable && p.Error == domain.NoAnswerYet:
		return []trouble{{SignalNone, p.Error}}
	case !p.Reachable:
		return []trouble{{SignalStop, "unreachable"}}
	case p.EventsOnly:
		return []trouble{{SignalNone, "events only"}}
	}
	add := func(n int, signal Signal, one, many string) {
		if n > 0 {
			list = append(list, trouble{signal, domain.Count(n, one, many)})
		}
	}
	sum := p.Summary()
	add(sum.Blocked, SignalStop, "blocked", "blocked")
	add(sum.Failed, SignalCaution, "merge failed", "merges failed")
	add(overdue.Count(domain.AlertConflicts), SignalCaution, "conflict", "conflicts")
	notMerged := "not on " + domain.Cut(overdue.Base, 60)
	add(overdue.Count(domain.AlertUnmerged), SignalCaution, notMerged, notMerged)
	add(overdue.Count(domain.AlertStuck), SignalCaution, "stuck", "stuck")
	return list
}

// stages returns the names of the track's stages, and the board's words for them, which determine its heading.
func (t *track) stages() string {
	list := []*domain.Stage{t.backlog, t.done}
	for i := t.from; i < t.to; i++ {
		list = append(list, &t.Stages[i])
	}
	var b strings.Builder
	for _, s := range list {
		switch {
		case s == nil:
		case s.Label == "":
			b.WriteString(s.Name)
		default:
			b.WriteString(s.Name + " " + s.Label)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// initials returns the short form of a name on a wagon: "B1" for builder-1, "ML" for Mara Lind.
func initials(label string) string {
	runes := []rune(strings.ToUpper(label))
	if len(runes) == 0 {
		return ""
	}
	short := string(runes[0])
	if last := runes[len(runes)-1]; last >= '0' && last <= '9' && len(runes) > 1 {
		short += string(last)
	} else if words := strings.Fields(string(runes)); len(words) > 1 {
		short += domain.Truncate(words[len(words)-1], 1)
	}
	return short
}

// columns returns the number of cells between a project's name and its days; 1 if there is no heading.
func (t *track) columns() int {
	if t == nil {
		return 1
	}
	n := len(t.stations)
	for _, there := range []bool{t.backlog != nil, t.done != nil, t.cut > 0} {
		if there {
			n++
		}
	}
	return max(1, n)
}

func (t *track) why() string {
	switch {
	case t.EventsOnly:
		return "This project server has events only."
	case t.Error == domain.NoAnswerYet || t.Error == "":
		return ""
	}
	return WhyAway(t.Error)
}

// sparkPaths returns the columns of a sparkline of 84 by 22 pixels, for the past days and for today, and the sum. A day
// without any has no column, only its part of the base line, which the style sheet draws.
func sparkPaths(days []domain.DayCount) (past, today string, total int) {
	highest := 2 // one story a day should look like little
	for _, d := range days {
		highest = max(highest, d.Finished)
	}
	var b strings.Builder
	for i, d := range days {
		if d.Finished == 0 {
			continue
		}
		line := "M" + strconv.Itoa(6*i+2) + " 22V" + strconv.Itoa(22-max(2, 20*d.Finished/highest))
		if i == len(days)-1 {
			today = line
		} else {
			b.WriteString(line)
		}
	}
	return b.String(), today, finished(days)
}
