package api

import (
	"encoding/json"
	"net/http"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/web"
)

// storyJSON is a story as the API shows it: the form of a project server, and what the gateway adds.
type storyJSON struct {
	Project          string          `json:"project"`
	StoryID          string          `json:"story_id"`
	StoryName        string          `json:"story_name"`
	Stage            *string         `json:"stage"`
	SinceMS          *int64          `json:"since_ms"`
	Blocked          *string         `json:"blocked"`
	BlockedSinceMS   *int64          `json:"blocked_since_ms"`
	MergeFailure     *string         `json:"merge_failure"`
	Path             *string         `json:"path"`
	Version          *string         `json:"version"`
	FrontMatter      json.RawMessage `json:"front_matter"`
	FrontMatterError *string         `json:"front_matter_error"`
	Body             *string         `json:"body"`
	BodyCut          bool            `json:"body_cut"`
	Criteria         *criteriaJSON   `json:"criteria"`
	Commits          []commitJSON    `json:"commits"`
	Writable         bool            `json:"writable"`
	URL              string          `json:"url"`
	Reachable        bool            `json:"reachable"`
	Error            *string         `json:"error"`
	History          []domain.Event  `json:"history"`
	Stays            []stayJSON      `json:"stays"`
}

type criteriaJSON struct {
	Done  int `json:"done"`
	Total int `json:"total"`
}

type commitJSON struct {
	Hash    string `json:"hash"`
	Author  string `json:"author"`
	AtMS    int64  `json:"at_ms"`
	Subject string `json:"subject"`
	Files   int    `json:"files"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
}

type stayJSON struct {
	Stage     string `json:"stage"`
	FromMS    int64  `json:"from_ms"`
	ToMS      *int64 `json:"to_ms"`
	BlockedMS int64  `json:"blocked_ms"`
}

func encodeStory(s domain.Story) storyJSON {
	encoded := storyJSON{
		Project: s.Project, StoryID: s.ID, StoryName: s.Name, Stage: web.OrNull(s.Stage), SinceMS: msOrNull(s.Since),
		Blocked: web.OrNull(s.Blocked), BlockedSinceMS: msOrNull(s.BlockedSince), MergeFailure: web.OrNull(s.MergeFailure),
		FrontMatter: json.RawMessage("{}"), URL: s.URL, Reachable: s.Reachable, Error: web.OrNull(s.Error),
		History: append([]domain.Event{}, s.History...), Stays: []stayJSON{},
	}
	for _, stay := range s.Stays {
		encoded.Stays = append(encoded.Stays, stayJSON{stay.Stage, stay.From.UnixMilli(), msOrNull(stay.To), stay.Blocked.Milliseconds()})
	}
	if f := s.File; f != nil {
		encoded.Path, encoded.Version, encoded.Body = &f.Path, &f.Version, &f.Body
		encoded.FrontMatter, encoded.FrontMatterError = f.FrontMatter, web.OrNull(f.FrontMatterError)
		encoded.BodyCut, encoded.Writable = f.BodyCut, f.Writable
		if f.Criteria != nil {
			encoded.Criteria = &criteriaJSON{f.Criteria.Done, f.Criteria.Total}
		}
		if f.Commits != nil {
			encoded.Commits = make([]commitJSON, len(f.Commits))
		}
		for i, c := range f.Commits {
			encoded.Commits[i] = commitJSON{c.Hash, c.Author, c.At.UnixMilli(), c.Subject, c.Files, c.Added, c.Removed}
		}
	}
	return encoded
}

// msOrNull is nil for the zero time.
func msOrNull(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	ms := t.UnixMilli()
	return &ms
}

// Story answers with all that is known of a story.
func (a *API) Story(w http.ResponseWriter, r *http.Request) error {
	story, err := a.service.Stories.Get(r.Context(), web.PathParam(r, "name"), web.PathParam(r, "story_id"))
	if err != nil {
		return err
	}
	web.WriteJSON(w, http.StatusOK, encodeStory(story))
	return nil
}

// PatchStory passes a change on to the project server, and its answer back.
func (a *API) PatchStory(w http.ResponseWriter, r *http.Request) error {
	body, err := web.ReadJSON(w, r, web.MaxBody)
	if err != nil {
		return err
	}
	status, answer, err := a.service.Stories.Patch(r.Context(), web.PathParam(r, "name"), web.PathParam(r, "story_id"), body)
	return pass(w, status, answer, err)
}

// CreateStory passes a new story on to the project server, and its answer back.
func (a *API) CreateStory(w http.ResponseWriter, r *http.Request) error {
	body, err := web.ReadJSON(w, r, web.MaxBody)
	if err != nil {
		return err
	}
	status, answer, err := a.service.Stories.Create(r.Context(), web.PathParam(r, "name"), body)
	return pass(w, status, answer, err)
}

// pass writes a project server's answer: its status and body are its own, the media type is one of two that are harmless.
func pass(w http.ResponseWriter, status int, body []byte, err error) error {
	if err != nil {
		return err
	}
	if status < http.StatusBadRequest && json.Valid(body) {
		web.WriteEncoded(w, status, body)
		return nil
	}
	header := w.Header()
	header.Set("Content-Type", "text/plain; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	web.WriteBytes(w, status, body)
	return nil
}
