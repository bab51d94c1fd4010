package console

import (
	"net/http"
	"path/filepath"
	"slices"
	"strconv"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/views"
)

// latestEvents is the number of events on pages that are not about events.
const latestEvents = 12

func (c *Console) Overview(w http.ResponseWriter, r *http.Request) error {
	filter := r.URL.Query().Get("q")
	if err := domain.CheckFilter("q", filter); err != nil {
		return err
	}
	if choice, chosen := r.URL.Query()["keep"]; chosen {
		return keepShow(w, r, views.Show(choice[0]), filter)
	}
	s := c.service.Overview.Snapshot(r.Context())
	latest, err := c.service.Events.Latest(r.Context(), "", latestEvents)
	if err != nil {
		return err
	}
	p := views.OverviewProps{
		Active:    s.Registry.Active,
		Pipelines: s.Pipelines, Order: trackOrder(s),
		Alerts: s.Alerts,
		Events: latest,
		Charts: s.Charts, Together: s.Together, Agents: s.Agents, Owners: s.Owners,
		FirstSteps: c.firstSteps(s),
		Filter:     filter,
		Now:        now(),
	}
	p.Show = show(r)
	p.Page, _ = strconv.Atoi(r.URL.Query().Get("page")) // 0 for what is not a number: the first page
	return c.render(w, r, view{
		frame:      views.Frame{Title: p.Title(), Page: views.PageOverview},
		part:       views.OverviewPart(p),
		pageAround: views.Overview,
	})
}

// trackOrder returns the order of the projects' tracks, which all readers of a snapshot share.
func trackOrder(s *service.Snapshot) *views.TrackOrder {
	order, _ := s.Shared(func() any { return views.NewTrackOrder(s.Pipelines, s.Alerts.Stuck) }).(*views.TrackOrder)
	return order
}

// showCookie holds which projects the reader wants to see; without it, all are shown.
const showCookie = "switchyard_show"

// show returns which projects the address asks for, or else those that the reader has chosen. A part's address names
// the choice, so that everyone sees the same part there.
func show(r *http.Request) views.Show {
	asked := r.URL.Query().Get("show")
	if cookie, err := r.Cookie(showCookie); asked == "" && err == nil && !wantsPart(r) {
		asked = cookie.Value
	}
	switch show := views.Show(asked); show {
	case views.ShowBusy, views.ShowTroubled:
		return show
	}
	return views.ShowAll
}

func keepShow(w http.ResponseWriter, r *http.Request, choice views.Show, filter string) error {
	switch choice {
	case views.ShowBusy, views.ShowTroubled:
	case views.KeepAll:
		choice = views.ShowAll
	default:
		return domain.Errorf(domain.Invalid, "keep: must be all, busy or troubled")
	}
	setCookie(w, showCookie, string(choice), aYear)
	return seeOther(w, r, views.OverviewOf(filter, choice))
}

// Sample is the sample board of a first run. The overview explains it while it is the only project.
type Sample struct {
	Project string // its name, "" for no sample
	Dir     string // the directory of its stages
	Story   string // the story whose file the reader is invited to move
	From    string // the stage that it is in at first
	To      string
}

func (c *Console) firstSteps(s *service.Snapshot) *views.FirstSteps {
	sample := c.sample
	if len(s.Pipelines) != 1 || s.Pipelines[0].Project != sample.Project {
		return nil
	}
	isIn := func(stage domain.Stage) bool {
		return stage.Name == sample.From &&
			slices.ContainsFunc(stage.Items, func(i domain.Item) bool { return i.StoryID == sample.Story })
	}
	return &views.FirstSteps{
		Project: sample.Project,
		File:    filepath.Join(sample.Dir, sample.From, sample.Story+".md"),
		To:      filepath.Join(sample.Dir, sample.To),
		Moved:   !slices.ContainsFunc(s.Pipelines[0].Stages, isIn),
	}
}
