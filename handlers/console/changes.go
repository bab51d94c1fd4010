package console

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/web"
	"switchyard/internal/wire"
	"switchyard/views"
)

const (
	// changesWait is how long a page waits to find out what was made, mergeWait how long a form waits for its merge.
	changesWait, mergeWait = 5 * time.Second, 8 * time.Second
)

// changesOf collects what was made for a story at the place that the request names, by default the first; it returns
// false if there is nothing.
func (c *Console) changesOf(
	r *http.Request, story views.StoryProps, form views.StoryForm,
) (p views.ChangesProps, some bool) {
	if story.Story.File == nil || len(story.Story.File.Work) == 0 {
		return p, false
	}
	query := r.URL.Query()
	p = views.ChangesProps{StoryProps: story, Since: query.Get("since"), File: query.Get("file"), Form: form}
	p.From, _ = strconv.Atoi(query.Get("from")) // otherwise the first are shown
	isAsked := func(of domain.Place) bool {
		return of.Branch == query.Get("branch") && of.Worktree == query.Get("worktree")
	}
	at := max(0, slices.IndexFunc(story.Story.File.Work, isAsked))
	p.Place = story.Story.File.Work[at]
	ask := domain.ChangesQuery{Branch: p.Place.Branch, Worktree: p.Place.Worktree, Since: p.Since}
	if wantsPart(r) {
		ask.Path = p.File
	}
	ctx, cancel := context.WithTimeout(r.Context(), changesWait)
	defer cancel()
	p.Changes, p.Why = c.changes(ctx, story.Story, ask)
	review := story.Story.Review
	if p.Changes != nil && p.Since == "" && ask.Path == "" && review != nil && review.Verdict == domain.SentBack &&
		review.Head != p.Changes.Head {
		ask.Since = review.Head
		if newer, _ := c.changes(ctx, story.Story, ask); newer != nil { // otherwise the head is gone
			p.Newer = map[string]bool{}
			for _, f := range newer.Files {
				p.Newer[f.Path] = true
			}
		}
	}
	return p, true
}

// changes asks the project server, and says why there is no answer.
func (c *Console) changes(
	ctx context.Context, s domain.Story, q domain.ChangesQuery,
) (changes *wire.Changes, why string) {
	status, body, err := c.service.Stories.Changes(ctx, s.Project, s.ID, q)
	switch {
	case ctx.Err() != nil:
		return nil, "The project server takes long to say what has changed. Load this page again for another try."
	case err != nil:
		return nil, "The project server does not say what has changed: " + views.WhyAway(domain.MessageOf(err))
	case status == http.StatusOK && json.Unmarshal(body, &changes) == nil && changes != nil:
		return changes, ""
	}
	return nil, "The project server does not say what has changed: " + answerText(string(body)) + "."
}

// reviewStory takes the verdict on a story's page. If it is refused, the form keeps the note.
func (c *Console) reviewStory(w http.ResponseWriter, r *http.Request, fields url.Values) error {
	name, id := web.PathParam(r, "name"), web.PathParam(r, "story_id")
	form := views.StoryForm{Note: strings.TrimSpace(strings.ReplaceAll(fields.Get("note"), "\r\n", "\n"))}
	verdict := domain.Verdict(fields.Get("do"))
	story, err := c.service.Reviews.Review(r.Context(), name, id, service.ReviewRequest{
		Verdict: verdict, Head: fields.Get("head"), Note: form.Note,
	})
	switch domain.CodeOf(err) {
	case "":
	case domain.Invalid, domain.Conflict, domain.Forbidden, domain.BadGateway:
		reason := strings.TrimSuffix(strings.TrimPrefix(domain.MessageOf(err), "note: "), ".")
		form.Refused = "Not " + verdict.Word() + ": " + reason + "."
		if form.Note != "" {
			form.Refused += " Your note is kept."
		}
		return c.showStory(w, r, form, web.StatusOf(err))
	}
	if err != nil {
		return err
	}
	said := "Approved"
	if verdict == domain.SentBack {
		said = "Sent back"
	}
	notice := views.Notice{Text: said + ": it is in " + c.service.Pipelines.StageWord(name, story.Stage) + " now."}
	return c.notices.redirect(w, r, views.StoryURL(name, id), notice)
}

// mergeStory has a story's branch merged. If that takes longer it goes on, and the story's page says so.
func (c *Console) mergeStory(w http.ResponseWriter, r *http.Request, fields url.Values) error {
	name, id := web.PathParam(r, "name"), web.PathParam(r, "story_id")
	ctx, cancel := context.WithTimeout(r.Context(), mergeWait)
	defer cancel()
	status, body, err := c.service.Reviews.Merge(ctx, name, id, wire.Merge{
		Branch: fields.Get("branch"), Head: fields.Get("head"),
	})
	notice := views.Notice{Text: "Merged."}
	switch reason, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n"); {
	case errors.Is(err, context.DeadlineExceeded) && r.Context().Err() == nil:
		notice.Text = "It is being merged. This page says how that ends."
	case err != nil && domain.CodeOf(err) != domain.Conflict && domain.CodeOf(err) != domain.BadGateway:
		return err
	case err != nil:
		notice = views.Notice{Text: "Not merged: " + domain.MessageOf(err) + ".", Signal: views.SignalStop}
	case status >= http.StatusMultipleChoices:
		notice = views.Notice{Text: "Not merged: " + answerText(reason) + ".", Signal: views.SignalStop}
	default:
		_, _ = c.service.Pipelines.One(r.Context(), name, 0) // so that pages show it, unless that takes long
	}
	return c.notices.redirect(w, r, views.StoryURL(name, id), notice)
}
