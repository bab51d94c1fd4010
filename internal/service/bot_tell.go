package service

import (
	"context"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"switchyard/internal/domain"
)

// Tell posts stories to all of the bot's rooms, with somebody's own words, and returns the rooms. Stories that are on
// no board are left out. It returns Invalid for words that are too long, NotFound if no story is on a board, Conflict
// if no bot is set up, and BadGateway with the reason if a room was not told.
func (s *Bot) Tell(ctx context.Context, word string, stories []domain.StoryRef) (
	t domain.Announcement, rooms []string, err error,
) {
	const most = domain.MaxWord
	if word = strings.TrimSpace(word); utf8.RuneCountInString(word) > most {
		return t, nil, domain.Errorf(domain.Invalid, "word: must be at most %d characters", most)
	}
	status := s.Status()
	if status.State == domain.BotOff {
		return t, nil, domain.Errorf(domain.Conflict, "no bot is set up")
	}
	actor := domain.ActorOf(ctx)
	t = domain.Announcement{By: domain.CutText(actor.Who), Word: word}
	for _, ref := range stories {
		if err := actor.CheckScope(ref.Project); err != nil {
			return t, nil, err
		}
		item, stage := s.pipelines.Known(ref.Project, ref.ID)
		switch {
		case item == nil:
		case len(t.Stories) < domain.MaxAnnounced:
			t.Stories = append(t.Stories, domain.AnnouncedStory{Project: ref.Project, Stage: stage.Title(), Item: *item})
		default:
			t.More++
		}
	}
	if len(stories) == 0 {
		return t, nil, domain.Errorf(domain.Invalid, "no story is chosen")
	}
	if len(t.Stories) == 0 {
		return t, nil, domain.Errorf(domain.NotFound, "none of these stories is on a board any more")
	}
	limited, cancel := context.WithTimeout(ctx, testLimit)
	defer cancel()
	if err := s.runner.Tell(limited, t); err != nil {
		return t, nil, err
	}
	var told []string
	for _, story := range t.Stories {
		told = append(told, storyKey(story.Project, story.StoryID))
	}
	s.audit.changed(ctx, domain.Change{
		Action: domain.TeamTold, Subject: domain.Cut(strings.Join(told, ", "), domain.MaxText),
		Detail: details(valueOf("word", word), valueOf("rooms", strings.Join(status.Rooms, ", "))),
	})
	return t, status.Rooms, nil
}

// Tell has the gateway that runs the bot tell the team.
func (s *sharedRunner) Tell(ctx context.Context, t domain.Announcement) error {
	if s.Leader.Leads() {
		return s.local.Tell(ctx, t)
	}
	text, err := json.Marshal(t) // its times come from a project server
	if err != nil {
		return err
	}
	return s.ask(ctx, string(text))
}
