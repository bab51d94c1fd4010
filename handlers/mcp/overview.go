package mcp

import (
	"cmp"
	"context"
	"slices"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/wire"
)

type overviewJSON struct {
	You        youJSON       `json:"you"`
	Active     string        `json:"active,omitempty"`
	Projects   []projectJSON `json:"projects,omitempty"`
	More       int           `json:"more"`
	Alerts     []alertJSON   `json:"attention,omitempty"`
	MoreAlerts int           `json:"more_attention"`
	Agents     int           `json:"agents"`
	Flow       string        `json:"flow"` // of all projects, in a sentence
	Next       int64         `json:"next"` // the newest event
}

// youJSON is who calls.
type youJSON struct {
	By      string          `json:"by"`
	AgentID string          `json:"agent_id,omitempty"`
	Project string          `json:"project,omitempty"`
	Claims  []heldClaimJSON `json:"claims,omitempty"`
	More    int             `json:"more,omitempty"`
}

type heldClaimJSON struct {
	Project string `json:"project"`
	StoryID string `json:"story_id"`
	Stage   string `json:"stage,omitempty"`
	Blocked string `json:"blocked,omitempty"`
}

func (s *Server) you(ctx context.Context) youJSON {
	actor := domain.ActorOf(ctx)
	by, held := s.service.Claims.Held(ctx)
	var claims list[heldClaimJSON]
	read := ""
	for _, c := range held {
		if c.Project != read { // what it claims it has just moved
			read = c.Project
			_, _ = s.service.Pipelines.One(ctx, read, 0) // otherwise as it was last known
		}
		line := heldClaimJSON{Project: c.Project, StoryID: c.StoryID}
		if item, stage := s.service.Pipelines.Known(c.Project, c.StoryID); item != nil {
			line.Stage, line.Blocked = stage.Name, short(item.Blocked)
		}
		claims.add(line)
	}
	return youJSON{short(by), actor.AgentID, actor.Project, claims.items, claims.more}
}

type projectJSON struct {
	Name      string      `json:"name"`
	Reachable bool        `json:"reachable"`
	Error     *string     `json:"error,omitempty"`
	Stages    []stageJSON `json:"stages,omitempty"`
	Alerts    int         `json:"attention"` // how many alerts are open
}

type stageJSON struct {
	Name    string `json:"name"`
	Stories int    `json:"stories"`
}

// maxStages is how many stages of a project are shown at most.
const maxStages = 20

func encodeProject(p domain.ProjectPipeline, alerts int) projectJSON {
	encoded := projectJSON{
		Name: p.Project, Reachable: p.Reachable, Error: shortOrNull(p.Error), Stages: []stageJSON{},
		Alerts: alerts,
	}
	for _, stage := range p.Stages[:min(len(p.Stages), maxStages)] {
		encoded.Stages = append(encoded.Stages, stageJSON{short(stage.Name), len(stage.Items)})
	}
	return encoded
}

type alertJSON struct {
	Key          string           `json:"key"`
	Kind         domain.AlertKind `json:"kind"`
	Project      *string          `json:"project,omitempty"`
	StoryID      *string          `json:"story_id,omitempty"`
	Stage        *string          `json:"stage,omitempty"`
	AgentID      *string          `json:"agent_id,omitempty"`
	Text         string           `json:"text"`
	SinceMS      int64            `json:"since_ms"`
	Acknowledged *string          `json:"acknowledged_by,omitempty"`
}

func encodeAlert(a domain.Alert) alertJSON {
	encoded := alertJSON{
		Key: a.Key(), Kind: a.Kind, Project: wire.OrNull(a.Project), Stage: shortOrNull(a.Stage),
		AgentID: wire.OrNull(a.AgentID),
		Text:    short(a.Text()), SinceMS: a.Since.UnixMilli(),
	}
	if a.Story != nil {
		encoded.StoryID = &a.Story.StoryID
	}
	if a.Acknowledged != nil {
		encoded.Acknowledged = &a.Acknowledged.By
	}
	return encoded
}

