package mcp

import (
	"context"
	"net/url"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"switchyard/internal/domain"
	"switchyard/internal/web"
)

const projectURI = "switchyard://projects/"

func (s *Server) addResources() {
	s.mcp.AddResourceTemplate(&sdk.ResourceTemplate{
		Name: "project", URITemplate: projectURI + "{name}", MIMEType: "application/json",
		Description: "A project: its stages, and its stories",
	}, s.readResource)
	s.mcp.AddResourceTemplate(&sdk.ResourceTemplate{
		Name: "story", URITemplate: projectURI + "{name}/stories/{story_id}", MIMEType: "application/json",
		Description: "A story, as returned by get_story",
	}, s.readResource)
}

func (s *Server) readResource(ctx context.Context, request *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	r, uri := requestOf(ctx), request.Params.URI
	name, id, isStory := strings.Cut(strings.TrimPrefix(uri, projectURI), "/stories/")
	name, nameErr := url.PathUnescape(name)
	id, idErr := url.PathUnescape(id)
	if nameErr != nil || idErr != nil {
		return nil, sdk.ResourceNotFoundError(uri)
	}
	var content any
	var err error
	if isStory {
		content, err = s.getStory(r.Context(), storyKey{name, id})
	} else {
		content, err = s.project(r.Context(), name)
	}
	switch {
	case domain.CodeOf(err) == domain.NotFound:
		return nil, sdk.ResourceNotFoundError(uri)
	case err != nil:
		return nil, s.explain(r, err)
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{
		{URI: uri, MIMEType: "application/json", Text: string(web.EncodeJSON(content))},
	}}, nil
}

// project returns the content of a project's resource.
func (s *Server) project(ctx context.Context, name string) (any, error) {
	stories, err := s.listStories(ctx, storyFilter{Project: &name})
	if err != nil {
		return nil, err
	}
	snapshot, err := s.service.Overview.Project(ctx, name)
	if err != nil {
		return nil, err
	}
	overview := s.service.Overview.Snapshot(ctx)
	project := encodeProject(snapshot.Pipeline, overview.Alerts.ByProject[name])
	return struct {
		projectJSON
		Active  bool       `json:"active"`
		Stories []itemJSON `json:"stories"`
		More    int        `json:"more"`
	}{project, snapshot.Active, stories.Stories, stories.More}, nil
}
