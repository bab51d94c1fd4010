package console

import (
	"net/http"
	"net/url"

	"switchyard/internal/domain"
	"switchyard/views"
)

// Waiting shows all stories in work by their age as a multiple of what is usual in their stage.
func (c *Console) Waiting(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	p := views.WaitingProps{
		Filter: views.WaitingFilter{
			Project: query.Get("project"), Stage: query.Get("stage"), Show: views.WaitingShow(query.Get("show")),
			All: query.Has("all"),
		},
		Names: c.projectNames(), Chat: views.NewChat(c.service.Bot.Status()), Now: now(),
	}
	for name, text := range map[string]string{"project": p.Filter.Project, "stage": p.Filter.Stage} {
		if err := domain.CheckFilter(name, text); err != nil {
			return err
		}
	}
	s := c.service.Overview.Snapshot(r.Context())
	p.Use(domain.WaitingLongest(s.Pipelines, p.Now), s.Owners, s.Alerts.Acknowledged)
	return c.render(w, r, view{
		frame: views.Frame{Title: "Waiting longest", Sheet: "logs.css", Scripts: []string{"tell.js"}},
		page:  views.Waiting(p),
		part:  views.WaitingPart(p),
	})
}

// Tell tells the team about the stories that the form names.
func (c *Console) Tell(w http.ResponseWriter, r *http.Request, fields url.Values) error {
	var stories []domain.StoryRef
	for _, address := range fields["story"] {
		project, id := placeOf(address)
		if id == "" {
			return domain.Errorf(domain.Invalid, "story: must be the address of a story")
		}
		stories = append(stories, domain.StoryRef{Project: project, ID: id})
	}
	next := localPath(fields.Get("next"))
	told, rooms, err := c.service.Bot.Tell(r.Context(), fields.Get("word"), stories)
	notice := views.Notice{Text: views.Chat{Rooms: rooms}.Told(len(told.Stories) + told.More)}
	switch domain.CodeOf(err) {
	case domain.Invalid, domain.Conflict, domain.BadGateway, domain.NotFound:
		notice = views.Notice{Text: "Not told: " + domain.MessageOf(err) + ".", Signal: views.SignalStop}
	default:
		if err != nil {
			return err
		}
	}
	return c.notices.redirect(w, r, next, notice)
}
