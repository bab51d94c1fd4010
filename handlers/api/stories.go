package api

import (
	"encoding/json"
	"net/http"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/web"
	"switchyard/internal/wire"
)

// storyJSON is a story as the API shows it: the fields of a project server's answer, and those that the gateway adds.
type storyJSON struct {
	wire.Story
	URL       string             `json:"url"`
	Reachable bool               `json:"reachable"`
	Error     *string            `json:"error"`
	Claim     *wire.Claim        `json:"claim"`
	Review    *wire.Review       `json:"review"`
	History   []domain.PastEvent `json:"history"`
	Visits    []wire.Visit       `json:"stays"`
	Cost      *wire.Cost         `json:"cost"`
}

func encodeStory(s domain.Story) storyJSON {
	return storyJSON{
		Story: wire.NewStory(s), URL: s.URL, Reachable: s.Reachable, Error: wire.OrNull(s.Error),
		Claim: wire.NewClaim(s.Claim), Review: wire.NewReview(s.Review), Cost: wire.NewCost(s.Cost),
		History: append([]domain.PastEvent{}, s.History...), Visits: domain.Map(s.Visits, wire.NewVisit),
	}
}

func (a *API) Story(w http.ResponseWriter, r *http.Request) error {
	story, err := a.service.Stories.Get(r.Context(), web.PathParam(r, "name"), web.PathParam(r, "story_id"))
	return answer(w, http.StatusOK, encodeStory(story), err)
}

// Picture answers with a picture that a story's text names.
func (a *API) Picture(w http.ResponseWriter, r *http.Request) error {
	picture, err := a.service.Stories.Picture(r.Context(),
		web.PathParam(r, "name"), web.PathParam(r, "story_id"), r.URL.Query().Get("path"))
	if err != nil {
		return err
	}
	return web.WritePicture(w, picture)
}

// PatchStory forwards a change to the project server and its answer to the client.
func (a *API) PatchStory(w http.ResponseWriter, r *http.Request) error {
	body := web.DecodeJSON(w, r, web.MaxBody)
	if err := body.Err(); err != nil {
		return err
	}
	status, answer, err := a.service.Stories.Patch(r.Context(),
		web.PathParam(r, "name"), web.PathParam(r, "story_id"), body.Data)
	return pass(w, status, answer, err)
}

// CreateStory forwards a new story to the project server and its answer to the client.
func (a *API) CreateStory(w http.ResponseWriter, r *http.Request) error {
	body := web.DecodeJSON(w, r, web.MaxBody)
	if err := body.Err(); err != nil {
		return err
	}
	status, answer, err := a.service.Stories.Create(r.Context(), web.PathParam(r, "name"), body.Data)
	return pass(w, status, answer, err)
}

// ClaimStory claims a story, by default the next free one, optionally waiting for one. Its body may be empty.
func (a *API) ClaimStory(w http.ResponseWriter, r *http.Request) error {
	body := web.DecodeOptionalJSON(w, r, web.MaxBody)
	to := body.OptionalText("to")
	request := service.ClaimRequest{
		StoryID: wire.Text(body.OptionalText("story_id")), From: wire.Text(body.OptionalText("from")),
		To: wire.Text(to), Stay: to != nil && *to == "", TakeOver: body.OptionalBool("take_over"), Wait: body.Wait(),
		Resume: body.BoolOrNull("resume"), Look: body.OptionalBool("look"),
		Worktree: wire.Text(body.OptionalText("worktree")),
	}
	if err := body.Err(); err != nil {
		return err
	}
	ctx, release, err := a.held.HoldFor(r, request.Wait)
	if err != nil {
		return err
	}
	defer release()
	story, found, err := a.service.Claims.Claim(ctx, web.PathParam(r, "name"), request)
	if err == nil && !found {
		return noContent(w, nil)
	}
	return answer(w, http.StatusOK, encodeStory(story), err)
}

// ReleaseStory ends a story's claim, if there is one.
func (a *API) ReleaseStory(w http.ResponseWriter, r *http.Request) error {
	return noContent(w, a.service.Claims.Release(r.Context(), web.PathParam(r, "name"), web.PathParam(r, "story_id")))
}

// pass writes a project server's status and body, with one of two media types that are harmless in a browser.
func pass(w http.ResponseWriter, status int, body []byte, err error) error {
	if err != nil {
		return err
	}
	if status < http.StatusBadRequest && json.Valid(body) {
		web.WriteEncoded(w, status, body)
		return nil
	}
	web.Plain(w, status, string(body))
	return nil
}
