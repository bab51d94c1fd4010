package console

import (
	"context"
	"encoding/json"
	"net/http"

	"switchyard/internal/domain"
	"switchyard/views"
)

// undoOf returns the form that makes a change to the story at an address, none if it is too long.
func undoOf(story string, change storyChange) views.Undo {
	value, _ := json.Marshal(change) // strings always encode
	if len(value) > maxUndo {
		return views.Undo{}
	}
	return views.Undo{URL: story, Name: undoField, Value: string(value)}
}

// refusedNotice says why a change to the story at an address was not made. It offers to take over a story that somebody
// else has claimed.
func refusedNotice(story, refused string, change storyChange, err error) views.Notice {
	notice := views.Notice{Text: refused, Signal: views.SignalStop}
	if domain.CodeOf(err) == domain.Conflict && change.Value != change.Was {
		change.TakeOver = true
		notice.Undo = undoOf(story, change)
		notice.Undo.Label = "Take over"
	}
	return notice
}

// patchStory makes a change. The cards of a board know no version: they move a story as it is, unless it has left the
// stage in which the reader saw it.
func (c *Console) patchStory(ctx context.Context, project, id string, change *storyChange) (int, []byte, error) {
	if change.Do == doMove && change.Version == "" && change.Was != "" {
		now, err := c.service.Stories.Now(ctx, project, id)
		switch {
		case domain.CodeOf(err) == domain.NotFound:
			return http.StatusNotFound, nil, nil
		case err != nil:
			return 0, nil, err
		case now.Stage != change.Was:
			word := c.service.Pipelines.StageWord(project, now.Stage)
			return http.StatusConflict, []byte("it was moved to " + word + " meanwhile"), nil
		}
		change.Version = now.File.Version
	}
	return c.service.Stories.Patch(ctx, project, id, change.body())
}
