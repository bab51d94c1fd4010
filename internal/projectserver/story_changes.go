package projectserver

import (
	"net/http"
	"strings"

	"switchyard/internal/board"
	"switchyard/internal/domain"
	"switchyard/internal/web"
)

var errReadOnly = domain.Errorf(domain.Forbidden, "this project server does not allow writes (--allow-writes)")

// changeStory changes the story that the path names, and answers with it.
func (s *server) changeStory(w http.ResponseWriter, r *http.Request) error {
	if !s.Board.Writable() {
		return errReadOnly
	}
	body, err := web.DecodeJSON(w, r, web.MaxBody)
	if err != nil {
		return err
	}
	change, err := newChange(body)
	if err != nil {
		return err
	}
	details, err := s.Board.Change(storyID(r), change)
	if err != nil {
		return err
	}
	web.WriteJSON(w, http.StatusOK, s.encodeStory(details))
	return nil
}

func newChange(body web.Body) (c board.Change, err error) {
	if c.Version, err = body.Text("version"); err != nil {
		return c, err
	}
	if c.Stage, err = body.OptionalText("stage"); err != nil {
		return c, err
	}
	if _, given := body["blocked"]; given {
		if c.Blocked, err = body.OptionalText("blocked"); err != nil {
			return c, err
		}
		switch {
		case c.Blocked == nil: // null unblocks
			c.Blocked = new(string)
		case strings.TrimSpace(*c.Blocked) == "":
			return c, domain.Errorf(domain.Invalid, "blocked: must be a reason or null")
		}
	}
	if raw, given := body["merge_failure"]; given {
		if string(raw) != "null" {
			return c, domain.Errorf(domain.Invalid, "merge_failure: can only be null")
		}
		c.ClearMergeFailure = true
	}
	return c, nil
}

// createStory adds a story to a stage, and answers with it.
func (s *server) createStory(w http.ResponseWriter, r *http.Request) error {
	if !s.Board.Writable() {
		return errReadOnly
	}
	body, err := web.DecodeJSON(w, r, web.MaxBody)
	if err != nil {
		return err
	}
	name, err := body.Text("name")
	if err != nil {
		return err
	}
	text, err := body.OptionalText("body")
	if err != nil {
		return err
	}
	stage, err := body.OptionalText("stage")
	if err != nil {
		return err
	}
	if stage != nil && *stage == "" {
		return domain.Errorf(domain.Invalid, "stage: must not be empty")
	}
	details, err := s.Board.Create(name, orEmpty(text), orEmpty(stage))
	if err != nil {
		return err
	}
	web.WriteJSON(w, http.StatusCreated, s.encodeStory(details))
	return nil
}

func orEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
