package views

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"

	"switchyard/internal/domain"
)

// ShowStories is which stories a board shows.
type ShowStories string

const (
	ShowEvery    ShowStories = "" // all
	ShowMine     ShowStories = "mine"
	ShowClaimed  ShowStories = "claimed"
	ShowInDanger ShowStories = "troubled"
	ShowBranches ShowStories = "branches" // with unmerged work
)

var storyChoices = []struct {
	show ShowStories
	word string
}{
	{ShowEvery, "All"},
	{ShowMine, "Mine"},
	{ShowClaimed, "Claimed"},
	{ShowInDanger, "Troubled"},
	{ShowBranches, "On branches"},
}

// StoryChoice returns the choice of this name, ShowEvery for an unknown one.
func StoryChoice(name string) ShowStories {
	return oneOf(ShowStories(name), ShowMine, ShowClaimed, ShowInDanger, ShowBranches)
}

// boardURL returns the address of the page with the same filter, a choice of stories and a stage unfolded.
func (p ProjectProps) boardURL(show ShowStories, open string) string {
	return withQuery(ProjectURL(p.Project.Name), "q", p.Filter, "show", string(show), "open", open)
}

// chosen returns the items that the reader wants to see.
func (p ProjectProps) chosen(items []domain.Item) []domain.Item {
	wanted := strings.ToLower(strings.TrimSpace(p.Filter))
	if p.Show == ShowEvery && wanted == "" {
		return items
	}
	return slices.DeleteFunc(slices.Clone(items), func(item domain.Item) bool {
		return !strings.Contains(strings.ToLower(item.StoryName+"\n"+item.StoryID), wanted) || !p.shows(item)
	})
}

// shows reports whether a story is among those that the reader has chosen.
func (p ProjectProps) shows(item domain.Item) bool {
	switch p.Show {
	case ShowMine, ShowClaimed:
		holder := p.Owners.Of(p.Project.Name, item.StoryID).Holder
		return holder != "" && (p.Show == ShowClaimed || holder == p.Reader)
	case ShowBranches:
		return onBranch(item) != ""
	case ShowInDanger:
		_, state := storyState(item, p.Overdue)
		return state != "" || p.asks(item.StoryID) != nil
	}
	return true
}

// onBranch returns the branch, or the work tree's directory, with unmerged work on a story, "" for none.
func onBranch(item domain.Item) string {
	w := item.Work
	if w == nil || w.Unmerged == nil && w.Uncommitted == 0 {
		return ""
	}
	return cmp.Or(w.Branch, path.Base(w.Worktree))
}

func shortBranch(branch, storyID string) string {
	if before, is := strings.CutSuffix(branch, "/"+storyID); is {
		return before + "/…"
	}
	return branch
}

// offers reports whether the board has stories for this choice.
func (p ProjectProps) offers(show ShowStories) bool {
	return show != ShowBranches || p.Show == show || slices.ContainsFunc(p.Pipeline.Stages, func(s domain.Stage) bool {
		return slices.ContainsFunc(s.Items, func(item domain.Item) bool { return onBranch(item) != "" })
	})
}

// countStories says how many stories the board has, and how many of them its columns show. Subtasks are counted
// separately: Task Master keeps them in their task, Backlog.md as stories with their task's id, a point and a number.
func (p ProjectProps) countStories(columns []boardColumn) string {
	all, shown, subtasks, cards := 0, 0, 0, 0
	for i, stage := range p.Pipeline.Stages {
		all += len(stage.Items)
		shown += len(columns[i].Items)
		for _, item := range stage.Items {
			switch {
			case p.Pipeline.Board.Layout == domain.LayoutTaskMaster && item.Criteria != nil:
				subtasks += item.Criteria.Total
			case p.Pipeline.Board.Layout == domain.LayoutBacklog && strings.Contains(item.StoryID, "."):
				cards++
			}
		}
	}
	switch subtasks += cards; {
	case shown < all:
		return thousands(shown) + " of " + domain.Count(all, "story", "stories")
	case subtasks > 0:
		return domain.Count(all-cards, "story", "stories") + " with " + domain.Count(subtasks, "subtask", "subtasks")
	}
	return domain.Count(all, "story", "stories")
}

// unknown says in one line what is missing that could be shown, "" for nothing.
func (p ProjectProps) unknown() string {
	var list []string
	if len(p.Agents) == 0 {
		list = append(list, "No agent works on it.")
	}
	if len(p.Events) == 0 {
		list = append(list, "No move has been seen yet.")
	}
	return strings.Join(list, " ")
}

type boardColumn struct {
	domain.Stage
	title     string
	fold      int  // how many stories are in sight
	aside     bool // only the board's own tool moves stories here, or they are finished
	narrow    bool // only a strip of it is shown
	unknown   bool // nobody has configured it
	finishing bool // stories are finished here
}

func (p ProjectProps) columns() []boardColumn {
	stages := p.Pipeline.Stages
	_, done := domain.WorkStages(stages)
	isFixed := func(s domain.Stage) bool { return s.Fixed != "" }
	allFixed := !slices.ContainsFunc(stages, func(s domain.Stage) bool { return !isFixed(s) })
	columns := make([]boardColumn, len(stages))
	for i, stage := range stages {
		c := boardColumn{Stage: stage, title: stageWord(&stage), fold: foldWork, finishing: i == done}
		c.Items = p.chosen(stage.Items)
		c.aside = i > done || isFixed(stage) && !allFixed
		c.narrow = c.aside && stage.Name != p.Open
		c.unknown = stage.Other
		switch {
		case c.aside:
			c.Items = newestFirst(c.Items)
		case i == done:
			c.Items, c.fold = newestFirst(c.Items), foldDone
		case len(c.Items) > foldPhone:
			c.Items = p.troubledFirst(c.Items)
		}
		columns[i] = c
	}
	return columns
}

