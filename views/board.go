package views

import (
	"slices"

	"switchyard/internal/domain"
)

// ShowStories is which stories a board shows.
type ShowStories string

const (
	ShowEvery    ShowStories = "" // all
	ShowMine     ShowStories = "mine"
	ShowClaimed  ShowStories = "claimed"
	ShowInDanger ShowStories = "troubled"
)

var storyChoices = []struct {
	show ShowStories
	word string
}{{ShowEvery, "All"}, {ShowMine, "Mine"}, {ShowClaimed, "Claimed"}, {ShowInDanger, "Troubled"}}

// StoryChoice returns the choice of this name, ShowEvery for an unknown one.
func StoryChoice(name string) ShowStories {
	for _, c := range storyChoices {
		if string(c.show) == name {
			return c.show
		}
	}
	return ShowEvery
}

func showStoriesURL(project string, show ShowStories) string {
	return withQuery(ProjectURL(project), "show", string(show))
}

// chosen returns those of the items that the reader wants to see.
func (p ProjectProps) chosen(items []domain.Item) []domain.Item {
	if p.Show == ShowEvery {
		return items
	}
	return slices.DeleteFunc(slices.Clone(items), func(item domain.Item) bool {
		holder := p.Owners.Of(p.Project.Name, item.StoryID).Holder
		switch p.Show {
		case ShowMine:
			return holder == "" || holder != p.Reader
		case ShowClaimed:
			return holder == ""
		}
		_, state := storyState(item, p.Stuck)
		return state == ""
	})
}
