package mcp

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"switchyard/internal/domain"
	"switchyard/internal/web"
)

type itemJSON struct {
	Project      string  `json:"project"`
	StoryID      string  `json:"story_id"`
	StoryName    string  `json:"story_name"`
	Stage        string  `json:"stage"`
	SinceMS      int64   `json:"since_ms"`
	Blocked      *string `json:"blocked"`
	MergeFailure *string `json:"merge_failure"`
	Stuck        bool    `json:"stuck"`
}

type unreachableJSON struct {
	Project string `json:"project"`
	Error   string `json:"error"`
}

type storiesJSON struct {
	Stories     []itemJSON        `json:"stories"`
	More        int               `json:"more"`
	Unreachable []unreachableJSON `json:"unreachable"` // their stories are those of their last answer
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
		arguments: `"project":{"type":"string","description":"all projects by default"},"stage":{"type":"string","description":"2_current, or current"},` +
			`"trouble":{"type":"boolean","description":"only those that are blocked, failed to merge, or are stuck"}`,
	}, func(ctx context.Context, in storyFilter) (any, error) { return s.listStories(ctx, in) })
	add(s, tool{
		name: "get_story", needs: domain.RoleViewer, required: []string{"project", "story_id"},
		description: "All about a story: its text, state, version, commits, newest events, and how long it stayed in each stage.",
		arguments:   storyArguments,
	}, func(ctx context.Context, in storyKey) (any, error) { return s.getStory(ctx, in) })
	add(s, tool{
		name: "update_story", needs: domain.RoleOperator, required: []string{"project", "story_id"}, nullable: []string{"blocked"},
		description: "Move a story to another stage, block it with a reason, unblock it (blocked: null), or clear its merge failure. Answers with how it is now.",
		arguments: storyArguments + `,"stage":{"type":"string","description":"its full name, as list_stories shows it"},` +
			`"blocked":{"type":["string","null"],"description":"why it is blocked; null unblocks it"},"clear_merge_failure":{"type":"boolean"},` +
			`"version":{"type":"string","description":"from get_story: refuse the change if the story has changed since"}`,
	}, s.updateStory)
}

const storyArguments = `"project":{"type":"string"},"story_id":{"type":"string"}`

type storyKey struct {
	Project string `json:"project"`
	StoryID string `json:"story_id"`
}

func (s *Server) listStories(ctx context.Context, in storyFilter) (storiesJSON, error) {
	if in.Project != nil {
		if _, err := s.findProject(*in.Project); err != nil {
			return storiesJSON{}, err
		}
	}
	_, pipelines := s.service.Pipelines.All(ctx, 0) // the caller may have just moved a story
	snapshot, err := s.service.Overview.Snapshot(ctx)
	if err != nil {
		return storiesJSON{}, err
	}
	var stories list[itemJSON]
	var unreachable list[unreachableJSON]
	stages := map[string]bool{} // that there are
	for _, p := range pipelines {
		if in.Project != nil && p.Project != *in.Project {
			continue
		}
		if !p.Reachable {
			unreachable.add(unreachableJSON{p.Project, short(p.Error)})
		}
		stuck := map[string]bool{}
		for _, id := range snapshot.Alerts.Stuck[p.Project] {
			stuck[id] = true
		}
		_, done := domain.WorkStages(p.Stages)
		for i, stage := range p.Stages {
			stages[short(stage.Name)] = true
			if in.Stage != "" && in.Stage != stage.Name && !strings.EqualFold(in.Stage, stageWord(stage.Name)) {
				continue
			}
			for j := range stage.Items {
				item := &stage.Items[j]
				if in.Trouble && !(stuck[item.StoryID] || i < done && (item.Blocked != "" || item.MergeFailure != "")) {
					continue
				}
				stories.add(encodeItem(p.Project, stage.Name, item, stuck[item.StoryID]))
			}
		}
	}
	if in.Stage != "" && len(stories.items) == 0 && len(stages) > 0 && !hasStage(stages, in.Stage) {
		return storiesJSON{}, domain.Errorf(domain.NotFound, "no project here has a stage '%s'. There are: %s", short(in.Stage), names(stages))
	}
	return storiesJSON{stories.shown(), stories.more, unreachable.shown()}, nil
}

