package domain

import "slices"

const (
	// maxStageNames is how many stages a project's visits distinguish. Pipelines have far fewer; it limits what a
	// hostile feed can cost.
	maxStageNames = 100
	// maxOpenVisits is how many stories of a project are followed, as many as a pipeline may have.
	maxOpenVisits = 20_000
)

// VisitCounts is what the limits of a project's visits go by.
type VisitCounts struct {
	Project string
	Open    int      // visits that last
	Stages  []string // the names of all stages
}

// allow reports whether a stage may be visited, and adds it.
func (c *VisitCounts) allow(stage string) bool {
	if slices.Contains(c.Stages, stage) {
		return true
	}
	if len(c.Stages) >= maxStageNames || !canVisit(stage) {
		return false
	}
	c.Stages = append(c.Stages, stage)
	return true
}

// VisitBook applies events and sightings to the newest visits of stories.
type VisitBook struct {
	counts  map[string]*VisitCounts
	stories map[StoryKey]*storyVisits
	stored  map[string]VisitCounts
}

// NewVisitBook returns a book of stories. stored are up to NewestVisits of each, in the order of their numbers, and
// counts those of their projects.
func NewVisitBook(stored []Visit, counts []VisitCounts) *VisitBook {
	b := &VisitBook{map[string]*VisitCounts{}, map[StoryKey]*storyVisits{}, map[string]VisitCounts{}}
	for _, c := range counts {
		b.stored[c.Project], b.counts[c.Project] = c, &c
	}
	for _, v := range stored {
		story := b.story(StoryKey{v.Project, v.StoryID})
		story.visits, story.stored = append(story.visits, v), append(story.stored, v)
	}
	return b
}

func (b *VisitBook) story(key StoryKey) *storyVisits {
	story := b.stories[key]
	if story == nil {
		if b.counts[key.Project] == nil {
			b.counts[key.Project] = &VisitCounts{Project: key.Project}
		}
		story = &storyVisits{key: key, counts: b.counts[key.Project]}
		b.stories[key] = story
	}
	return story
}

// Add applies the next events.
func (b *VisitBook) Add(events ...Event) {
	for _, e := range events {
		if key, ok := VisitKey(e.Project, e.Record); ok {
			b.story(key).add(e)
		}
	}
}

// Observe returns false if newer events contradict some of the observation: then the pipeline must be observed again.
func (b *VisitBook) Observe(o Observation) (settled bool) {
	settled = true
	for _, seen := range o.Seen {
		settled = b.story(StoryKey{o.Project, seen.StoryID}).observe(seen, o.Asked, o.Now) && settled
	}
	return settled
}

// Changed returns what is to be stored: visits, in the order of their numbers, and counts.
func (b *VisitBook) Changed() (visits []Visit, counts []VisitCounts) {
	for _, story := range b.stories {
		visits = append(visits, story.changed()...)
	}
	for project, c := range b.counts {
		if stored := b.stored[project]; stored.Open != c.Open || len(stored.Stages) != len(c.Stages) {
			counts = append(counts, *c)
		}
	}
	return visits, counts
}
