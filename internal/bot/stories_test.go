package bot_test

import (
	"context"
	"net/http"
	"strings"
	"time"

	"switchyard/internal/domain"
)

// fakeStories is what the service knows about stories beyond the boards of the fakeGateway.
type fakeStories struct {
	last   []domain.Stage              // of the unreachable project
	gone   []domain.StoryRef           // on no board
	edit   func(s *domain.Story)       // changes what Get returns
	patch  func() (int, []byte, error) // answers changes
	sent   []string                    // changes that were sent
	failed []domain.Item               // more stories of alpha
	taken  []domain.Acknowledgement
}

// Get finds the stories on the boards, and those that are gone.
func (g *fakeGateway) Get(ctx context.Context, project, id string) (domain.Story, error) {
	if ctx.Err() != nil {
		return domain.Story{}, ctx.Err()
	}
	_, pipelines := g.All(ctx, 0)
	for _, p := range pipelines {
		for _, stage := range p.Stages {
			for _, item := range stage.Items {
				if p.Project != project || item.StoryID != id {
					continue
				}
				s := domain.Story{
					Project: project, ID: id, Name: item.StoryName, Stage: stage.Name, Since: time.Unix(0, 0), Reachable: p.Reachable, Error: p.Error,
					File: &domain.StoryFile{Version: "v7", Writable: true, Criteria: &domain.Criteria{Done: 1, Total: 3}},
				}
				if item.Blocked != "" {
					s.Blocked, s.BlockedSince = item.Blocked, time.Unix(3600, 0)
				}
				if !p.Reachable {
					s.File = nil
				}
				if g.edit != nil {
					g.edit(&s)
				}
				return s, nil
			}
		}
	}
	for _, ref := range g.gone {
		if ref.Project == project && ref.ID == id {
			return domain.Story{Project: project, ID: id, Name: ref.Name, Reachable: true}, nil
		}
	}
	return domain.Story{}, domain.Errorf(domain.NotFound, "project '%s' has no story '%s'", project, id)
}

func (g *fakeGateway) Patch(_ context.Context, project, id string, change []byte) (int, []byte, error) {
	g.sent = append(g.sent, project+"/"+id+" "+string(change))
	if g.patch != nil {
		return g.patch()
	}
	return http.StatusOK, []byte("{}"), nil
}

func (g *fakeGateway) Stories(_ context.Context, text string, limit int) ([]domain.StoryRef, error) {
	if len(text) > 200 {
		return nil, domain.Errorf(domain.Invalid, "q: must be 1 to 200 characters, not only spaces")
	}
	var found []domain.StoryRef
	for _, ref := range g.gone {
		if strings.Contains(ref.ID, text) {
			found = append(found, ref)
		}
	}
	return found[:min(limit, len(found))], nil
}

// Acknowledge finds the alerts that List returns.
func (g *fakeGateway) Acknowledge(ctx context.Context, key string, duration time.Duration) error {
	for _, a := range g.List(ctx).Items {
		if a.Key() == key {
			taken := domain.Acknowledgement{Key: key, By: domain.ActorOf(ctx).Who, At: time.Now()}
			if duration > 0 {
				taken.Until = taken.At.Add(duration)
			}
			g.taken = append(g.taken, taken)
			return nil
		}
	}
	return domain.Errorf(domain.NotFound, "no alert has this key")
}
