package views

import (
	"slices"
	"strings"

	"github.com/a-h/templ"

	"switchyard/internal/domain"
)

// List is a page of the rows of a long list that match a filter.
type List struct {
	url    string // the address of the page that shows it
	rows   int    // per page
	order  string // what it is sorted by, "" for the usual order
	show   Show   // which projects or agents it lists
	Filter string
	Page   int // from 1
	Pages  int
	Found  int // rows that match
	All    int
}

// newList returns the page of a list, or the nearest one that exists, and the matching rows on it.
func newList[T any](url, filter string, page, rows, all int, found []T) (l List, on []T) {
	n := len(found)
	l = List{url: url, rows: rows, Filter: filter, All: all, Found: n, Pages: max(1, (n+rows-1)/rows)}
	l.Page = min(max(1, page), l.Pages)
	from := (l.Page - 1) * rows
	return l, found[from:min(from+rows, n)]
}

// filters returns the attributes of a form that filters what the part with this id shows, as the reader types. Its page
// is at url.
func filters(part, url string) templ.Attributes {
	return templ.Attributes{
		"data-hx-get": url, "data-hx-trigger": "submit, input delay:150ms", "data-hx-target": "#" + part,
		"data-hx-swap": "morph", "data-hx-sync": "#" + part + ":replace", "data-hx-replace-url": "true",
	}
}

// TitleWith adds what was searched for to the title of a page.
func TitleWith(title, query string) string {
	if query = strings.TrimSpace(query); query == "" {
		return title
	}
	return title + " with " + domain.Cut(query, 40)
}

func (l List) address(page int) string {
	return withQuery(l.url, "q", l.Filter, "show", string(l.show), "sort", l.order, "page", pageNumber(page))
}

func (l List) Address() string { return l.address(l.Page) }

// The number of rows on a page: an agent's has several controls.
const projectRows, agentRows = 30, 20

// What the list of projects can be sorted by; "" is by trouble.
const (
	sortByName     = "name"
	sortByWork     = "work"
	sortByMove     = "move"
	sortByFinished = "finished"
)

var projectOrders = map[string]func(a, b *track) int{
	sortByName:     func(a, b *track) int { return a.at - b.at },
	sortByWork:     func(a, b *track) int { return b.sum.Working - a.sum.Working },
	sortByMove:     func(a, b *track) int { return b.sum.Moved.Compare(a.sum.Moved) },
	sortByFinished: func(a, b *track) int { return finished(b.days) - finished(a.days) },
}

// NewProjectList returns a page of the list, and its rows: the worst trouble first, or in another order.
func NewProjectList(o *TrackOrder, filter string, show Show, sort string, page int) (List, []*track) {
	wanted := strings.ToLower(strings.TrimSpace(filter))
	var found []*track
	for _, t := range o.tracks {
		if t.isShown(show) && strings.Contains(strings.ToLower(t.Project+"\n"+t.URL), wanted) {
			found = append(found, t)
		}
	}
	if compare := projectOrders[sort]; compare != nil {
		slices.SortStableFunc(found, compare)
	} else {
		sort = ""
	}
	list, on := newList(ProjectsURL, filter, page, projectRows, len(o.tracks), found)
	list.order, list.show = sort, show
	return list, on
}

// Arrange chooses the agents on a page of the list, those that need somebody first: those with the filter in their
// label, project or state. Without a filter it is the page of the agent with the id at, if there is one. It adds
// people's own sessions, and counts both by need.
func (p *AgentsProps) Arrange(agents []domain.RegisteredAgent, filter, show string, page int, at string) {
	sessions := byAgent(p.Sessions)
	var all, found []agentRow
	for _, a := range agents {
		row := p.row(elementID("agent", a.ID), a, sessions[a.ID])
		p.counts.add(row, p.Reader)
		all = append(all, row)
	}
	slices.SortStableFunc(all, func(a, b agentRow) int { return a.rank() - b.rank() })
	chosen, wanted := oneOf(Show(show), showSent, showOwn, showMine), strings.ToLower(strings.TrimSpace(filter))
	for _, row := range all {
		a := row.agent
		if a.ID == at && wanted == "" {
			page = len(found)/agentRows + 1
		}
		_, state := agentState(a)
		isSent := chosen == ShowAll || chosen == showSent
		if isSent && strings.Contains(strings.ToLower(a.Label+"\n"+a.Project+"\n"+state), wanted) {
			found = append(found, row)
		}
	}
	p.List, p.rows = newList(AgentsURL, filter, page, agentRows, len(agents), found)
	p.List.show = chosen
	p.Agents = domain.Map(p.rows, func(r agentRow) domain.RegisteredAgent { return r.agent })
	p.addOwn()
}
