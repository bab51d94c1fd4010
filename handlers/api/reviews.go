package api

import (
	"net/http"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/web"
	"switchyard/internal/wire"
)

// ReviewStory records a verdict on the work on a story.
func (a *API) ReviewStory(w http.ResponseWriter, r *http.Request) error {
	body := web.DecodeJSON(w, r, web.MaxBody)
	request := service.ReviewRequest{
		Verdict: domain.Verdict(body.Text("verdict")), Head: body.Text("head"),
		Note: wire.Text(body.OptionalText("note")), Stage: body.OptionalText("stage"),
	}
	if err := body.Err(); err != nil {
		return err
	}
	story, err := a.service.Reviews.Review(r.Context(),
		web.PathParam(r, "name"), web.PathParam(r, "story_id"), request)
	return answer(w, http.StatusOK, encodeStory(story), err)
}

// MergeStory has the project server merge a branch of a story. The answer is held until that is over.
func (a *API) MergeStory(w http.ResponseWriter, r *http.Request) error {
	body := web.DecodeJSON(w, r, web.MaxBody)
	merge := wire.Merge{
		Branch: body.Text("branch"), Head: body.Text("head"),
		Stage: body.OptionalText("stage"), Into: body.OptionalText("into"),
	}
	if err := body.Err(); err != nil {
		return err
	}
	ctx, release, err := a.held.Hold(r)
	if err != nil {
		return err
	}
	defer release()
	status, answer, err := a.service.Reviews.Merge(ctx, web.PathParam(r, "name"), web.PathParam(r, "story_id"), merge)
	if ctx.Err() != nil && r.Context().Err() == nil {
		err = domain.Errorf(domain.Unavailable, "the gateway stops waiting; the merge goes on")
	}
	return pass(w, status, answer, err)
}

// StoryChanges forwards the project server's answer about what was made for a story.
func (a *API) StoryChanges(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	status, body, err := a.service.Stories.Changes(r.Context(), web.PathParam(r, "name"), web.PathParam(r, "story_id"),
		domain.ChangesQuery{
			Branch: query.Get("branch"), Worktree: query.Get("worktree"), Path: query.Get("path"), Since: query.Get("since"),
		})
	return pass(w, status, body, err)
}
