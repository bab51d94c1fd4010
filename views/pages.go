package views

import "switchyard/internal/domain"

// PageLink is a page that can be gone to from everywhere: the navigation, the menu, the list of keys and the palette
// all read Pages.
type PageLink struct {
	Page  Page
	URL   string
	Key   string // after g, "" for none
	In    PagePlace
	Needs domain.Role
}

// PagePlace is what of the frame links to a page.
type PagePlace string

const (
	InNavigation PagePlace = "navigation"
	InMenu       PagePlace = "menu"
	InHeader     PagePlace = "header" // only while somebody asks
	InPalette    PagePlace = "palette"
)

// Pages are the pages, in the order in which they are offered.
var Pages = []PageLink{
	{PageOverview, OverviewURL, "o", InNavigation, domain.RoleViewer},
	{PageProjects, ProjectsURL, "p", InNavigation, domain.RoleViewer},
	{PageAgents, AgentsURL, "a", InNavigation, domain.RoleViewer},
	{PageEvents, EventsURL, "e", InNavigation, domain.RoleViewer},
	{PageFlow, FlowURL, "f", InNavigation, domain.RoleViewer},
	{PageWaiting, WaitingURL, "", InPalette, domain.RoleViewer},
	{PageQuestions, QuestionsURL, "q", InHeader, domain.RoleViewer},
	{PageNotify, NotificationsURL, "n", InMenu, domain.RoleViewer},
	{PageBot, BotConfigURL, "b", InMenu, domain.RoleAdmin},
	{PageAccess, AccessURL, "", InMenu, domain.RoleAdmin},
	{PageAudit, AuditURL, "", InMenu, domain.RoleAdmin},
}
