package bot

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

// maxLines is the most entries that an answer lists.
const maxLines = 25

// appendLines appends a line for each of the first maxLines of count items, and one that counts the others. The caller
// may pass only the first maxLines items.
func appendLines[T any](m Message, items []T, count int, line func(T) Line) Message {
	shown := items[:min(len(items), maxLines)]
	for _, item := range shown {
		m = append(m, line(item))
	}
	if hidden := count - len(shown); hidden > 0 {
		m = append(m, Line{Plain(fmt.Sprintf("and %d more", hidden))})
	}
	return m
}

// readCommands has the commands that change nothing.
type readCommands struct{ *commands }

func (c readCommands) projects(ctx context.Context, _ []word) Message {
	registry, pipelines := c.gateway.Pipelines.All(ctx, pipelineAge)
	if len(pipelines) == 0 {
		return plainf("No projects are registered.")
	}
	m := Message{{Bold(domain.Count(len(pipelines), "project", "projects"))}}
	return appendLines(m, pipelines, len(pipelines), func(p domain.ProjectPipeline) Line {
		return projectLine(p, p.Project == registry.Active)
	})
}

func projectLine(p domain.ProjectPipeline, active bool) Line {
	sign, text := "● ", "no stages"
	if !p.Reachable {
		sign, text = "■ ", "unreachable, "+Short(p.Error, MaxReason)
	} else if len(p.Stages) > 0 {
		text = strings.Join(domain.Map(p.Stages, func(s domain.Stage) string {
			return fmt.Sprintf("%s %d", stageTitle(s.Title()), len(s.Items))
		}), ", ")
	}
	line := Line{Plain(sign), Bold(p.Project)}
	if active {
		line = append(line, Plain(" (active)"))
	}
	return append(line, Plain(": "+text))
}

func (c readCommands) flow(ctx context.Context, words []word) Message {
	if len(words) == 0 {
		return usage("flow PROJECT")
	}
	return c.sentence(ctx, join(words), func(project string) (string, error) {
		return c.gateway.Flow.Sentence(ctx, time.UTC, project)
	})
}

func (c readCommands) forecast(ctx context.Context, words []word) Message {
	items := 0
	if last := len(words) - 1; last > 0 && !words[last].quoted {
		if n, err := strconv.Atoi(words[last].text); err == nil {
			if n < domain.MinFlowItems || n > domain.MaxFlowItems {
				return plainf("ITEMS must be a number from %s to %s.", Code("1"), Code("1000"))
			}
			items, words = n, words[:last]
		}
	}
	if len(words) == 0 {
		return usage("forecast PROJECT [ITEMS]")
	}
	return c.sentence(ctx, join(words), func(project string) (string, error) {
		return c.gateway.Flow.Forecast(ctx, project, items)
	})
}

// sentence answers with the sentence that tell returns about a project.
func (c readCommands) sentence(ctx context.Context, project string, tell func(project string) (string, error)) Message {
	if _, found := c.gateway.Projects.Registry().Find(project); !found {
		return plainf("Unknown project %s. Say %s for a list.", Code(project), Code("projects"))
	}
	sentence, err := tell(project)
	if err != nil {
		return c.failed(ctx, err)
	}
	return Message{{Bold(project), Plain(": " + sentence)}}
}

func (c readCommands) agents(context.Context, []word) Message {
	agents := c.gateway.Agents.Alive()
	sessions := c.sessions()
	if len(agents)+len(sessions) == 0 {
		return plainf("No agents are alive.")
	}
	var m Message
	if len(sessions) > 0 {
		m = append(m, Line{Bold(domain.Count(len(sessions), "session", "sessions"))})
		m = appendLines(m, sessions, len(sessions), c.sessionLine)
	}
	if len(agents) == 0 {
		return m
	}
	m = append(m, Line{Bold(domain.Count(len(agents), "agent", "agents"))})
	return appendLines(m, agents, len(agents), func(a domain.Agent) Line {
		assigned := Line{Plain("unassigned")}
		if a.Project != "" {
			assigned = Line{Plain("assigned to "), Bold(a.Project)}
		}
		return columns(Line{Bold(a.Label)}, Line{Code(a.ID)}, Line{Plain(string(a.State))}, assigned)
	})
}

// sessions returns the sessions of coding agents that have not ended, those waiting for a person first.
func (c readCommands) sessions() []domain.AgentSession {
	return slices.DeleteFunc(c.gateway.Sessions.List(), func(s domain.AgentSession) bool {
		return s.State == domain.SessionOver
	})
}

func (c readCommands) sessionLine(s domain.AgentSession) Line {
	where := Line{Plain("no story")}
	switch {
	case s.StoryID != "":
		where = Line{Bold(s.Project), Plain(" "), Code(s.StoryID)}
	case s.Project != "":
		where = Line{Bold(s.Project)}
	}
	state := string(s.State) + " for " + roughly(clock.Now().Sub(s.Since))
	return columns(Line{Bold(s.By)}, Line{Plain(state)}, where)
}

