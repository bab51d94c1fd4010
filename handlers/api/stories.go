package api

import (
	"encoding/json"
	"net/http"

	"switchyard/internal/domain"
	"switchyard/internal/web"
	"switchyard/internal/wire"
)

// storyJSON is a story as the API shows it: the fields of a project server's answer, and those that the gateway adds.
type storyJSON struct {
	wire.Story
	URL       string         `json:"url"`
	Reachable bool           `json:"reachable"`
	Error     *string        `json:"error"`
	History   []domain.Event `json:"history"`
	Visits    []wire.Visit   `json:"stays"`
}

func encodeStory(s domain.Story) storyJSON {
	encoded := storyJSON{
		Story: wire.NewStory(s), URL: s.URL, Reachable: s.Reachable, Error: wire.OrNull(s.Error),
		History: append([]domain.Event{}, s.History...), Visits: make([]wire.Visit, len(s.Visits)),
	}
	for i, visit := range s.Visits {
		encoded.Visits[i] = wire.NewVisit(visit)
	}
	return encoded
}

func (a *API) Story(w http.ResponseWriter, r *http.Request) error {
	story, err := a.service.Stories.Get(r.Context(), web.PathParam(r, "name"), web.PathParam(r, "story_id"))
	return answer(w, http.StatusOK, encodeStory(story), err)
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
