package mcp

import (
	"context"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/web"
)

func (s *Server) addClaims() {
	add(s, tool{
		name: "claim_story", needs: domain.RoleOperator, agents: true, required: []string{"project"},
		description: "Claim the next free story of a stage, or the one with story_id, so that nobody else works on it, and " +
			"move it to the stage to. story is null if none is free.",
		arguments: `"project":{"type":"string"},"story_id":{"type":"string"},"from":{"type":"string","description":"by ` +
			`default the stage where work waits"},"to":{"type":"string","description":"by default the next stage; none with ` +
			`story_id"},"wait":{"type":"string","description":"for a free story, such as 30s; 50s at most"},` +
			`"take_over":{"type":"boolean","description":"from whoever has claimed story_id"}`,
	}, s.claimStory)
	add(s, tool{
		name: "release_story", needs: domain.RoleOperator, agents: true, required: []string{"project", "story_id"},
		description: "Give up the claim of a story, so that others can take it. It ends by itself when the story is done.",
		arguments:   storyArguments,
	}, func(ctx context.Context, in storyKey) (any, error) {
		if _, err := s.findProject(in.Project); err != nil {
			return nil, err
		}
		return map[string]bool{"ok": true}, s.service.Claims.Release(ctx, in.Project, in.StoryID)
	})
}

func (s *Server) claimStory(ctx context.Context, in struct {
	storyKey
	From     string `json:"from"`
	To       string `json:"to"`
	Wait     string `json:"wait"`
	TakeOver bool   `json:"take_over"`
},
) (any, error) {
	if _, err := s.findProject(in.Project); err != nil {
		return nil, err
	}
	wait, err := parseWait(in.Wait, "30s")
	if err != nil {
		return nil, err
	}
	request := service.ClaimRequest{
		StoryID: in.StoryID, From: in.From, To: in.To, TakeOver: in.TakeOver, Wait: min(wait, web.MaxHeldWait),
	}
	held, release, err := s.held.HoldFor(requestOf(ctx), request.Wait)
	if err != nil {
		return nil, err
	}
	defer release()
	story, found, err := s.service.Claims.Claim(held, in.Project, request)
	if err != nil || !found {
		err = hint(err, domain.NotFound, "list_stories shows the ids")
		err = hint(err, domain.Conflict, "Claim another one: without story_id you get the next that is free")
		return map[string]any{"story": nil}, err
	}
	encoded := encodeStory(story)
	encoded.Next = s.service.Events.LastID()
	return map[string]any{"story": encoded}, nil
}
