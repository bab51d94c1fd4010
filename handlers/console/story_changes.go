package console

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/web"
	"switchyard/internal/wire"
	"switchyard/views"
)

// storyChange is what a form on a story's page asks for. It is also the value of an Undo.
type storyChange struct {
	Version string `json:"version"`
	Do      string `json:"do"`
	// Value is the stage to move to or the reason for a block, and Was the value before. For a box they are "true" or
	// "false", and its text.
	Value string `json:"value,omitempty"`
	Was   string `json:"was,omitempty"`
	Line  int    `json:"line,omitempty"` // of the box, like Path
	Path  string `json:"path,omitempty"`
	// TakeOver is whether to make it although somebody else has claimed the story.
	TakeOver bool `json:"take_over,omitempty"`
}

// What can be done to a story.
const (
	doMove    = "move"
	doBlock   = "block"
	doUnblock = "unblock"
	doRetry   = "retry" // clears the merge failure
	doFail    = "fail"  // restores it
	doTick    = "tick"  // ticks or clears a box

	doClaim    = "claim"
	doTakeOver = "take_over"
	doRelease  = "release"
	doMerge    = "merge"
)

// storyActs are what can be done, except for ticking a box.
var storyActs = map[string]struct {
	field  string // of the project server's format
	clears bool   // the field, which otherwise gets the value
	notice string // when it is done
	back   string // undoes it
}{
	doMove:    {field: "stage", back: doMove},
	doBlock:   {field: "blocked", notice: "Blocked.", back: doBlock},
	doUnblock: {"blocked", true, "No longer blocked.", doBlock},
	doRetry:   {"merge_failure", true, "The failed merge is cleared, so the merge will be tried again.", doFail},
	doFail:    {"merge_failure", false, "The failure is back: the merge is not tried again.", doRetry},
}

// undoField is the form field that holds the storyChange of an Undo.
const undoField = "undo"

// readStoryChange reads a form. It returns Invalid if the form asks for nothing that can be done.
func readStoryChange(fields url.Values) (change storyChange, err error) {
	if undo := fields.Get(undoField); undo != "" {
		if json.Unmarshal([]byte(undo), &change) != nil {
			return change, domain.Errorf(domain.Invalid, "This can no longer be undone.")
		}
	} else {
		change = storyChange{Version: fields.Get("version"), Do: fields.Get("do"), Was: fields.Get("was")}
		change.TakeOver = fields.Get("take_over") != ""
		switch change.Do {
		case doMove:
			change.Value = fields.Get("stage")
		case doBlock:
			change.Value = strings.TrimSpace(fields.Get("reason"))
		case doTick:
			change.Value = strconv.FormatBool(fields.Get("done") == "true")
			change.Path = fields.Get("path")
			change.Line, _ = strconv.Atoi(fields.Get("line")) // the project server refuses line 0
		}
	}
	switch {
	case change.Do == doMove && change.Value == "":
		return change, domain.Errorf(domain.Invalid, "Choose the stage to move the story to.")
	case change.Do == doBlock && change.Value == "":
		return change, domain.Errorf(domain.Invalid, "Say why the story is blocked.")
	case change.notice("") == "":
		return change, domain.Errorf(domain.Invalid, "The form does not say what to do.")
	}
	return change, nil
}

// body returns the change in the format that project servers accept.
func (s storyChange) body() []byte {
	fields := map[string]any{"version": s.Version}
	if s.TakeOver {
		fields["take_over"] = true
	}
	switch act := storyActs[s.Do]; {
	case s.Do == doTick:
		fields["task"] = domain.Task{Path: s.Path, Line: s.Line, Done: s.Value == "true"}
	case act.clears:
		fields[act.field] = nil
	default:
		fields[act.field] = s.Value
	}
	return domain.EncodeJSON(fields)
}

// notice says that the change was made, "" for an unknown change. stage is the word for the story's new stage.
func (s storyChange) notice(stage string) string {
	switch s.Do {
	case doMove:
		return "Moved to " + stage + "."
	case doTick:
		return views.Ticked(s.Was, s.Value == "true")
	}
	return storyActs[s.Do].notice
}

// undo returns the change that reverses s at a version, if there is one.
func (s storyChange) undo(version string) (back storyChange, ok bool) {
	back = storyChange{Version: version, Do: storyActs[s.Do].back, Value: s.Was, Was: s.Value}
	switch {
	case s.Do == doTick:
		back.Do, back.Path, back.Line, back.Was = doTick, s.Path, s.Line, s.Was
		back.Value = strconv.FormatBool(s.Value != "true")
	case s.Do == doBlock && s.Was == "":
		back.Do = doUnblock
	}
	return back, back.Value != "" || back.Do == doUnblock || back.Do == doRetry
}

// maxUndo is the longest Undo, in bytes: it is kept in a cookie.
const maxUndo = 2000

