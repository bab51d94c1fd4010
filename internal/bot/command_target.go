package bot

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"

	"switchyard/internal/domain"
)

const (
	// maxWords is the most words that a command can have after a story.
	maxWords = 20
	// maxFound is how many results of a search for an id are considered, for stories that are on no board.
	maxFound = 50
)

// target is the result of parsing a command about a story.
type target struct {
	id      string
	stories []domain.StoryRef // more than one if the id is not enough
	rest    []word            // the words after the story
	fits    bool              // whether the number of words fits the command
	err     error
}

// named reports whether the words name a story: if not, people may be talking to each other.
func (t target) named() bool { return t.fits && len(t.stories) > 0 }

// target parses [PROJECT] ID and the words after it. A project's name needs no quotes: the longest that leaves enough
// words counts.
func (c *commands) target(ctx context.Context, command command, words []word) target {
	project, known := "", c.gateway.Projects.Registry()
	for n := len(words) - 1 - command.follow[0]; n > 0; n-- {
		if _, found := known.Find(join(words[:n])); found {
			project, words = join(words[:n]), words[n:]
			break
		}
	}
	if len(words) == 0 {
		return target{}
	}
	t := target{id: words[0].text, rest: words[1:]}
	t.fits = len(t.rest) >= command.follow[0] && len(t.rest) <= command.follow[1]
	if t.fits {
		t.stories, t.err = c.findStories(ctx, project, t.id)
	}
	return t
}

// findStories returns the stories with an id, in one project or, for "", in all. Stories on a board come first; a
// number matches ids that begin with it, unless it is an id itself.
func (c *commands) findStories(ctx context.Context, project, id string) ([]domain.StoryRef, error) {
	isOther := func(ref domain.StoryRef) bool {
		return project != "" && ref.Project != project ||
			ref.ID != id && !(isNumber(id) && strings.HasPrefix(ref.ID, id+"_"))
	}
	var board []domain.StoryRef
	_, pipelines := c.gateway.Pipelines.All(ctx, pipelineAge)
	for _, p := range pipelines {
		for _, stage := range p.Stages {
			for _, item := range stage.Items {
				ref := domain.StoryRef{Project: p.Project, ID: item.StoryID, Name: item.StoryName, Stage: stage.Name}
				if !isOther(ref) {
					board = append(board, ref)
				}
			}
		}
	}
	if len(board) > 0 {
		return exactMatches(board, id), nil
	}
	gone, err := c.gateway.Search.Stories(ctx, id, maxFound)
	if err != nil && domain.CodeOf(err) != domain.Invalid { // too long to be searched for
		return nil, err
	}
	gone = exactMatches(slices.DeleteFunc(gone, isOther), id)
	if len(gone) == 0 && project != "" {
		gone = []domain.StoryRef{{Project: project, ID: id}} // the project may have a story that the search does not find
	}
	return gone, nil
}

// exactMatches returns the stories with exactly this id, or, if there are none, all.
func exactMatches(list []domain.StoryRef, id string) []domain.StoryRef {
	isOther := func(ref domain.StoryRef) bool { return ref.ID != id }
	if found := slices.DeleteFunc(slices.Clone(list), isOther); len(found) > 0 {
		return found
	}
	return list
}

func isNumber(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsDigit(r) })
}

// onStory runs a command on the one story that its words name, or says what is wrong with them.
func (c *commands) onStory(ctx context.Context, command command, t target) Message {
	switch {
	case !t.fits:
		return usage(command.usage())
	case t.err != nil:
		return c.failed(ctx, t.err)
	case len(t.stories) == 0:
		return plainf("No project has a story %s.", Code(t.id))
	case len(t.stories) > 1:
		m := plainf("There are several; give the project and the full id:")
		return appendLines(m, t.stories, len(t.stories), func(s domain.StoryRef) Line {
			line := columns(Line{Code(s.Project), Plain(" "), Code(s.ID)})
			if s.Name != "" {
				line = columns(line, Line{Plain(Short(s.Name, MaxName))})
			}
			word := stageTitle(c.gateway.Pipelines.StageWord(s.Project, s.Stage))
			return columns(line, Line{Plain(cmp.Or(word, "not on the board"))})
		})
	}
	return command.story(ctx, t.stories[0], t.rest)
}