func (s *Server) addOverview() {
	add(s, tool{
		name: "overview", needs: domain.RoleViewer,
		description: "You and what you have claimed, the active project, each project's stages with their number of " +
			"stories, and what needs attention, most urgent first. next is the newest event, for wait_for_events.",
	}, func(ctx context.Context, _ struct{}) (any, error) { return s.overview(ctx) })
	add(s, tool{
		name: "search", needs: domain.RoleViewer, required: []string{"q"},
		description: "Find stories, projects and agents by words in their names or ids, including finished stories (stage " +
			"null), and stories by words in their texts.",
		arguments: `"q":{"type":"string","description":"1 to 200 characters"},"limit":{"type":"integer","minimum":1,` +
			`"maximum":50,"description":"of each kind; 10 by default"}`,
	}, s.search)
}

func (s *Server) overview(ctx context.Context) (overviewJSON, error) {
	next := s.service.Events.LastID()
	snapshot := s.service.Overview.Snapshot(ctx)
	byProject := snapshot.Alerts.ByProject
	pipelines := slices.Clone(snapshot.Pipelines)
	slices.SortStableFunc(pipelines, func(a, b domain.ProjectPipeline) int {
		return cmp.Compare(byProject[b.Project], byProject[a.Project])
	})
	var projects list[projectJSON]
	for _, p := range pipelines {
		projects.add(encodeProject(p, byProject[p.Project]))
	}
	alerts := list[alertJSON]{most: 20}
	for _, a := range snapshot.Alerts.Items {
		alerts.add(encodeAlert(a))
	}
	flow, err := s.service.Flow.Sentence(ctx, time.UTC)
	if err != nil {
		return overviewJSON{}, err
	}
	return overviewJSON{
		Flow: flow,
		You:  s.you(ctx), Active: snapshot.Registry.Active, Projects: projects.items, More: projects.more,
		Alerts: alerts.items, MoreAlerts: alerts.more + snapshot.Alerts.More,
		Agents: len(s.service.Agents.Alive()), Next: next,
	}, nil
}

func (s *Server) search(ctx context.Context, in struct {
	Q     string `json:"q"`
	Limit int    `json:"limit"`
},
) (any, error) {
	most := cmp.Or(in.Limit, 10)
	found, err := s.service.Search.Find(ctx, service.SearchQuery{Text: in.Q, Limit: most, Texts: true})
	if err != nil {
		return nil, err
	}
	type storyJSON struct {
		Project   string  `json:"project"`
		StoryID   string  `json:"story_id"`
		StoryName string  `json:"story_name"`
		Stage     *string `json:"stage"`
	}
	type textJSON struct {
		storyJSON
		Excerpt string `json:"excerpt"`
	}
	type named = map[string]string
	encode := func(f domain.StoryRef) storyJSON {
		return storyJSON{f.Project, f.ID, short(f.Name), shortOrNull(f.Stage)}
	}
	stories, texts := list[storyJSON]{most: most}, list[textJSON]{most: most}
	projects, agents := list[named]{most: most}, list[named]{most: most}
	for _, f := range found.Stories {
		stories.add(encode(f))
	}
	for _, t := range found.Texts {
		texts.add(textJSON{encode(t.StoryRef), short(t.Excerpt)})
	}
	for _, name := range found.Projects {
		projects.add(named{"name": name})
	}
	for _, a := range found.Agents {
		agents.add(named{"id": a.ID, "label": a.Label})
	}
	shown := len(stories.items) + len(texts.items) + len(projects.items) + len(agents.items)
	return map[string]any{
		"stories": stories.shown(), "texts": texts.shown(), "projects": projects.shown(), "agents": agents.shown(),
		"more": found.Total.All() - shown, "did_you_mean": wire.OrNull(found.Suggestion),
	}, nil
}

func (s *Server) addAlerts() {
	add(s, tool{
		name: "acknowledge", needs: domain.RoleOperator, required: []string{"key"},
		description: "Acknowledge something that needs attention: nobody is notified of it any more.",
		arguments: `"key":{"type":"string","description":"from overview"},"for":{"type":"string","description":"such as ` +
			`4h; by default until it ends or changes"}`,
	}, func(ctx context.Context, in struct {
		Key string  `json:"key"`
		For *string `json:"for"`
	},
	) (any, error) {
		var duration time.Duration
		if in.For != nil {
			var err error
			if duration, err = domain.ParseAcknowledgedFor(*in.For); err != nil {
				return nil, err
			}
		}
		if err := s.service.Alerts.Acknowledge(ctx, in.Key, duration); err != nil {
			return nil, hint(err, domain.NotFound, "It may already be over; overview shows the keys")
		}
		return map[string]bool{"ok": true}, nil
	})
}
