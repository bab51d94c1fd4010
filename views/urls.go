package views

import (
	"net/url"
	"strconv"
	"strings"
)

// Addresses of the console's pages and of the forms on them.
const (
	OverviewURL  = "/"
	ProjectsURL  = "/projects"
	AgentsURL    = "/agents"
	EventsURL    = "/events"
	BotConfigURL = "/bot-config"
	AccessURL    = "/access"
	AuditURL     = "/audit"
	AuditCSVURL  = "/audit.csv"
	LoginURL     = "/login"
	LogoutURL    = "/logout"

	// Logging in through the OpenID Connect provider.
	LoginStartURL    = "/login/start"
	LoginCallbackURL = "/login/callback"

	SignInURL = "/oauth/authorize"
	// SignInByHandURL is for browsers that cannot reach the callback.
	SignInByHandURL = "/sign-in"
	SignInSetUpURL  = "/sign-in/setup"
	SignOutURL      = "/sign-out"
	SwitchURL       = "/switch"
	ThemeURL        = "/theme"
	SearchURL       = "/search"
	WaitingURL      = "/waiting"
	TellURL         = "/tell"
	FlowURL         = "/flow"
	QuestionsURL    = "/questions"
	WallURL         = "/wall" // see web.WallLink
	// NotificationsURL is the page, and the prefix of the addresses of its forms.
	NotificationsURL = "/notifications"
	// These make the console an app that messages can be pushed to.
	ManifestURL    = "/manifest.webmanifest"
	WorkerURL      = "/push-worker.js"
	AcknowledgeURL = "/attention/acknowledge"
	ReopenURL      = "/attention/reopen"
	// RemoveSampleURL is the address of the form that removes the sample.
	RemoveSampleURL = "/remove-sample"
)

// AllStuck is used instead of an alert's key for all stuck stories. To reopen them, it is followed by the time at which
// they were acknowledged, in Unix milliseconds.
const AllStuck = "stuck@"

// How long an alert is acknowledged; "" is until it changes.
const (
	ForFourHours = "4h"
	ForToday     = "today"
)

func OverviewOf(filter string, show Show) string {
	return withQuery(OverviewURL, "q", filter, "show", string(show))
}

// keepURL returns the address that keeps the reader's choice of projects and redirects to their overview.
func keepURL(filter string, show Show) string {
	return withQuery(OverviewURL, "q", filter, "keep", string(show))
}

// ProjectURL returns the address of a project's page, and of its settings form. A name may contain any character except
// controls.
func ProjectURL(name string) string { return ProjectsURL + "/" + url.PathEscape(name) }

// StoryURL returns the address of a story's page, and of its forms. An id may contain any character.
func StoryURL(project, storyID string) string {
	return NewStoryURL(project) + "/" + url.PathEscape(storyID)
}

// FlowStoryURL returns the short address that leads to a story of this number in the store.
func FlowStoryURL(number int64) string { return FlowURL + "/" + strconv.FormatInt(number, 10) }

func NewStoryURL(project string) string { return ProjectURL(project) + "/stories" }

func AgentURL(id string) string {
	return withQuery(AgentsURL, "at", id) + "#" + elementID("agent", id)
}

func RemoveProjectURL(name string) string { return ProjectURL(name) + "/remove" }

// CheckAddressURL is the address that says what answers at a project's address.
const CheckAddressURL = "/check-address"

const RestoreProjectURL = "/restore-project"

// Addresses of the forms that belong to an agent.
func AssignAgentURL(id string) string { return AgentsURL + "/" + url.PathEscape(id) + "/assign" }
func LabelAgentURL(id string) string  { return AgentsURL + "/" + url.PathEscape(id) + "/label" }
func RemoveAgentURL(id string) string { return AgentsURL + "/" + url.PathEscape(id) + "/remove" }

// TokenURL returns the address of the state of a join token. A hash is hexadecimal.
func TokenURL(hash string) string { return AgentsURL + "/tokens/" + url.PathEscape(hash) }

func RevokeTokenURL(hash string) string { return TokenURL(hash) + "/revoke" }

// LoginOf returns the address of a login that leads to next, which may be "".
func LoginOf(login, next string) string { return withQuery(login, "next", next) }

// withQuery appends the parameters that are not empty, in the given order: key, value, key, value, …
func withQuery(path string, pairs ...string) string {
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			path += separator + pairs[i] + "=" + url.QueryEscape(pairs[i+1])
			separator = "&"
		}
	}
	return path
}

func pageNumber(page int) string {
	if page <= 1 {
		return ""
	}
	return strconv.Itoa(page)
}

func id(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// elementID returns the id of the element for a thing with this name. It does not depend on the element's position, and
// contains no spaces, even if the name does.
func elementID(kind, name string) string { return kind + "-" + url.PathEscape(name) }

// within returns an id for something inside the element with this id. It cannot collide with that of another element,
// since commas in names are escaped.
func within(id, what string) string { return id + "," + what }
