package views

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/a-h/templ"

	"switchyard/internal/domain"
)

// WaitingShow is which of the stories in work are shown.
type WaitingShow string

const (
	WaitingAll    WaitingShow = ""
	WaitingOver   WaitingShow = "over"   // over their usual time
	WaitingNobody WaitingShow = "nobody" // nobody works on them
)

// WaitingFilter selects stories in work; an empty field selects all.
type WaitingFilter struct {
	Project, Stage string
	Show           WaitingShow
	All            bool // with long lists in full
}

func (f WaitingFilter) url() string {
	all := ""
	if f.All {
		all = "yes"
	}
	return withQuery(WaitingURL, "project", f.Project, "stage", f.Stage, "show", string(f.Show), "all", all)
}

// whole returns the address of the same lists in full.
func (f WaitingFilter) whole() templ.SafeURL {
	f.All = true
	return templ.SafeURL(f.url())
}

// WaitingProps are the data of the page Waiting longest.
type WaitingProps struct {
	Filter WaitingFilter
	Names  []string // of projects
	Stages []string // the titles of their stages of work
	Chat   Chat
	Now    time.Time

	acknowledged     map[string]bool // by the key of the alert
	over, within     []waitingLine   // the longest first
	inWork, overAll  int             // of all stories that the project and stage select
	nobody           int
	moreOver, moreIn int
}

type waitingLine struct {
	domain.WaitingStory
	agent string // the one working on it, "" for none
}

// waitingLines is how many stories each list of the page shows at most, firstLines how many at first.
const waitingLines, firstLines = 100, 20

// Use fills in the stories, in the order of the page, and the keys of acknowledged alerts.
func (p *WaitingProps) Use(stories []domain.WaitingStory, owners *domain.Owners, acknowledged map[string]bool) {
	p.acknowledged = acknowledged
	most := firstLines
	if p.Filter.All {
		most = waitingLines
	}
	for _, s := range stories {
		title := s.Stage.Title()
		if !slices.Contains(p.Stages, title) && len(p.Stages) < maxOptions {
			p.Stages = append(p.Stages, title)
		}
		if p.Filter.Project != "" && s.Project != p.Filter.Project || p.Filter.Stage != "" && title != p.Filter.Stage {
			continue
		}
		line := waitingLine{s, owners.Of(s.Project, s.Item.StoryID).Name}
		isOver := s.Age > s.Limit
		p.inWork++
		if isOver {
			p.overAll++
		}
		if line.agent == "" {
			p.nobody++
		}
		if p.Filter.Show == WaitingOver && !isOver || p.Filter.Show == WaitingNobody && line.agent != "" {
			continue
		}
		list, more := &p.within, &p.moreIn
		if isOver {
			list, more = &p.over, &p.moreOver
		}
		if len(*list) < most {
			*list = append(*list, line)
		} else {
			*more++
		}
	}
}

// alert is the key of the story's alert, "" for none.
func (l waitingLine) alert() string {
	kind, _ := l.Item.Trouble()
	if l.isStuck() {
		kind = domain.AlertStuck
	}
	if kind == "" {
		return ""
	}
	return domain.Alert{Kind: kind, Project: l.Project, Story: l.Item}.Key()
}

// isStuck reports whether nothing but its age is wrong with the story.
func (l waitingLine) isStuck() bool {
	kind, _ := l.Item.Trouble()
	return kind == "" && l.Age > l.Limit
}

func (l waitingLine) choice() string {
	return cmp.Or(number(l.Item.StoryID, l.Item.StoryName), domain.Cut(l.Item.StoryName, 60))
}

func (l waitingLine) times() string {
	if n := l.Times(); n < 0.1 {
		return "< 0.1 ×"
	} else if n < 9.95 {
		return fmt.Sprintf("%.1f ×", n)
	}
	return thousands(int(math.Round(l.Times()))) + " ×"
}

// usualAt is where the usual time is on the scale, in percent.
const usualAt = 30.0

// at is a story's position on a scale that all share: linear up to the usual time, then logarithmic up to 64 times.
func (l waitingLine) at() float64 {
	n := l.Times()
	if n <= 1 {
		return usualAt * n
	}
	return usualAt + (100-usualAt-4)*min(1, math.Log2(n)/6)
}

func (l waitingLine) signal() Signal {
	if signal, _ := storyState(*l.Item, domain.Overdue{}); signal != SignalNone || l.Age <= l.Limit {
		return signal
	}
	return SignalCaution
}
