package service

import (
	"context"
	"strings"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

// find returns a story as it is now. Of a server without single stories it is what the board shows.
func (s *Claims) find(ctx context.Context, p domain.Project, id string) (domain.Story, error) {
	story, err := s.stories.servers.Story(ctx, p, id)
	if domain.CodeOf(err) == domain.NotFound {
		item, stage := s.pipelines.find(ctx, p.Name, id)
		if item == nil {
			return story, domain.Errorf(domain.NotFound, "project '%s' has no story '%s'", p.Name, id)
		}
		story, err = domain.Story{Stage: stage, Blocked: item.Blocked}, nil
	}
	story.Project, story.ID = p.Name, id
	return story, err
}

// stillFree returns the story of a new claim, or errMoved if it has meanwhile been moved, blocked or removed.
func (s *Claims) stillFree(ctx context.Context, p domain.Project, c domain.Claim) (domain.Story, error) {
	story, err := s.find(ctx, p, c.StoryID)
	if domain.CodeOf(err) == domain.NotFound || err == nil && (story.Stage != c.Stage || story.Blocked != "") {
		return story, errMoved
	}
	return story, err
}

// newEntry returns the audit entry of a new claim of the actor, which was by's, "" for nobody's.
func (s *Claims) newEntry(ctx context.Context, by string) domain.AuditEntry {
	actor := domain.ActorOf(ctx)
	return domain.NewAuditEntry(clock.Now(), actor, domain.Change{
		Action: domain.StoryClaimed, Detail: was("claim", by, s.table.agents.nameOf(actor)),
	})
}

// move moves the story of a new claim to a stage, "" for none, and records that. Unless the stage was asked for, a
// server that does not move stories leaves it where it is.
func (s *Claims) move(
	ctx context.Context, p domain.Project, c wonClaim, before domain.Story, to string, asked bool,
) error {
	began, stage := clock.Now(), before.Stage
	writable := before.File != nil && before.File.Writable
	if to != "" && to != before.Stage && (asked || writable) {
		moved, err := s.patch(ctx, p, before, to)
		switch code := domain.CodeOf(err); {
		case err == nil:
			stage = moved
		case asked || code != domain.Forbidden && code != domain.Invalid:
			return err
		}
	}
	audit := s.stories.audit
	c.entry.Detail = domain.CutText(details(c.entry.Detail, was("stage", before.Stage, stage)))
	if err := s.table.record(ctx, &c.entry, s.stories.changesOf(ctx, before, nil, stage, began)); err != nil {
		audit.log.ErrorContext(ctx, "cannot store where a claimed story was moved", "error", err)
	}
	audit.logEntry(ctx, c.entry)
	return nil
}

// patch moves a story and returns its stage. It returns Forbidden and Invalid for what its server does not do, and
// errMoved for a story that has changed meanwhile.
func (s *Claims) patch(ctx context.Context, p domain.Project, before domain.Story, to string) (string, error) {
	if before.File == nil {
		return "", domain.Errorf(domain.Forbidden, "the project server does not move stories")
	}
	change := domain.EncodeJSON(map[string]string{"version": before.File.Version, "stage": to})
	status, body, err := s.stories.servers.PatchStory(ctx, p, before.ID, change)
	said := domain.CutText(strings.ToValidUTF8(strings.TrimSpace(string(body)), ""))
	switch {
	case err != nil:
		return "", err
	case status/100 == 2:
		return stageIn(body, to, nil), nil
	case status == 409, status == 404:
		return "", errMoved
	case status == 403:
		return "", domain.Errorf(domain.Forbidden, "%s", said)
	case status == 400:
		return "", domain.Errorf(domain.Invalid, "%s", said)
	}
	return "", domain.Errorf(domain.BadGateway, "the project server answered with status %d", status)
}

// giveBack ends a new claim, or returns it to whoever had it. It logs a failure: the claim then stays.
func (s *Claims) giveBack(ctx context.Context, c wonClaim) {
	if err := s.table.undo(ctx, c); err != nil && domain.CodeOf(err) != domain.NotFound {
		s.stories.audit.log.ErrorContext(ctx, "cannot give back a claim",
			"story", storyKey(c.Project, c.StoryID), "error", err)
	}
}
