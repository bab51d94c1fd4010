// Package views is the console's HTML. A page and the part of it that refreshes itself are two components, and the page
// contains the part; both depend only on their props and on the reader's role. Rendering must do no I/O and know no
// service, and nothing is inline: no script, no style, no handler.
package views

import (
	"cmp"
	"context"
	"io"
	"slices"
	"time"

	"github.com/a-h/templ"

	"switchyard/internal/domain"
)

// Page names a page of Pages; "" is any other.
type Page string

const (
	PageOverview Page = "Overview"
	PageProjects Page = "Projects"
	PageAgents   Page = "Agents"
	PageEvents   Page = "Events"
	PageFlow     Page = "Flow"
	PageBot      Page = "Bot configuration"
	PageAccess   Page = "Access"
	PageNotify   Page = "Notifications"
	PageAudit    Page = "Audit"

	// These are not in the navigation or the menu.
	PageWaiting   Page = "Waiting longest"
	PageQuestions Page = "Questions"
)

// Theme is the reader's choice of a light or dark theme.
type Theme string

const (
	ThemeSystem Theme = "" // the system's
	ThemeLight  Theme = "light"
	ThemeDark   Theme = "dark"
)

// ThemeOf returns the theme of this name, ThemeSystem for an unknown one.
func ThemeOf(name string) Theme { return oneOf(Theme(name), ThemeLight, ThemeDark) }

// oneOf returns a choice, "" if it is not one of choices.
func oneOf[T ~string](choice T, choices ...T) T {
	if slices.Contains(choices, choice) {
		return choice
	}
	return ""
}

// Frame is the data of the layout around a page.
type Frame struct {
	Title    string // of the page; the product's name is added
	Page     Page
	Path     string // path and query of this page: forms in the header return to it
	Projects []domain.Project
	Active   string // "" for none
	// OpenAlerts is the number of alerts that have not been acknowledged.
	OpenAlerts int
	Worst      domain.Signal // the worst signal among them
	SignIn     domain.SignInStatus
	// SignInSetUp says that an identity provider is configured.
	SignInSetUp bool
	Theme       Theme
	Notice      Notice
	Scripts     []string // files of package static that only this page needs
	Sheet       string   // the style sheet of package static for this page and similar ones, "" for none
	Bare        bool     // without navigation: the reader has not logged in
	Asking      int      // how many questions are open
	Wall        bool     // for a wall display: without anything around the content
	Session     bool     // the reader can log out
	Version     string   // the program's
	Now         time.Time
	// AsOf is the time of the data that is shown, zero if it is current.
	AsOf time.Time
}

// Notice is the result of an action, shown once.
type Notice struct {
	Text   string // "" for none
	Signal Signal // SignalStop if it failed, SignalCaution if it is done but with a problem, "" for clear
	Undo   Undo
}

func (n Notice) signal() Signal { return cmp.Or(n.Signal, SignalClear) }

// Undo is a form that undoes an action.
type Undo struct {
	URL   string // "" for none
	Name  string // of its only field, "" for none
	Value string
	Label string // of its button, "" for Undo
}

// LiveEvery is how often a part refreshes itself.
const LiveEvery = "2s"

// enhanced returns the attributes of a plain form: with scripts, the page in the answer is morphed into this one, which
// keeps the focus and scroll position.
func enhanced() templ.Attributes {
	return templ.Attributes{
		"data-hx-boost":       "true",
		"data-hx-target":      "body",
		"data-hx-swap":        "morph:innerHTML",
		"data-hx-replace-url": "true",
	}
}

// htmxConfig keeps htmx within the content security policy and makes it show pages with an error status.
const htmxConfig = `{"allowEval":false,"allowScriptTags":false,"includeIndicatorStyles":false,` +
	`"disableInheritance":true,"historyCacheSize":0,"refreshOnHistoryMiss":true,` +
	`"scrollIntoViewOnBoost":false,"timeout":10000,` +
	`"responseHandling":[{"code":"204","swap":false},{"code":"[23]..","swap":true},` +
	`{"code":"[45]..","swap":true,"error":true}]}`

// iconFile returns the file of the tab's icon, whose dot has the colour and shape of the worst signal.
func iconFile(worst domain.Signal) string {
	if worst == domain.SignalStop || worst == domain.SignalCaution {
		return "icon-" + string(worst) + ".svg"
	}
	return "icon.svg"
}

func pageTitle(title string) string { return title + " · Switchyard" }

// Part is the part of a page that refreshes itself: an element around content that depends on Props alone.
type Part struct {
	ID, Class string
	URL       string // where it refreshes itself from, without a version; "" if it no longer changes
	Title     string // of the tab, "" for the page's title
	Request   string // options of htmx for its requests, as JSON; "" for the usual ones
	Content   templ.Component
}

// Around is a page with its part, which are its children.
func Around(page, part templ.Component) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		return page.Render(templ.WithChildren(ctx, part), w)
	})
}

// address returns the address that answers whether the part has changed since this version.
func (p Part) address(version string) string { return withQuery(p.URL, "v", version) }

// stageTitle is the name of a stage for people.
func stageTitle(ctx context.Context, project, stage string) string {
	return domain.StageWordsOf(ctx)(project, stage)
}

// may reports whether the reader has at least the given role. The reader is in the context, so that every component can
// leave out controls that the reader may not use.
func may(ctx context.Context, needs domain.Role) bool { return domain.ActorOf(ctx).Role.Allows(needs) }
