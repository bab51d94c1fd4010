package views

import "switchyard/internal/domain"

// PageLink is a page that can be reached from everywhere: the navigation, the menu, the list of keys and the palette
// all read Pages.
type PageLink struct {
	Page  Page
	URL   string
	Key   string // after g, "" for none
	In    PagePlace
	Needs domain.Role
	Note  string // what it has, for those who do not know its name
}

// PagePlace is the part of the frame that links to a page.
type PagePlace string

const (
	InNavigation PagePlace = "navigation"
	InMenu       PagePlace = "menu"
	InHeader     PagePlace = "header" // only while somebody asks
	InPalette    PagePlace = "palette"
)

// Pages are the pages, in the order in which they are offered.
var Pages = []PageLink{
	{PageOverview, OverviewURL, "o", InNavigation, domain.RoleViewer, "what needs somebody, and all tracks"},
	{PageProjects, ProjectsURL, "p", InNavigation, domain.RoleViewer, "their boards, and adding one"},
	{PageAgents, AgentsURL, "a", InNavigation, domain.RoleViewer, "what they do, and adding one"},
	{PageEvents, EventsURL, "e", InNavigation, domain.RoleViewer, "what happened, newest first"},
	{PageFlow, FlowURL, "f", InNavigation, domain.RoleViewer, "how long stories take, and a forecast"},
	{PageWaiting, WaitingURL, "", InPalette, domain.RoleViewer, "stories by their time in this stage"},
	{PageQuestions, QuestionsURL, "q", InHeader, domain.RoleViewer, "what agents ask people"},
	{PageNotify, NotificationsURL, "n", InMenu, domain.RoleViewer, "who is told of what, and where"},
	{PageBot, BotConfigURL, "b", InMenu, domain.RoleAdmin, "its account in Matrix or Slack"},
	{PageAccess, AccessURL, "", InMenu, domain.RoleAdmin, "tokens, sessions and wall displays"},
	{PageAudit, AuditURL, "", InMenu, domain.RoleAdmin, "who changed what"},
}
