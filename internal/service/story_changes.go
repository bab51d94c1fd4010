package service

import (
	"context"
	"encoding/json"

	"switchyard/internal/domain"
)

// Patch sends a change of a story to its project server and returns status and body of the response. It returns
// NotFound for an unknown project and BadGateway for a server that does not respond.
func (s *Stories) Patch(ctx context.Context, project, id string, change []byte) (status int, body []byte, err error) {
	p, err := s.mayChange(ctx, project)
	if err != nil {
		return 0, nil, err
	}
	before, stage := s.pipelines.find(ctx, project, id)
	status, body, err = s.servers.PatchStory(ctx, p, id, change)
	s.recent.Forget(storyKey(project, id))
	if err == nil && succeeded(status) {
		s.audit.changed(ctx, domain.Change{
			Action: domain.StoryChanged, Subject: project + "/" + id, Detail: storyChange(before, stage, change),
			Project: project,
		})
	}
	return status, body, err
}

// Create sends a new story, as Patch does.
func (s *Stories) Create(ctx context.Context, project string, story []byte) (status int, body []byte, err error) {
	p, err := s.mayChange(ctx, project)
	if err != nil {
		return 0, nil, err
	}
	status, body, err = s.servers.CreateStory(ctx, p, story)
	if err == nil && succeeded(status) {
		var made struct {
			ID    string `json:"story_id"`
			Name  string `json:"story_name"`
			Stage string `json:"stage"`
		}
		_ = json.Unmarshal(body, &made) // fields that other implementations omit stay empty
		s.audit.changed(ctx, domain.Change{
			Action: domain.StoryCreated, Subject: project + "/" + made.ID,
			Detail: details(is("name", made.Name), is("stage", made.Stage)), Project: project,
		})
	}
	return status, body, err
}

// succeeded reports whether a status is 2xx.
func succeeded(status int) bool { return status >= 200 && status < 300 }

// mayChange returns a project whose stories the actor may change. It returns NotFound and Forbidden.
func (s *Stories) mayChange(ctx context.Context, project string) (domain.Project, error) {
	p, found := s.projects.Registry().Find(project)
	if !found {
		return domain.Project{}, projectNotFound(project)
	}
	return p, domain.ActorOf(ctx).CheckScope(project)
}

// storyChange describes a requested change, and the story as the gateway last saw it, which may be slightly out of
// date.
func storyChange(before *domain.Item, stage string, change []byte) string {
	var asked map[string]json.RawMessage
	_ = json.Unmarshal(change, &asked) // the project server has accepted it
	var blocked, failure string
	if before != nil {
		blocked, failure = before.Blocked, before.MergeFailure
	}
	var parts []string
	fields := []struct{ name, before string }{{"stage", stage}, {"blocked", blocked}, {"merge_failure", failure}}
	for _, field := range fields {
		raw, ok := asked[field.name]
		if !ok {
			continue
		}
		var now string // "" for null
		if json.Unmarshal(raw, &now) == nil {
			parts = append(parts, field.name+": "+orNone(field.before)+" → "+orNone(now))
		}
	}
	return details(parts...)
}
