package agentrun

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

// storyWait is how long one call asks the gateway to wait for a story.
const storyWait = 50 * time.Second

// awaitStory waits until a claim of the command would get a story of the project. It returns false if the agent is
// reassigned, or ctx ends, before that.
func (r *runner) awaitStory(ctx context.Context, project string, reassigned <-chan struct{}) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	supervise.Go(r.Log, "assignment", func() {
		select {
		case <-reassigned:
			cancel()
		case <-ctx.Done():
		}
	})
	r.set(domain.AgentIdle, "waiting for a story")
	backoff := supervise.Backoff{First: retryFirst, Max: retryMax}
	for ctx.Err() == nil {
		var found struct {
			StoryID string `json:"story_id"`
		}
		if r.access(ctx, project) == nil { // it cannot be asked yet
			supervise.Sleep(ctx, backoff.Next())
			continue
		}
		err := r.client.Call(ctx, storyWait+CallLimit, http.MethodPost,
			"/api/gateway/projects/"+url.PathEscape(project)+"/stories/claim", r.token,
			map[string]any{"look": true, "wait": storyWait.String()}, &found)
		switch {
		case found.StoryID != "":
			return ctx.Err() == nil
		case err != nil && ctx.Err() == nil:
			pause := backoff.Next()
			r.Log.WarnContext(ctx, "cannot look for a story", "project", project, "error", err, "retry_in", pause)
			supervise.Sleep(ctx, pause)
		default:
			backoff.Reset()
			supervise.Sleep(ctx, beatPause) // that gateway may not wait
		}
	}
	return false
}
