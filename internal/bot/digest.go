package bot

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"switchyard/internal/domain"
)

// The most that a digest shows. The rest is only counted.
const (
	maxDigestProjects = 20
	maxDigestTroubles = 15 // over all projects
)

// digest summarizes any number of events, in bounded memory, in one message.
type digest struct {
	links links
	words domain.StageWords
	// acknowledged holds the keys of acknowledged alerts: their troubles are only counted.
	acknowledged map[string]bool

	events   int64
	troubles int64
	shown    []Line // the first troubles, in the order of the stream
	projects map[string]*projectDigest
}

type projectDigest struct {
	name    string
	events  int64
	moves   map[string]int // by the title of the new stage
	counts  domain.Counts  // of the other events
	trouble int64          // all of them
	missed  int64
}

// otherCount is the key of the events whose kind has no word.
const otherCount = "other"

func (g *digest) add(e domain.Event) {
	p := g.projects[e.Project]
	if p == nil {
		p = &projectDigest{name: e.Project, moves: map[string]int{}, counts: domain.Counts{}}
		g.projects[e.Project] = p
	}
	g.events++
	p.events++
	switch kind := e.Type.Kind(); {
	case e.Type == domain.StageTransition:
		// Stages are few; a server that makes up names must not use more memory.
		title := stageTitle(g.words(e.Project, e.Details().ToStage))
		if _, known := p.moves[title]; known || len(p.moves) < 10 {
			p.moves[title]++
		} else {
			p.counts[otherCount]++
		}
	case e.Type == domain.FeedGap:
		p.missed += e.Details().Missed
	case kind.Choice != "":
		p.counts[string(e.Type)]++
		if kind.Alert != "" {
			p.trouble++
			g.addTrouble(kind.Alert, e)
		}
	default:
		p.counts[otherCount]++
	}
}

func (g *digest) addTrouble(kind domain.AlertKind, e domain.Event) {
	if g.acknowledged[storyAlert(kind, e.Project, e.Details().StoryID)] {
		return
	}
	g.troubles++
	if len(g.shown) < maxDigestTroubles {
		g.shown = append(g.shown, g.links.describe(e, g.words))
	}
}

// message lists the troubles that nobody has acknowledged first, then each project in one line.
func (g *digest) message() Message {
	projects := slices.SortedFunc(maps.Values(g.projects), func(a, b *projectDigest) int {
		return cmp.Or(cmp.Compare(b.trouble, a.trouble), cmp.Compare(a.name, b.name))
	})
	in := domain.Count(len(projects), "project", "projects")
	m := plainf("%s in %s", Bold(domain.Count(g.events, "event", "events")), in)
	m = append(m, g.shown...)
	if hidden := g.troubles - int64(len(g.shown)); hidden > 0 {
		m = append(m, plainf("■ ▲ and %s more blocked stories or failed merges", Bold(strconv.FormatInt(hidden, 10)))...)
	}
	for i, p := range projects {
		if i == maxDigestProjects {
			var rest int64
			for _, p := range projects[i:] {
				rest += p.events
			}
			more := domain.Count(len(projects)-i, "project", "projects")
			m = append(m, plainf("and %s in %s more", domain.Count(rest, "event", "events"), more)...)
			break
		}
		m = append(m, p.line())
	}
	return m.clip()
}

func (p *projectDigest) line() Line {
	var parts []string
	for _, title := range slices.SortedFunc(maps.Keys(p.moves), func(a, b string) int {
		return cmp.Or(cmp.Compare(p.moves[b], p.moves[a]), cmp.Compare(a, b))
	}) {
		parts = append(parts, domain.Thousands(p.moves[title])+" → "+title)
	}
	if len(p.counts) > 0 {
		parts = append(parts, p.counts.Describe())
	}
	if p.missed > 0 {
		parts = append(parts, domain.Thousands(p.missed)+" dropped unread")
	}
	return Line{Bold(p.name), Plain(": " + strings.Join(parts, ", "))}
}