func (c readCommands) events(ctx context.Context, _ []word) Message {
	page, err := c.gateway.Events.Page(ctx, domain.EventQuery{Backward: true, Limit: 10})
	if err != nil {
		return c.failed(ctx, err)
	}
	if len(page.Events) == 0 {
		return plainf("No events yet.")
	}
	slices.Reverse(page.Events)
	m := plainf("%s (UTC)", Bold("Latest events"))
	return appendLines(m, page.Events, len(page.Events), func(e domain.Event) Line {
		return columns(Line{Plain(e.At.UTC().Format("2 Jan 15:04"))}, c.links.describe(e, c.gateway.Pipelines.StageWord))
	})
}

// pipelineAge is how old the pipelines in an answer may be.
const pipelineAge = 2 * time.Second

// status counts projects and agents, and lists what needs attention.
func (c readCommands) status(ctx context.Context, _ []word) Message {
	registry, pipelines := c.gateway.Pipelines.All(ctx, pipelineAge)
	alerts := c.gateway.Alerts.List(ctx)
	reachable := 0
	for _, p := range pipelines {
		if p.Reachable {
			reachable++
		}
	}
	active := Line{Plain("No project is active.")}
	if registry.Active != "" {
		active = Line{Plain("Active project: "), Bold(registry.Active)}
	}
	m := Message{active, {Plain(fmt.Sprintf("%s, %d reachable; %s alive",
		domain.Count(len(pipelines), "project", "projects"), reachable,
		domain.Count(len(c.gateway.Agents.Alive()), "agent", "agents")))}}
	waiting := 0
	sessions := c.sessions()
	for _, s := range sessions {
		if s.State == domain.SessionWaiting {
			waiting++
		}
	}
	if n := len(sessions); n > 0 {
		text := fmt.Sprintf("%s, %d waiting for somebody", domain.Count(n, "session", "sessions"), waiting)
		m = append(m, Line{Plain(text)})
	}
	if alerts.Open == 0 {
		return append(m, Line{Plain("● Nothing needs attention.")})
	}
	return appendLines(m, alerts.Items[:min(alerts.Open, len(alerts.Items))], alerts.Open, c.alertLine)
}

func (c readCommands) alertLine(a domain.Alert) Line {
	line := sign(a.Kind.Signal())
	if a.Story == nil {
		return append(line, Plain(Short(a.Text(), 2*MaxName+MaxReason)))
	}
	trouble := a.Kind.Word()
	if a.Kind == domain.AlertStuck {
		trouble += " in " + stageTitle(a.StageTitle)
	}
	d := domain.EventDetails{StoryID: a.Story.StoryID, StoryName: a.Story.StoryName, Reason: a.Reason}
	text := columns(Line{Bold(a.Project)}, Line{Plain(trouble)}, c.links.title(a.Project, d))
	return slices.Concat(line, text, reason(d))
}

func (c readCommands) story(ctx context.Context, ref domain.StoryRef, _ []word) Message {
	s, err := c.gateway.Stories.Get(ctx, ref.Project, ref.ID)
	if err != nil {
		return c.failed(ctx, err)
	}
	title := c.links.title(s.Project, domain.EventDetails{StoryID: s.ID, StoryName: s.Name})
	m := Message{columns(Line{Bold(s.Project)}, title)}
	if s.Error != "" {
		m = append(m, plainf("▲ The project server cannot be reached: %s. This is what was last known:", s.Error)...)
	}
	switch {
	case s.Stage != "":
		m = append(m, Line{Plain(stageTitle(c.gateway.Pipelines.StageWord(s.Project, s.Stage)) + since(s.Since))})
	case ref.Stage != "": // its server does not serve single stories
		m = append(m, Line{Plain(stageTitle(c.gateway.Pipelines.StageWord(ref.Project, ref.Stage)))})
	default:
		m = append(m, Line{Plain("Not on the board.")})
	}
	if s.Blocked != "" {
		m = append(m, Line{Plain("■ Blocked" + since(s.BlockedSince) + ": " + Short(s.Blocked, MaxReason))})
	}
	if s.MergeFailure != "" {
		m = append(m, Line{Plain("▲ Merge failed: " + Short(s.MergeFailure, MaxReason))})
	}
	if s.File != nil && s.File.Criteria != nil {
		m = append(m, Line{Plain(fmt.Sprintf("Criteria: %d of %d done", s.File.Criteria.Done, s.File.Criteria.Total))})
	}
	return m
}

func since(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " since " + t.UTC().Format("2 Jan 2006 15:04") + " UTC"
}
