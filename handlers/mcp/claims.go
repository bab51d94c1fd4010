package mcp

import (
	"context"
	"encoding/json"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/web"
	"switchyard/internal/wire"
)

func (s *Server) addClaims() {
	add(s, tool{
		name: "claim_story", needs: domain.RoleOperator, agents: true, essential: true, ofProject: true,
		description: "Claim the next free story of a stage, or the one with story_id, so that nobody else works on it, " +
			"and move it to the stage to. An agent first gets what it has claimed before and goes on with. story is null if " +
			"none is free, or with the reason why you get none.",
		arguments: `"project":{"type":"string"},"story_id":{"type":"string"},"from":{"type":"string","description":"by ` +
			`default the stage where work waits"},"to":{"type":"string","description":"by default the next stage; none with ` +
			`story_id; \"\" does not move it"},"wait":{"type":"string","description":"for a free story, such as 30s; 50s ` +
			`at most"},` +
			`"take_over":{"type":"boolean","description":"from whoever has claimed story_id"},` +
			`"resume":{"type":"boolean","description":"whether your claimed stories go first"},` +
			`"worktree":{"type":"string","description":"where your changes are written"}`,
	}, s.claimStory)
	add(s, tool{
		name: "release_story", needs: domain.RoleOperator, agents: true, required: []string{"story_id"}, ofProject: true,
		description: "Give up the claim of a story, so that others can take it. It ends by itself when the story is done.",
		arguments:   storyArguments,
	}, func(ctx context.Context, in storyKey) (any, error) {
		return map[string]bool{"ok": true}, s.service.Claims.Release(ctx, in.Project, in.StoryID)
	})
}

func (s *Server) claimStory(ctx context.Context, in struct {
	storyKey
	From     string  `json:"from"`
	To       *string `json:"to"`
	Wait     string  `json:"wait"`
	TakeOver bool    `json:"take_over"`
	Resume   *bool   `json:"resume"`
	Worktree string  `json:"worktree"`
},
) (any, error) {
	wait, err := parseWait(in.Wait, "30s")
	if err != nil {
		return nil, err
	}
	request := service.ClaimRequest{
		StoryID: in.StoryID, From: in.From, To: wire.Text(in.To), Stay: in.To != nil && *in.To == "",
		TakeOver: in.TakeOver, Wait: min(wait, web.MaxHeldWait), Resume: in.Resume, Worktree: in.Worktree,
	}
	held, release, err := s.held.HoldFor(requestOf(ctx), request.Wait)
	if err != nil {
		return nil, err
	}
	defer release()
	story, found, err := s.service.Claims.Claim(held, in.Project, request)
	if err != nil || !found {
		err = hint(err, domain.NotFound, s.storyIDs(in.Project))
		err = hint(err, domain.Conflict, "Claim another one: without story_id you get the next that is free")
		answer := map[string]any{"story": nil}
		if why := s.service.Alerts.StopReason(ctx, in.Project); err == nil && why != "" {
			answer["reason"] = why
		}
		return answer, err
	}
	return map[string]any{"story": s.encodeClaimed(story)}, nil
}

// claimedJSON is a story for somebody about to work on it: get_story has the rest.
type claimedJSON struct {
	Project      string           `json:"project"`
	StoryID      string           `json:"story_id"`
	StoryName    string           `json:"story_name,omitempty"`
	Stage        string           `json:"stage,omitempty"`
	Blocked      string           `json:"blocked,omitempty"`
	MergeFailure string           `json:"merge_failure,omitempty"`
	Error        string           `json:"error,omitempty"`
	Path         string           `json:"path,omitempty"`
	FrontMatter  json.RawMessage  `json:"front_matter,omitempty"`
	Body         string           `json:"body,omitempty"`
	BodyCut      bool             `json:"body_cut,omitempty"`
	Criteria     *domain.Criteria `json:"criteria,omitempty"`
	DependsOn    []string         `json:"depends_on,omitempty"`
	WaitsFor     []string         `json:"waits_for,omitempty"`
	Fault        string           `json:"fault,omitempty"`
	Tasks        []domain.Task    `json:"tasks,omitempty"`
	Branch       string           `json:"branch,omitempty"`
	Worktree     string           `json:"worktree,omitempty"`
	Review       *wire.Review     `json:"review,omitempty"`
	Claim        *claimJSON       `json:"claim,omitempty"`
	Next         int64            `json:"next"`
}

func (s *Server) encodeClaimed(story domain.Story) claimedJSON {
	whole := encodeStory(story)
	claimed := claimedJSON{
		Project: story.Project, StoryID: story.ID, StoryName: whole.StoryName, Stage: short(story.Stage),
		Blocked: short(story.Blocked), MergeFailure: short(story.MergeFailure), Error: story.Error,
		Path: wire.Text(whole.Path), Body: wire.Text(whole.Body), BodyCut: whole.BodyCut, Criteria: whole.Criteria,
		DependsOn: whole.DependsOn, WaitsFor: whole.WaitsFor, Fault: short(wire.Text(whole.Fault)), Tasks: whole.Tasks,
		Branch: wire.Text(whole.Branch), Worktree: wire.Text(whole.Worktree), Review: whole.Review,
		Claim: encodeClaim(story.Claim), Next: s.service.Events.LastID(),
	}
	if string(whole.FrontMatter) != "{}" {
		claimed.FrontMatter = whole.FrontMatter
	}
	for i := range claimed.Tasks {
		claimed.Tasks[i].Text = short(claimed.Tasks[i].Text)
	}
	return claimed
}
