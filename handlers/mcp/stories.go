package mcp

import (
	"context"
	"maps"
	"slices"
	"strings"

	"switchyard/internal/domain"
)

type itemJSON struct {
	Project      string     `json:"project"`
	StoryID      string     `json:"story_id"`
	StoryName    string     `json:"story_name"`
	Stage        string     `json:"stage"`
	Blocked      string     `json:"blocked,omitempty"`
	MergeFailure string     `json:"merge_failure,omitempty"`
	Conflicts    bool       `json:"conflicts,omitempty"` // since a while ago; likewise Unmerged
	Unmerged     bool       `json:"unmerged,omitempty"`
	Stuck        bool       `json:"stuck,omitempty"`
	Claim        *claimJSON `json:"claim,omitempty"`
}

type claimJSON struct {
	By      string `json:"by"`
	AgentID string `json:"agent_id,omitempty"`
}

func encodeClaim(c *domain.Claim) *claimJSON {
	if c == nil {
		return nil
	}
	return &claimJSON{short(c.By), c.AgentID}
}

type unreachableJSON struct {
	Project string `json:"project"`
	Error   string `json:"error"`
}

type storiesJSON struct {
	Stories     []itemJSON        `json:"stories"`
	More        int               `json:"more"`
	Unreachable []unreachableJSON `json:"unreachable,omitempty"` // their stories are from their last answer
}

type storyFilter struct {
	Project *string `json:"project"`
	Stage   string  `json:"stage"`
	Trouble bool    `json:"trouble"`
}

func (s *Server) addStories() {
	add(s, tool{
		name: "list_stories", needs: domain.RoleViewer,
		description: "Stories on the boards, by stage. Narrow a list that is cut by project or stage.",
		arguments: `"project":{"type":"string","description":"all projects by default"},"stage":{"type":"string",` +
			`"description":"2_current, or current"},` +
			`"trouble":{"type":"boolean","description":"only those that are blocked, stuck, or cannot be or are not merged"}`,
	}, s.listStories)
	add(s, tool{
		name: "get_story", needs: domain.RoleViewer, required: []string{"story_id"}, ofProject: true,
		description: "Everything about a story: its text, state, version, commits, newest events, and how long it stayed " +
			"in each stage.",
		arguments: storyArguments,
	}, s.getStory)
	add(s, tool{
		name: "update_story", needs: domain.RoleOperator, agents: true, essential: true, ofProject: true,
		required: []string{"story_id"}, nullable: []string{"blocked"},
		description: "Move a story to another stage, block it with a reason, unblock it (blocked: null), tick one of its " +
			"boxes, or clear its merge failure. Returns its new state.",
		arguments: storyArguments + `,"stage":{"type":"string"},` +
			`"task":{"type":"object","required":["line","done"],"properties":{"path":{"type":"string"},` +
			`"line":{"type":"integer"},"done":{"type":"boolean"}},"description":"from its tasks"},` +
			`"blocked":{"type":["string","null"],"description":"why it is blocked; null unblocks it"},` +
			`"clear_merge_failure":{"type":"boolean"},` +
			`"version":{"type":"string","description":"from get_story: refuse the change if the story has changed since"},` +
			`"take_over":{"type":"boolean","description":"change it though somebody else has claimed it"},` +
			`"worktree":{"type":"string","description":"write it there"}`,
	}, s.updateStory)
}

const storyArguments = `"project":{"type":"string"},"story_id":{"type":"string"}`

type storyKey struct {
	Project string `json:"project"`
	StoryID string `json:"story_id"`
}

func (s *Server) listStories(ctx context.Context, in storyFilter) (storiesJSON, error) {
	_, pipelines := s.service.Pipelines.All(ctx, 0) // the caller may have just moved a story
	snapshot, claims := s.service.Overview.Snapshot(ctx), s.service.Claims.ByProject()
	var stories list[itemJSON]
	var unreachable list[unreachableJSON]
	stages, found := map[string]bool{}, false // those that exist, and whether the requested one does
	for _, p := range pipelines {
		if in.Project != nil && p.Project != *in.Project {
			continue
		}
		if !p.Reachable {
			unreachable.add(unreachableJSON{p.Project, short(p.Error)})
		}
		open := domain.OpenStages(p.Stages)
		for i, stage := range p.Stages {
			stages[short(stage.Name)] = true
			if in.Stage != "" && !stage.Matches(in.Stage) {
				continue
			}
			found = true
			for j := range stage.Items {
				item := &stage.Items[j]
				overdue := snapshot.Alerts.Overdue[p.Project]
				trouble, _ := item.Trouble()
				if in.Trouble && overdue.Of(item.StoryID) == "" && (i >= open || trouble == "") {
					continue
				}
				line := itemJSON{
					Project: p.Project, StoryID: item.StoryID, StoryName: short(item.StoryName), Stage: stage.Name,
					Blocked: short(item.Blocked), MergeFailure: short(item.MergeFailure),
					Conflicts: overdue.Has(domain.AlertConflicts, item.StoryID),
					Unmerged:  overdue.Has(domain.AlertUnmerged, item.StoryID),
					Stuck:     overdue.Has(domain.AlertStuck, item.StoryID),
				}
				if c, claimed := claims[p.Project][item.StoryID]; claimed {
					line.Claim = encodeClaim(&c)
				}
				stories.add(line)
			}
		}
	}
	if names := slices.Sorted(maps.Keys(stages)); len(names) > 0 && !found {
		return storiesJSON{}, domain.Errorf(domain.NotFound, "no project has a stage '%s'. The stages are: %s",
			short(in.Stage), strings.Join(names[:min(len(names), maxStages)], ", "))
	}
	return storiesJSON{stories.shown(), stories.more, unreachable.shown()}, nil
}
