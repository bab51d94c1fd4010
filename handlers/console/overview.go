package console

import (
	"context"
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
		return keepShow(w, r, choice[0], filter)
	}
	s := c.service.Overview.Snapshot(r.Context())
	latest, err := c.service.Events.Latest(r.Context(), "", latestEvents)
	if err != nil {
		return err
	}
	p := views.OverviewProps{
		Active: s.Registry.Active, Order: trackOrder(s), Alerts: s.Alerts, InlineActions: c.inlineActions(r, s.Alerts),
		Events:   c.service.Events.Past(latest, nil),
		Together: s.Together, Agents: s.Agents, Owners: s.Owners, Sessions: s.Sessions,
		FirstSteps: c.firstSteps(s), Filter: filter, Show: show(r),
		Needs: views.NeedsOf(r.URL.Query().Get("needs")), Now: now(),
	}
	p.Page, _ = strconv.Atoi(r.URL.Query().Get("page")) // 0 if it is not a number: the first page
	return c.render(w, r, view{
		frame: views.Frame{
			Title: p.Title(), Page: views.PageOverview, Sheet: "overview.css",
			Scripts: []string{"questions.js", "grid.js", "inbox.js"},
		},
		page: views.Overview(),
		part: views.OverviewPart(p),
	})
}

// trackOrder returns the order of the projects' tracks, which all readers of a snapshot share.
func trackOrder(s *service.Snapshot) *views.TrackOrder {
	order := s.Shared(func() any { return views.NewTrackOrder(s.Pipelines, s.Alerts, s.Charts) })
	return order.(*views.TrackOrder)
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
	return views.ShowOf(asked)
}

func keepShow(w http.ResponseWriter, r *http.Request, name, filter string) error {
	choice := views.ShowOf(name)
	if choice == views.ShowAll && name != string(views.KeepAll) {
		return domain.Errorf(domain.Invalid, "keep: must be all, busy or troubled")
	}
	setCookie(w, showCookie, string(choice), aYear)
	return seeOther(w, r, views.OverviewOf(filter, choice))
}

// Sample is the sample of a first run. The overview explains it while there is nothing else.
type Sample struct {
	Projects []string // their names, nil for no sample
	Dir      string   // the directory of the first project's stages
	Story    string   // the story whose file the reader is invited to move
	From     string   // the stage that it is in at first
	To       string
	// Remove removes the sample for good.
	Remove func(context.Context) error
}

// has reports whether a project is the sample's.
func (s *Sample) has(p domain.ProjectPipeline) bool { return slices.Contains(s.Projects, p.Project) }

// RemoveSample removes the projects of the sample, its agents, files and history.
func (c *Console) RemoveSample(w http.ResponseWriter, r *http.Request) error {
	if c.sample.Remove == nil {
		return domain.Errorf(domain.NotFound, "there is no sample")
	}
	if err := c.sample.Remove(r.Context()); err != nil {
		return err
	}
	return c.notices.redirect(w, r, views.OverviewURL, views.Notice{
		Text: "The sample is removed. switchyard up --sample brings it back.",
	})
}

func (c *Console) firstSteps(s *service.Snapshot) *views.FirstSteps {
	sample, shown := c.sample, -1
	for i, p := range s.Pipelines {
		if !sample.has(p) {
			return nil
		}
		if p.Project == filepath.Base(sample.Dir) {
			shown = i
		}
	}
	if shown < 0 {
		return nil
	}
	isIn := func(stage domain.Stage) bool {
		return stage.Name == sample.From &&
			slices.ContainsFunc(stage.Items, func(i domain.Item) bool { return i.StoryID == sample.Story })
	}
	return &views.FirstSteps{
		Project: s.Pipelines[shown].Project,
		File:    filepath.Join(sample.Dir, sample.From, sample.Story+".md"),
		To:      filepath.Join(sample.Dir, sample.To),
		Moved:   !slices.ContainsFunc(s.Pipelines[shown].Stages, isIn),
	}
}
