package domain

import (
	"cmp"
	"time"
)

// CostQuery selects what is told about costs.
type CostQuery struct {
	Projects []string // none for all calls, also those for no project; unknown ones are NotFound
	Days     int      // so many calendar days of Zone that end today
	Zone     *time.Location
	All      bool // list all stories, not only MaxCosts
}

// The limits of a CostQuery, what it has without a choice, and how long lists of a report are.
const (
	MinCostDays, MaxCostDays, CostDays = 1, 180, 30

	MaxCosts, MaxCostSessions, MaxFinishedCosts = 200, 50, 2000
)

// CostReport is what calls of models cost in a window, all lists the dearest first. The sums of the days, of all
// stories with those without one, and of all models each equal Total.
type CostReport struct {
	Total    CostSum
	Before   Micros      // what as many days before cost, 0 if that is not known; only of what pages show
	Days     []CostShare // named 2026-11-23, oldest first
	Stories  []CostShare
	More     int // stories beyond these
	Models   []CostShare
	Clients  []CostShare
	Agents   []CostShare
	Done     CostSum // of the stories that are finished
	Finished FinishedCost
	Budgets  Budgets
	Without  CostSum     // for no story
	Sessions []CostShare // of it
}

// CostShare is a part of the costs, with what it is about.
type CostShare struct {
	CostSum
	Name     string // the day, the story's, the model, the client or the sender
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

// Add adds another part, of the same.
func (s *CostShare) Add(other CostShare) {
	s.Plus(other.CostSum)
	s.Sessions += other.Sessions
	s.Last = Later(s.Last, other.Last)
	if s.Calls == other.Calls || other.First.Before(s.First) {
		s.First = other.First
	}
}

// DearestShare compares parts, the dearest first, and those that cost the same by their tokens.
func DearestShare(a, b *CostShare) int {
	if a.USD != b.USD { // which most do
		return cmp.Compare(b.USD, a.USD)
	}
	return cmp.Or(cmp.Compare(b.Tokens.Sum(), a.Tokens.Sum()), cmp.Compare(b.Calls, a.Calls),
		cmp.Compare(a.Project, b.Project), cmp.Compare(a.StoryID, b.StoryID), cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.Session, b.Session))
}

// CostsToday is what all calls of a day cost, and by agent. Usual is what half of the days before cost, or less, 0 if
// that is not known.
type CostsToday struct {
	CostSum
	Usual  Micros
	Agents map[string]CostSum
}

// FinishedCost is what the stories cost in all that were finished in a window and have a call.
type FinishedCost struct {
	Count   int
	Stories []CostShare // the last MaxFinishedCosts, the last one first
	At      *[4]int     // percentiles, in Micros, as in FlowReport; nil under flow.Enough stories
	Mean    Micros
}
