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
	Events   []domain.Event // the latest, newest first
	Together domain.Charts
	Agents   []domain.Agent
	Owners   *domain.Owners
	Now      time.Time
}

const (
	// wallAlerts is how many alerts the wall shows; the others are counted.
	wallAlerts = 5
	// wallRows is the most projects on a page of the wall, wallPages the most pages, which turn by themselves.
	wallRows, wallPages = 12, 10
	// wallWagons is roughly how many stories a page names at each station; those without room are left out whole.
	wallWagons = 24
)

func (p WallProps) Title() string { return numbered(p.Alerts.Rows, "Wall") }

// open returns the alerts that the wall shows: those that nobody has acknowledged, the stuck stories as one.
func (p WallProps) open() (shown []domain.Alert, more, stuck int) {
	for _, a := range p.Alerts.Items[:min(p.Alerts.Open, len(p.Alerts.Items))] {
		if a.Kind != domain.AlertStuck && !a.Asked && len(shown) < wallAlerts {
			shown = append(shown, a)
		}
	}
	stuck = p.Alerts.ByKind[domain.AlertStuck]
	return shown, p.Alerts.Rows - stuck - len(shown), stuck
}

// pages returns the tracks, the worst trouble first, in pages of about the same length.
func (p WallProps) pages() [][]*track {
	shown, _ := split(p.Order.tracks, wallRows*wallPages)
	if len(shown) == 0 {
		return nil
	}
	pages := (len(shown) + wallRows - 1) / wallRows
	rows := (len(shown) + pages - 1) / pages
	tracks := domain.Map(shown, func(t *track) *track {
		return t.filled(p.Owners, p.Alerts.Asking, nil, max(2, wallWagons/rows))
	})
	return slices.Collect(slices.Chunk(tracks, rows))
}

// moves are the newest moves of stories.
func (p WallProps) moves() (list []domain.Event) {
	for _, e := range p.Events {
		if e.Type == domain.StageTransition {
			list = append(list, e)
		}
	}
	return list
}
