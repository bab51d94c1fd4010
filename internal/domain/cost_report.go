package domain

import (
	"cmp"
	"time"
)

// CostQuery selects costs for a report.
type CostQuery struct {
	Projects []string // none for all calls, including those for no project; unknown ones are NotFound
	Days     int      // that many calendar days of Zone, ending today
	Zone     *time.Location
	All      bool // list all stories, not only MaxCosts
}

// The limits of a CostQuery, its defaults, and how long lists of a report are.
const (
	MinCostDays, MaxCostDays, CostDays = 1, 180, 30

	MaxCosts, MaxCostSessions, MaxFinishedCosts = 200, 50, 2000
)

// CostReport is what model calls cost in a window, with all lists ordered dearest first. The sums of the days, of all
// stories plus those without one, and of all models each equal Total.
type CostReport struct {
	Total    CostSum
	Before   Micros      // what as many days before cost, 0 if unknown; set only for pages
	Days     []CostShare // named 2026-11-23, oldest first
	Stories  []CostShare
	More     int // stories beyond these
	Models   []CostShare
	Clients  []CostShare
	Agents   []CostShare
	Done     CostSum // of the finished stories
	Finished FinishedCost
	Budgets  Budgets
	Without  CostSum     // for no story
	Sessions []CostShare // those of Without
}

// CostShare is a share of the costs, with what it is about.
type CostShare struct {
	CostSum
	Name     string // the day, the story, the model, the client or the sender
	Project  string // of a story and a session
	StoryID  string
	AgentID  string // of a sender, "" unless it is an agent's command
	Client   string // of a session, like the next two
	Session  string
	First    time.Time // of a model in a story, and in all of the story
	Last     time.Time
	Finished time.Time // of a story, zero if it is not
	Sessions int       // of a story
}

// Key is the story that the part is about.
func (s CostShare) Key() StoryKey { return StoryKey{s.Project, s.StoryID} }

// Add adds another share of the same.
func (s *CostShare) Add(other CostShare) {
	s.Plus(other.CostSum)
	s.Sessions += other.Sessions
	s.Last = Later(s.Last, other.Last)
	if s.Calls == other.Calls || other.First.Before(s.First) {
		s.First = other.First
	}
}

// DearestShare compares shares, the dearest first, then by tokens.
func DearestShare(a, b *CostShare) int {
	if a.USD != b.USD { // the usual case
		return cmp.Compare(b.USD, a.USD)
	}
	return cmp.Or(cmp.Compare(b.Tokens.Sum(), a.Tokens.Sum()), cmp.Compare(b.Calls, a.Calls),
		cmp.Compare(a.Project, b.Project), cmp.Compare(a.StoryID, b.StoryID), cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.Session, b.Session))
}

// CostsToday is what all calls of a day cost, in total and by agent. Usual is the median of the days before, 0 if
// unknown.
type CostsToday struct {
	CostSum
	Usual  Micros
	Agents map[string]CostSum
}

// FinishedCost is the total cost of the stories that were finished in a window and have a call.
type FinishedCost struct {
	Count   int
	Stories []CostShare // the last MaxFinishedCosts, latest first
	At      *[4]int     // percentiles, in Micros, as in FlowReport; nil with fewer than flow.Enough stories
	Mean    Micros
}
