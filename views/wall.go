package views

import (
	"slices"
	"time"

	"switchyard/internal/domain"
)

// WallProps are the data of the page for wall displays.
type WallProps struct {
	Order    *TrackOrder
	Alerts   domain.Alerts
	Together domain.Charts
	Agents   []domain.Agent
	Owners   *domain.Owners
	Now      time.Time
}

const (
	// wallAlerts is how many alerts the wall shows, the others are counted.
	wallAlerts = 5
	// wallRows is how many projects are on a page of the wall, wallPages the most pages, which turn by themselves.
	wallRows, wallPages = 6, 20
)

func (p WallProps) Title() string { return numbered(p.Alerts.Open, "Wall") }

// open returns the alerts that the wall shows: those that nobody has acknowledged, the stuck stories as one.
func (p WallProps) open() (shown []domain.Alert, more, stuck int) {
	for _, a := range p.Alerts.Items {
		switch {
		case a.Acknowledged != nil:
		case a.Kind == domain.AlertStuck:
		case len(shown) < wallAlerts:
			shown = append(shown, a)
		default:
			more++
		}
	}
	for _, s := range p.Alerts.OpenStuck {
		stuck += s.Count
	}
	return shown, more, stuck
}

// pages returns the tracks, the worst trouble first, in pages.
func (p WallProps) pages() [][]*track {
	shown, _ := split(p.Order.tracks, wallRows*wallPages)
	tracks := domain.Each(shown, func(t *track) *track { return t.filled(p.Owners) })
	return slices.Collect(slices.Chunk(tracks, wallRows))
}

// stageWords are the titles of the stages that the line shows.
func (t *track) stageWords() (words string) {
	if t.backlog != nil {
		words = t.backlog.Title()
	}
	for _, s := range t.stations {
		words += "\n" + s.title
	}
	return words
}

// loud are the stories of a station that are named: those in trouble, and those that somebody works on.
func (s station) loud() (list []wagon) {
	for _, w := range s.wagons {
		if w.signal == SignalStop || w.signal == SignalCaution && w.state != "Stuck" || w.agent != "" {
			list = append(list, w)
		}
	}
	return list[:min(2, len(list))]
}
