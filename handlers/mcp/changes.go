package mcp

import (
	"context"
	"encoding/json"

	"switchyard/internal/domain"
	"switchyard/internal/wire"
)

// maxDiff is how much of a diff is shown, in bytes.
const maxDiff = 16 << 10

func (s *Server) addChanges() {
	add(s, tool{
		name: "get_changes", needs: domain.RoleViewer, required: []string{"story_id"}, ofProject: true,
		description: "What was made for a story on a branch or in a work tree, by default its first: files and diff. more " +
			"names files to ask for by path.",
		arguments: storyArguments + `,"branch":{"type":"string"},"worktree":{"type":"string"},"path":{"type":"string"}`,
	}, s.getChanges)
}

type changedJSON struct {
	Path    string `json:"path"`
	From    string `json:"from,omitempty"`
	Status  string `json:"status"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	Binary  bool   `json:"binary,omitempty"`
}

type changesJSON struct {
	Project     string        `json:"project"`
	StoryID     string        `json:"story_id"`
	Branch      string        `json:"branch,omitempty"`
	Worktree    string        `json:"worktree,omitempty"`
	Head        string        `json:"head"`
	Ahead       int           `json:"ahead"`
	Behind      int           `json:"behind"`
	Conflicts   []string      `json:"conflicts,omitempty"`
	Files       []changedJSON `json:"files"`
	MoreFiles   int           `json:"more_files,omitempty"`
	Uncommitted int           `json:"uncommitted"`
	Diff        string        `json:"diff"`
	More        []string      `json:"more,omitempty"`
}

func (s *Server) getChanges(ctx context.Context, in struct {
	storyKey
	Branch   string `json:"branch"`
	Worktree string `json:"worktree"`
	Path     string `json:"path"`
},
) (any, error) {
	status, answer, err := s.service.Stories.Changes(ctx, in.Project, in.StoryID,
		domain.ChangesQuery{Branch: in.Branch, Worktree: in.Worktree, Path: in.Path})
	if err != nil {
		return nil, err
	}
	var c wire.Changes
	if status != 200 {
		return readUpdate(in.Project, max(status, 400), answer)
	}
	if err := json.Unmarshal(answer, &c); err != nil {
		return nil, domain.WrapError(domain.BadGateway, err, "it answers with something other than changes")
	}
	shown := changesJSON{
		Project: in.Project, StoryID: in.StoryID, Branch: short(wire.Text(c.Branch)), Worktree: short(wire.Text(c.Worktree)),
		Head: short(c.Head), Ahead: c.Ahead, Behind: c.Behind, Uncommitted: len(c.Uncommitted.Files),
	}
	var conflicts, more list[string]
	for _, path := range c.Conflicts {
		conflicts.add(short(path))
	}
	var files list[changedJSON]
	texts := wire.DiffTexts(c.Files, c.Diff)
	for i, f := range c.Files {
		files.add(changedJSON{
			short(f.Path), short(wire.Text(f.From)), short(f.Status), wire.Number(f.Added), wire.Number(f.Removed), f.Binary,
		})
		switch part := texts[i]; {
		case part != "" && len(shown.Diff)+len(part) <= maxDiff:
			shown.Diff += part
		case part != "" && in.Path != "": // only that was requested
			shown.Diff = shorten(part, maxDiff)
		default:
			more.add(short(f.Path))
		}
	}
	shown.Conflicts, shown.More = conflicts.shown(), more.shown()
	shown.Files, shown.MoreFiles = files.shown(), files.more+max(0, c.More)
	return shown, nil
}
