package views

import (
	"strconv"
	"strings"

	"switchyard/internal/domain"
)

// List is a page of the rows of a long list that match a filter.
type List struct {
	url    string // the address of the page that shows it
	rows   int    // per page
	Filter string
	Page   int // from 1
	Pages  int
	Found  int // rows that match
	All    int
}

// newList returns the page of a list, or the nearest one that exists, and which of the matching rows are on it.
func newList(url, filter string, page, rows, all, found int) (l List, from, to int) {
	l = List{url: url, rows: rows, Filter: filter, All: all, Found: found, Pages: max(1, (found+rows-1)/rows)}
	l.Page = min(max(1, page), l.Pages)
	from = (l.Page - 1) * rows
	return l, from, min(from+rows, found)
}

// TitleWith names what was searched for in the title of a page.
func TitleWith(title, query string) string {
	if query = strings.TrimSpace(query); query == "" {
		return title
	}
	return title + " with " + domain.Cut(query, 40)
}

func (l List) address(page int) string {
	number := ""
	if page > 1 {
		number = strconv.Itoa(page)
	}
	return withQuery(l.url, "q", l.Filter, "page", number)
}

func (l List) Address() string { return l.address(l.Page) }

// The number of rows on a page: an agent's has several controls.
const projectRows, agentRows = 50, 20

// NewProjectList returns a page of the list, and the indices of its projects. pipelines must be ordered by name.
func NewProjectList(pipelines []domain.ProjectPipeline, filter string, page int) (List, []int) {
	wanted := strings.ToLower(strings.TrimSpace(filter))
	var found []int
	for i, p := range pipelines {
		if strings.Contains(strings.ToLower(p.Project), wanted) || strings.Contains(strings.ToLower(p.URL), wanted) {
			found = append(found, i)
		}
	}
	list, from, to := newList(ProjectsURL, filter, page, projectRows, len(pipelines), len(found))
	return list, found[from:to]
}

// NewAgentList returns a page of the list with its agents, in the same order: those with the filter in their label,
// project or state. Without a filter it is the page of the agent with the id at, if there is one.
func NewAgentList(agents []domain.KnownAgent, filter string, page int, at string) (List, []domain.KnownAgent) {
	wanted := strings.ToLower(strings.TrimSpace(filter))
	var found []domain.KnownAgent
	for _, a := range agents {
		if a.ID == at && wanted == "" {
			page = len(found)/agentRows + 1
		}
		_, state := agentState(a)
		if strings.Contains(strings.ToLower(a.Label+"\n"+a.Project+"\n"+state), wanted) {
			found = append(found, a)
		}
	}
	list, from, to := newList(AgentsURL, filter, page, agentRows, len(agents), len(found))
	return list, found[from:to]
}
