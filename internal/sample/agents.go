package sample

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"

	"switchyard/internal/domain"
	"switchyard/internal/service"
)

// The sample's agents are known by their version, which has this before their number.
const agentVersion = "sample "

var agentLabels = []string{"loco-1", "loco-2"}

// output is what an agent reports line by line.
var output = []string{
	"reading the story", "writing a test that fails", "go test ./... FAIL", "writing the code", "go vet ./... ok",
	"go test ./... ok", "committing",
}

// crew are the agents, as far as they are there.
type crew struct {
	service *service.Service
	yard
}

func isOurs(a domain.RegisteredAgent) bool { return strings.HasPrefix(a.Version, agentVersion) }

func (c crew) known(i int) (domain.RegisteredAgent, bool) {
	version := agentVersion + agentLabels[i]
	for _, a := range c.service.Agents.All() {
		if a.Version == version {
			return a, true
		}
	}
	return domain.RegisteredAgent{}, false
}

// agent returns the agent of the project with an index. It joins as every agent does.
func (c crew) agent(ctx context.Context, i int) (domain.Agent, error) {
	if a, found := c.known(i); found {
		return a.Agent, nil
	}
	token, _, err := c.service.Agents.CreateJoinToken(ctx, projects[i].name)
	if err != nil {
		return domain.Agent{}, err
	}
	a, _, err := c.service.Agents.Join(ctx, token, &agentLabels[i], agentVersion+agentLabels[i])
	return a, err
}

// as returns a context for what an agent does itself.
func as(ctx context.Context, a domain.Agent) context.Context {
	return domain.WithActor(ctx, &domain.Actor{
		Who: a.Label, Via: domain.ViaAgent, Role: domain.RoleViewer, Project: a.Project, Account: "agent " + a.ID,
		AgentID: a.ID, Channel: domain.ChannelAPI,
	})
}

// work makes the agents claim stories and report what they do.
func (c crew) work(ctx context.Context) error {
	for i := range agentLabels {
		a, err := c.agent(ctx, i)
		if err != nil {
			return err
		}
		story, err := c.claim(as(ctx, a), a)
		if err != nil {
			return err
		}
		state, detail := domain.AgentIdle, ""
		if story != "" {
			n := rand.IntN(len(output))
			state, detail = domain.AgentRunning, story+"\n"+strings.Join(output[:n+1], "\n")
		}
		if err := c.beat(ctx, a, state, detail); err != nil {
			return err
		}
	}
	return nil
}

// rest makes the agents stop.
func (c crew) rest(ctx context.Context) error {
	for i := range agentLabels {
		if a, found := c.known(i); found && a.Presence != domain.AgentLeft {
			if err := c.beat(ctx, a.Agent, domain.AgentStopped, ""); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c crew) beat(ctx context.Context, a domain.Agent, state domain.AgentState, detail string) error {
	_, err := c.service.Agents.Heartbeat(ctx, a.ID, service.Heartbeat{State: &state, Detail: &detail, Assigned: a.Project})
	return err
}

// claim returns the story that an agent works on, "" for none. When its last one has gone on, it releases that and
// claims another.
func (c crew) claim(ctx context.Context, a domain.Agent) (string, error) {
	if !slices.Contains(c.registered(), a.Project) { // somebody has assigned it to another one, or to none
		return "", nil
	}
	claims := c.service.Claims.ByProject()[a.Project]
	board, _, err := c.board(a.Project)
	if err != nil {
		return "", err
	}
	var inWork []string
	for _, path := range slices.DeleteFunc(board[current], isHeld) {
		inWork = append(inWork, strings.TrimSuffix(filepath.Base(path), ".md"))
	}
	for id, known := range claims {
		if known.AgentID != a.ID {
			continue
		}
		if slices.Contains(inWork, id) {
			return id, nil
		}
		if err := c.service.Claims.Release(ctx, a.Project, id); err != nil {
			return "", err
		}
	}
	for _, id := range inWork {
		if _, taken := claims[id]; taken {
			continue
		}
		_, _, err := c.service.Claims.Claim(ctx, a.Project, service.ClaimRequest{StoryID: id})
		if code := domain.CodeOf(err); code == domain.NotFound || code == domain.Conflict { // somebody was faster
			return "", nil
		}
		return id, err
	}
	return "", nil
}

// goOn goes on with the story that asks when its question has been answered. While somebody looks the question is
// asked.
func (c crew) goOn(ctx context.Context) error {
	blocked, err := c.isBlocked()
	if err != nil || !blocked {
		return err
	}
	q, err := c.question(ctx)
	a, found := c.known(0)
	if err != nil || !found {
		return err
	}
	switch {
	case q.State == domain.QuestionAnswered:
		return c.unblock(as(ctx, a.Agent), projects[0].name, projects[0].idOf(asking))
	case q.State != domain.QuestionOpen && a.Presence == domain.AgentAlive:
		_, err = c.service.Questions.Ask(as(ctx, a.Agent), domain.Question{
			Kind: domain.QuestionChoice, Prompt: prompt, Options: []string{"The bank that we have", "The cheapest one"},
			Detail:  "Both work in the test. The bank costs 1.4 % and pays out the next day, the other 0.9 % and a week.",
			Project: projects[0].name, StoryID: projects[0].idOf(asking), Lasting: true,
		}, domain.MaxQuestionLife)
	}
	return err
}

// unblock unblocks the story that has asked, and moves it on.
func (c crew) unblock(ctx context.Context, project, id string) error {
	story, err := c.service.Stories.Now(ctx, project, id)
	if err != nil || story.File == nil {
		return err
	}
	fields := map[string]any{"version": story.File.Version, "blocked": nil}
	if story.Stage == stages[current] {
		fields["stage"] = stages[qa]
	}
	change, _ := json.Marshal(fields) // such values always encode
	status, body, err := c.service.Stories.Patch(ctx, project, id, change)
	if err == nil && status/100 != 2 {
		err = fmt.Errorf("the answered story stays blocked: %d %s", status, bytes.TrimSpace(body))
	}
	return err
}

// question returns the newest question about the story that asks, the zero Question if there is none.
func (c crew) question(ctx context.Context) (domain.Question, error) {
	list, err := c.service.Questions.List(ctx, projects[0].name, false, 50)
	for _, q := range list {
		if q.StoryID == projects[0].idOf(asking) {
			return q, err
		}
	}
	return domain.Question{}, err
}