func (c *Console) ChangeStory(w http.ResponseWriter, r *http.Request, fields url.Values) error {
	name, id := web.PathParam(r, "name"), web.PathParam(r, "story_id")
	here, next := views.StoryURL(name, id), views.StoryURL(name, id)
	if text := fields.Get("next"); text != "" {
		next = localPath(text)
	}
	if do := fields.Get("do"); do == doClaim || do == doTakeOver || do == doRelease {
		return c.claimStory(w, r, do, next)
	}
	switch do := fields.Get("do"); do {
	case string(domain.Approved), string(domain.SentBack):
		return c.reviewStory(w, r, fields)
	case doMerge:
		return c.mergeStory(w, r, fields)
	}
	change, err := readStoryChange(fields)
	form := views.StoryForm{}
	if change.Do == doBlock {
		form.Reason = change.Value
	}
	if err != nil {
		form.Refused = domain.MessageOf(err)
		return c.showStory(w, r, form, web.StatusOf(err))
	}
	status, body, err := c.patchStory(r.Context(), name, id, &change)
	if form.Refused = refusal(status, body, err); form.Refused != "" && next == here {
		return c.showStory(w, r, form, refusedStatus(status, err))
	}
	if form.Refused != "" {
		return c.notices.redirect(w, r, next, refusedNotice(here, form.Refused, change, err))
	}
	if err != nil {
		return err
	}
	story := storyIn(body)
	notice := views.Notice{Text: domain.Cut(change.notice(c.service.Pipelines.StageWord(name, change.Value)), 200)}
	if next != here {
		notice.Text = "“" + domain.Cut(cmp.Or(story.StoryName, id), 80) + "”: " + notice.Text
		_, _ = c.service.Pipelines.One(r.Context(), name, 0) // so that the board shows it, unless that takes long
	}
	if version := wire.Text(story.Version); version != "" {
		if back, ok := change.undo(version); ok {
			notice.Undo = undoOf(here, back)
		}
	}
	return c.notices.redirect(w, r, next, notice)
}

// claimStory claims the request's story for the reader, or ends its claim, and goes to next.
func (c *Console) claimStory(w http.ResponseWriter, r *http.Request, do, next string) (err error) {
	name, id := web.PathParam(r, "name"), web.PathParam(r, "story_id")
	here := views.StoryURL(name, id)
	notice := views.Notice{Text: "The claim is released: anybody can take this story."}
	if do == doRelease {
		err = c.service.Claims.Release(r.Context(), name, id)
	} else {
		notice.Text = "You have claimed this story."
		notice.Undo = views.Undo{URL: here, Name: "do", Value: doRelease}
		request := service.ClaimRequest{StoryID: id, TakeOver: do == doTakeOver}
		_, _, err = c.service.Claims.Claim(r.Context(), name, request)
	}
	refused := refusal(http.StatusOK, nil, err)
	switch {
	case refused != "" && next != here:
		notice = views.Notice{Text: refused, Signal: views.SignalCaution}
	case refused != "":
		return c.showStory(w, r, views.StoryForm{Refused: refused}, web.StatusOf(err))
	case err != nil:
		return err
	}
	return c.notices.redirect(w, r, next, notice)
}

// CreateStory takes the form of a project's page that adds a story to its board.
func (c *Console) CreateStory(w http.ResponseWriter, r *http.Request, fields url.Values) error {
	name := web.PathParam(r, "name")
	form := views.StoryForm{Reason: strings.TrimSpace(fields.Get("name"))}
	request := domain.EncodeJSON(map[string]string{"name": form.Reason})
	status, body, err := c.service.Stories.Create(r.Context(), name, request)
	if form.Refused = refusal(status, body, err); form.Refused != "" {
		return c.showProject(w, r, projectForms{story: form, status: refusedStatus(status, err)})
	}
	if err != nil {
		return err
	}
	path := views.ProjectURL(name)
	if created := storyIn(body); created.StoryID != "" {
		path = views.StoryURL(name, created.StoryID)
	}
	return c.notices.redirect(w, r, path, views.Notice{Text: "The story is added."})
}

// refusal says in a sentence why a project server refused a change, and what to do about it; "" if it did not, or if
// err is not the project server's.
func refusal(status int, body []byte, err error) string {
	switch {
	case domain.CodeOf(err) == domain.BadGateway:
		return "The project server did not answer. " + views.WhyAway(domain.MessageOf(err)) + " Try again when it does."
	case domain.CodeOf(err) == domain.Conflict:
		return "Not done: " + domain.MessageOf(err) + ". This page shows the story as it is now."
	case err != nil, status < http.StatusBadRequest:
		return ""
	}
	text := answerText(string(body))
	switch status {
	case http.StatusConflict:
		return "Not done: " + text + ". This page shows the story as it is now: look at it, then try again."
	case http.StatusForbidden:
		if strings.Contains(text, "--allow-host") {
			return "Not done: the project server answers: " + text + "."
		}
		return "Not done: this project server accepts no changes. Start it with --allow-writes to allow them."
	case http.StatusNotFound:
		return "Not done: the project server no longer has this story."
	}
	for _, field := range []string{"name: ", "blocked: ", "stage: ", "task: "} { // the form has only one field
		if reason, ok := strings.CutPrefix(text, field); ok {
			return views.Sentence(reason)
		}
	}
	return "The project server refused the change: " + text + "."
}

// answerText is what a project server has answered, to be shown within a sentence.
func answerText(body string) string {
	return strings.TrimSuffix(domain.Cut(strings.TrimSpace(strings.ToValidUTF8(body, "")), 200), ".")
}

func refusedStatus(status int, err error) int {
	switch {
	case err != nil:
		return web.StatusOf(err)
	case status >= http.StatusInternalServerError:
		return http.StatusBadGateway
	}
	return status
}

func storyIn(body []byte) (story wire.Story) {
	_ = json.Unmarshal(body, &story) // without a story, nothing is offered
	return story
}
