package service

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/wire"
)

type mergeAnswer struct {
	status int
	body   []byte
}

// Merge has a project server merge a story's branch, and returns the status and body of its answer. It goes on if its
// caller leaves. It returns NotFound, BadGateway for a server that does not respond, Invalid without branch or head,
// and Conflict while the project has another merge.
func (s *Reviews) Merge(
	ctx context.Context, project, id string, asked wire.Merge,
) (status int, body []byte, err error) {
	p, err := s.stories.mayChange(ctx, project)
	if err != nil {
		return 0, nil, err
	}
	for name, value := range map[string]string{"branch": asked.Branch, "head": asked.Head} {
		if value == "" || len(value) > domain.MaxText {
			return 0, nil, domain.Errorf(domain.Invalid, "%s: must say what is merged", name)
		}
	}
	before, err := s.stories.Now(ctx, project, id)
	if err != nil {
		return 0, nil, err
	}
	before.Project, before.ID = project, id
	board, err := s.stories.pipelines.One(ctx, project, claimBoardAge)
	if err != nil {
		return 0, nil, err
	}
	stage := before.Stage
	if asked.Stage != nil {
		stage = *asked.Stage
	} else if done := domain.DoneStage(board.Stages); done >= 0 && board.Stages[done].Fixed == "" {
		stage = board.Stages[done].Name
	}
	m := domain.MergeAttempt{StoryID: id, Branch: asked.Branch, Since: clock.Now()}
	if under, began := s.beginMerge(project, m); !began {
		return 0, nil, domain.Errorf(domain.Conflict, "%s is being merged for story '%s'", under.Branch, under.StoryID)
	}
	merge := func(ctx context.Context) (mergeAnswer, error) {
		status, body, err := s.askMerge(ctx, p, before, stage, asked)
		if err != nil {
			m.Refused = domain.MessageOf(err)
		} else if status/100 != 2 {
			m.Refused = strings.TrimSpace(domain.CutReason(string(body)))
		}
		s.endMerge(project, m)
		return mergeAnswer{status, body}, err
	}
	got, err := shareCall(ctx, &s.merges, storyKey(project, id)+m.Since.String(), merge)
	return got.status, got.body, err
}

func (s *Reviews) askMerge(
	ctx context.Context, p domain.Project, before domain.Story, stage string, asked wire.Merge,
) (status int, body []byte, err error) {
	began := clock.Now()
	defer s.stories.events.making.begin(s.stories.changesOf(ctx, before, nil, stage, began))()
	status, body, err = s.stories.servers.Merge(ctx, p, before.ID, domain.EncodeJSON(asked))
	s.stories.recent.Forget(storyKey(p.Name, before.ID))
	if err != nil || status/100 != 2 {
		return status, body, err
	}
	var made wire.Merged
	_ = json.Unmarshal(body, &made)                               // without the commit, the message leaves it out
	if seen := clock.Now().Add(-time.Minute); seen.After(began) { // its event comes at the end
		began = seen
	}
	changes := s.stories.changesOf(ctx, before, nil, stage, began)
	change := domain.Change{
		Action: domain.StoryMerged, Subject: storyKey(p.Name, before.ID), Project: p.Name,
		Detail: details(asked.Branch+" at "+domain.Truncate(asked.Head, shownHash),
			valueOf("commit", domain.Truncate(made.Commit, shownHash)), changeOf("stage", before.Stage, stage)),
	}
	record := func(e *domain.AuditEntry) error { return s.stories.claims.record(ctx, e, changes) }
	if err := s.stories.audit.change(ctx, change, record); err != nil {
		s.stories.audit.log.ErrorContext(ctx, "cannot store the audit entry of a merge", "error", err)
	}
	return status, body, nil
}

// beginMerge notes a merge of a project, unless one is under way, which it returns.
func (s *Reviews) beginMerge(project string, m domain.MergeAttempt) (under domain.MergeAttempt, began bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if under, is := s.merging[project]; is && under.Refused == "" {
		return under, false
	}
	if s.merging == nil {
		s.merging = map[string]domain.MergeAttempt{}
	}
	s.merging[project] = m
	return m, true
}

func (s *Reviews) endMerge(project string, m domain.MergeAttempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.merging[project] = m; m.Refused == "" {
		delete(s.merging, project)
	}
}

// MergeAttempt returns the merge of a story that is under way or was refused, nil for none.
func (s *Reviews) MergeAttempt(project, id string) *domain.MergeAttempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m, is := s.merging[project]; is && m.StoryID == id {
		return &m
	}
	return nil
}
