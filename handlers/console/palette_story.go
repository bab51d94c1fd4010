package console

import (
	"context"
	"slices"
	"strings"

	"switchyard/internal/domain"
	"switchyard/internal/fold"
	"switchyard/internal/service"
	"switchyard/views"
)

// storyVerb adds what a verb can do: to the story that the first words name, or else to the one of the page.
func (p *palette) storyVerb(ctx context.Context, verb string, words []string) error {
	numbered := len(words) > 0 && strings.Trim(words[0], "0123456789") == ""
	if p.story != "" && !numbered {
		return p.storyActs(ctx, verb, words)
	}
	for n := min(len(words), maxStoryWords); n > 0; n-- {
		text := strings.Join(words[:n], " ")
		found, err := p.c.service.Search.Find(ctx, service.SearchQuery{Text: text, Limit: 2 * paletteStories})
		if err != nil {
			return err
		}
		found.Stories = slices.DeleteFunc(found.Stories, func(s domain.StoryRef) bool {
			return s.Item == nil || verb == "unblock" && s.Item.Blocked == ""
		})
		if len(found.Stories) == 0 {
			continue
		}
		domain.SortFirst(found.Stories, func(s domain.StoryRef) bool { return s.Project == p.project })
		p.project, p.story = found.Stories[0].Project, found.Stories[0].ID
		if err := p.storyActs(ctx, verb, words[n:]); err != nil {
			return err
		}
		marks, reason := strings.Fields(fold.Text(text)), strings.Join(words[n:], " ")
		var others []views.PaletteOption
		for _, s := range found.Stories[1:min(len(found.Stories), paletteStories)] {
			var o views.PaletteOption
			switch verb {
			case "move":
				o = views.PaletteOf("Move", s, marks)
				o.Fill = "move"
			case "block":
				o = views.PaletteBlock(s, s.Item.Version, s.Item.Blocked, reason)
			default:
				o = views.PaletteUnblock(s, s.Item.Version, s.Item.Blocked, marks)
			}
			others = append(others, p.operators(o))
		}
		p.add("Other stories", "", others...)
		return nil
	}
	if verb == "unblock" && len(words) == 0 {
		var list []views.PaletteOption
		for _, a := range p.s.Alerts.Items {
			if a.Kind == domain.AlertBlocked && a.Story != nil && len(list) < paletteStories {
				unblock := views.PaletteUnblock(views.AlertStory(a), a.Story.Version, a.Story.Blocked, nil)
				list = append(list, p.operators(unblock))
			}
		}
		p.add("Blocked stories", "", list...)
	}
	return nil
}

// storyActs adds what can be done to the story, by one verb or, if that is "", by all.
func (p *palette) storyActs(ctx context.Context, verb string, words []string) error {
	found, err := p.c.service.Overview.Story(ctx, p.project, p.story, true)
	if domain.CodeOf(err) == domain.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	s := found.Story
	ref := domain.StoryRef{Project: s.Project, ID: s.ID, Name: s.Name, Stage: s.Stage}
	ref.StageTitle = p.c.service.Pipelines.StageWord(s.Project, s.Stage)
	shown := views.PaletteStory(ref, domain.Overdue{}, nil)
	var able, unable []views.PaletteOption
	put := func(o views.PaletteOption) {
		switch {
		case o.Why == "" && o.Post != "" && !p.may(domain.RoleOperator):
			o = o.Cannot(onlyOperators)
		case o.Why == "" && o.Post != "" && !s.File.Writable:
			o = o.Cannot("Its project server does not allow changes.")
		}
		if o.Why != "" && o.Why != views.ReasonFirst {
			unable = append(unable, o)
		} else {
			able = append(able, o)
		}
	}
	if verb == "" {
		able = append(able, p.answers(nil, func(q domain.Question) bool {
			return q.Project == s.Project && q.StoryID == s.ID
		})...)
	}
	switch {
	case s.File == nil:
		put(shown.Cannot("Nothing can be changed: its project server does not show it."))
	case verb == "":
		put(views.PaletteOption{Verb: "Move to", Name: "…", Note: ref.StageTitle + " now", Fill: "move "})
		put(views.PaletteOption{
			Verb: "Block", Name: "… with a reason", Note: s.Project, Fill: "block ", Signal: views.SignalStop,
		})
		if s.Blocked != "" {
			put(views.PaletteUnblock(ref, s.File.Version, s.Blocked, nil))
		}
		put(views.PaletteOption{Verb: "Assign", Name: "an agent …", Note: s.Project, Fill: "assign "})
	case verb == "move":
		for _, o := range p.moves(found, words) {
			put(o)
		}
	case verb == "block":
		put(views.PaletteBlock(ref, s.File.Version, s.Blocked, strings.Join(words, " ")))
	case verb == "unblock":
		put(views.PaletteUnblock(ref, s.File.Version, s.Blocked, nil))
	}
	for _, a := range found.Alerts {
		if verb == "" && a.Acknowledged == nil {
			able = append(able, p.operators(views.PaletteAlert(a, p.here, nil, now())))
		}
	}
	p.add(strings.TrimSpace(shown.Number+" "+shown.Name), s.Project, able...)
	p.add("Not possible here", "", unable...)
	return nil
}

// moves are the moves to stages whose names contain the words, the next stage first.
func (p *palette) moves(found service.StorySnapshot, words []string) (list []views.PaletteOption) {
	folded := strings.Fields(fold.Text(strings.Join(words, " ")))
	stages := found.Pipeline.Stages
	at := slices.IndexFunc(stages, func(s domain.Stage) bool { return s.Name == found.Story.Stage })
	order := make([]int, 0, len(stages))
	if at+1 < len(stages) {
		order = append(order, at+1)
	}
	for i := range stages {
		if i != at && i != at+1 {
			order = append(order, i)
		}
	}
	for _, i := range order {
		if !stages[i].Other && has(folded, stages[i].Title(), stages[i].Name) {
			list = append(list, views.PaletteMove(found.Story, stages, i, found.Charts.Stages, folded, now()))
		}
	}
	return list
}