// most is how many stories of a column the page has, all but the first ones folded.
func (p ProjectProps) most(c boardColumn, columns int) int {
	if p.Open == c.Name {
		return maxStories / columns
	}
	return min(maxStories/columns, c.fold+foldedStories)
}

// emptySince returns when the last story left a stage that is empty. It is zero if the latest events do not have it.
func (p ProjectProps) emptySince(c boardColumn) time.Time {
	if len(c.Items) > 0 || p.Filter != "" || p.Show != ShowEvery {
		return time.Time{}
	}
	for _, e := range p.Events {
		switch d := e.Details(); c.Name {
		case d.FromStage:
			return eventTime(e.Event)
		case d.ToStage:
			return time.Time{}
		}
	}
	return time.Time{}
}

const unknownStatus = "This status is not in the board's configuration."

// what says what a strip is, for those who cannot see it.
func (c boardColumn) what() string {
	words := domain.Count(len(c.Items), "story", "stories") + ", folded"
	switch {
	case c.unknown:
		words += "; this status is not in the board's configuration"
	case c.Fixed != "":
		words += "; " + c.Fixed
	}
	return words
}

// moves returns the attributes that say what moving a story here writes, or why people cannot move any to or from here.
func (c boardColumn) moves(layout string) templ.Attributes {
	says := templ.Attributes{"data-stage": c.Name}
	switch layout {
	case "", domain.LayoutStages:
		says["data-writes"] = "moves its file to " + c.Name
	case domain.LayoutBacklog:
		says["data-writes"] = "writes status: " + c.title
	case domain.LayoutBeads:
		says["data-writes"] = "by bd update"
	default:
		says["data-writes"] = "writes its status"
	}
	switch {
	case c.Fixed != "":
		delete(says, "data-writes")
		says["data-fixed"] = Sentence(c.Fixed)
	case c.Other:
		delete(says, "data-writes")
		says["data-other"] = unknownStatus
	}
	return says
}

var (
	tasksBox     = []string{"a box in `tasks.md`"}
	followsBoxes = "a stage, for it follows from the boxes"
)

// layoutWords are what a board says about a layout: its name, what a move or a tick writes, and what is never written.
var layoutWords = map[string]struct {
	name           string
	written, never []string
}{
	domain.LayoutStages: {
		"Stage folders",
		[]string{"the story's file, moved", "`blocked`", "`merge_failure`", "a box"},
		[]string{"the rest of a file"},
	},
	domain.LayoutOpenSpec: {"OpenSpec", tasksBox, []string{followsBoxes, "the archive"}},
	domain.LayoutSpecKit:  {"Spec Kit", tasksBox, []string{followsBoxes}},
	domain.LayoutKiro:     {"Kiro", tasksBox, []string{followsBoxes}},
	domain.LayoutBacklog: {
		"Backlog.md", []string{"`status`", "`updated_date`", "a box"}, []string{"drafts", "completed", "archived"},
	},
	domain.LayoutTaskMaster: {
		"Task Master", []string{"`status`", "`updatedAt`", "`lastModified`"}, []string{"the rest of `tasks.json`"},
	},
	domain.LayoutBMAD:  {"BMAD", []string{"the status", "`last_updated`", "a box"}, []string{"the rest of a file"}},
	domain.LayoutBeads: {"beads", []string{"by `bd update`"}, []string{"its files"}},
}

// storyLabel returns the label beside a story's name: its number or, if ids are not made from names, its id.
func (p ProjectProps) storyLabel(item domain.Item) string {
	digits := number(item.StoryID, item.StoryName)
	isStages := p.Pipeline.Board.Layout == "" || p.Pipeline.Board.Layout == domain.LayoutStages
	if digits != "" || isStages || item.StoryID == item.StoryName {
		return digits
	}
	return domain.Cut(item.StoryID, 60)
}

// waitsFor says which stories a story waits for.
func waitsFor(ids []string) string { return domain.Cut("waits for "+strings.Join(ids, ", "), 200) }

// criteriaPaths returns the shapes of the finished criteria and of the others: a piece for each or, for more than
// twelve, one bar.
func criteriaPaths(c *domain.Criteria) (done, open string) {
	const width, gap, most = 56.0, 1.5, 12
	total := max(1, c.Total)
	finished := min(max(0, c.Done), total)
	bar := func(from, to float64) string {
		return "M" + pixels(from) + " 0H" + pixels(to) + "V6H" + pixels(from) + "z"
	}
	if total > most {
		at := width * float64(finished) / float64(total)
		return bar(0, at), bar(at, width)
	}
	piece := (width - gap*float64(total-1)) / float64(total)
	var parts [2]strings.Builder
	for i := range total {
		from := float64(i) * (piece + gap)
		part := &parts[1]
		if i < finished {
			part = &parts[0]
		}
		part.WriteString(bar(from, from+piece))
	}
	return parts[0].String(), parts[1].String()
}