func encodeItem(project, stage string, item *domain.Item, stuck bool) itemJSON {
	return itemJSON{
		Project: project, StoryID: item.StoryID, StoryName: short(item.StoryName), Stage: stage, SinceMS: item.Since.UnixMilli(),
		Blocked: shortOrNull(item.Blocked), MergeFailure: shortOrNull(item.MergeFailure), Stuck: stuck,
	}
}

// stageWord is the stage's name without its number.
func stageWord(stage string) string {
	_, word, _ := strings.Cut(stage, "_")
	return word
}

func hasStage(stages map[string]bool, stage string) bool {
	for name := range stages {
		if name == stage || strings.EqualFold(stageWord(name), stage) {
			return true
		}
	}
	return false
}

func names(set map[string]bool) string {
	all := make([]string, 0, len(set))
	for name := range set {
		all = append(all, name)
	}
	slices.Sort(all)
	return strings.Join(all[:min(len(all), maxStages)], ", ")
}

// nullable is an argument for which null is not the same as none.
type nullable struct{ raw json.RawMessage }

func (n *nullable) UnmarshalJSON(raw []byte) error {
	n.raw = slices.Clone(raw)
	return nil
}

func (s *Server) updateStory(ctx context.Context, in struct {
	storyKey
	Stage             *string  `json:"stage"`
	Blocked           nullable `json:"blocked"`
	ClearMergeFailure bool     `json:"clear_merge_failure"`
	Version           *string  `json:"version"`
},
) (any, error) {
	if _, err := s.findProject(in.Project); err != nil {
		return nil, err
	}
	change := map[string]any{}
	if in.Stage != nil {
		change["stage"] = *in.Stage
	}
	if in.Blocked.raw != nil {
		change["blocked"] = in.Blocked.raw
	}
	if in.ClearMergeFailure {
		change["merge_failure"] = nil
	}
	if len(change) == 0 {
		return nil, domain.Errorf(domain.Invalid, "nothing to change: give stage, blocked or clear_merge_failure")
	}
	if in.Version == nil {
		story, err := s.story(ctx, in.storyKey)
		if err != nil {
			return nil, err
		}
		if story.File == nil {
			return nil, domain.Errorf(domain.Conflict, "the story cannot be changed now: %s", noFile(story))
		}
		in.Version = &story.File.Version
	}
	change["version"] = *in.Version
	status, answer, err := s.service.Stories.Patch(ctx, in.Project, in.StoryID, web.EncodeJSON(change))
	if err != nil {
		return nil, err
	}
	return readUpdate(in.Project, status, answer)
}

// noFile says why nothing is known of a story's file.
func noFile(story domain.Story) string {
	if story.Error != "" {
		return "the project server " + story.Error
	}
	return "it is no longer on the board"
}

// readUpdate reads a project server's answer to a change.
func readUpdate(project string, status int, answer []byte) (any, error) {
	reason := short(strings.TrimRight(string(answer), ".\n"))
	switch {
	case status == 409:
		return nil, domain.Errorf(domain.Conflict, "%s. Read the story again with get_story, then decide again", reason)
	case status == 403:
		return nil, domain.Errorf(domain.Forbidden, "%s. Only its operator can allow that: tell the people you work for", reason)
	case status == 404:
		return nil, domain.Errorf(domain.NotFound, "%s. The project server has no such story: list_stories shows those that are there", reason)
	case status >= 400:
		return nil, domain.Errorf(domain.Invalid, "the project server refuses the change (HTTP status %d): %s", status, reason)
	}
	now := struct {
		Project      string  `json:"project"`
		StoryID      string  `json:"story_id"`
		StoryName    string  `json:"story_name"`
		Stage        string  `json:"stage"`
		Blocked      *string `json:"blocked"`
		MergeFailure *string `json:"merge_failure"`
		Version      string  `json:"version"`
	}{}
	if err := json.Unmarshal(answer, &now); err != nil {
		return nil, domain.WrapError(domain.BadGateway, err, "it answers with something else than a story")
	}
	now.Project = project // not what the server says
	return now, nil
}
