package views

import (
	"net/url"
	"strconv"
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
	AcknowledgeURL  = "/attention/acknowledge"
	ReopenURL       = "/attention/reopen"
)

// AllStuck stands for all stuck stories in the place of an alert's key. When they are to be reopened, the time at which they were
// acknowledged follows, in Unix milliseconds.
const AllStuck = "stuck@"

// For how long an alert is acknowledged; "" is until it changes.
const (
	ForFourHours = "4h"
	ForToday     = "today"
)

// OverviewOf is the overview of the projects whose names hold a text, of those that are shown.
func OverviewOf(filter string, show Show) string {
	return withQuery(OverviewURL, "q", filter, "show", string(show))
}

// keepURL is where the reader's choice of projects is kept; it leads to their overview.
func keepURL(filter string, show Show) string {
	return withQuery(OverviewURL, "q", filter, "keep", string(show))
}

// ProjectURL is the page of a project, and where its settings are sent. A name may hold any character but controls.
func ProjectURL(name string) string { return ProjectsURL + "/" + url.PathEscape(name) }

// StoryURL is the page of a story, and where changes of it are sent. An id may hold any character.
func StoryURL(project, storyID string) string {
	return NewStoryURL(project) + "/" + url.PathEscape(storyID)
}

// NewStoryURL is where the form that adds a story is sent.
func NewStoryURL(project string) string { return ProjectURL(project) + "/stories" }

// AgentURL is the position of an agent on the page of agents that lists it.
func AgentURL(id string) string {
	return withQuery(AgentsURL, "at", id) + "#" + elementID("agent", id)
}

// RemoveProjectURL is where the form that removes a project is sent.
func RemoveProjectURL(name string) string { return ProjectURL(name) + "/remove" }

// CheckAddressURL is where a form asks what answers at an address.
const CheckAddressURL = "/check-address"

// RestoreProjectURL is where the form that undoes a removal is sent.
const RestoreProjectURL = "/restore-project"

// Addresses of the forms that belong to an agent.
func AssignAgentURL(id string) string { return AgentsURL + "/" + url.PathEscape(id) + "/assign" }
func LabelAgentURL(id string) string  { return AgentsURL + "/" + url.PathEscape(id) + "/label" }
func RemoveAgentURL(id string) string { return AgentsURL + "/" + url.PathEscape(id) + "/remove" }

// TokenURL is where the page says what became of a join token. A hash is hexadecimal.
func TokenURL(hash string) string { return AgentsURL + "/tokens/" + url.PathEscape(hash) }

// RevokeTokenURL is where the form that revokes a join token is sent.
func RevokeTokenURL(hash string) string { return TokenURL(hash) + "/revoke" }

// withQuery appends the parameters that are not empty, in the given order: key, value, key, value, …
func withQuery(path string, pairs ...string) string {
	separator := "?"
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			path += separator + pairs[i] + "=" + url.QueryEscape(pairs[i+1])
			separator = "&"
		}
	}
	return path
}

// id is an event's id as part of an address; 0 is none.
func id(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// elementID is the id of the element that shows the thing with this name. It stays the same wherever that element is on the
// page, and holds no space, whatever the name does.
func elementID(kind, name string) string { return kind + "-" + url.PathEscape(name) }

// within is an id for something inside the element with this id. No name can make it another element's: names have their
// commas escaped.
func within(id, what string) string { return id + "," + what }
