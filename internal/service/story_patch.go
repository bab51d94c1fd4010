package service

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/wire"
)

// patch is a change of a story.
type patch struct {
	body      []byte // for its project server
	fields    map[string]json.RawMessage
	takeOver  bool
	wrong     error  // take_over is neither true nor false
	versioned bool   // whether it has a version, without which the project server refuses it
	worktree  string // the work tree to write in, "" for where the story stands
}

func parsePatch(change []byte) patch {
	p := patch{body: change}
	_ = json.Unmarshal(change, &p.fields) // the project server refuses anything but an object
	if ours, given := p.fields["take_over"]; given {
		if json.Unmarshal(ours, &p.takeOver) != nil {
			p.wrong = domain.Errorf(domain.Invalid, "take_over: must be true or false")
		}
		delete(p.fields, "take_over")
		p.body = domain.EncodeJSON(p.fields)
	}
	p.versioned = p.fields["version"] != nil
	delete(p.fields, "version")
	_ = json.Unmarshal(p.fields["worktree"], &p.worktree) // likewise
	delete(p.fields, "worktree")
	return p
}

// in returns the patch for writing in a work tree, "" for wherever the story is.
func (p patch) in(worktree string) patch {
	var fields map[string]json.RawMessage
	if worktree != "" && json.Unmarshal(p.body, &fields) == nil && fields != nil {
		fields["worktree"] = domain.EncodeJSON(worktree)
		p.body, p.worktree = domain.EncodeJSON(fields), worktree
	}
	return p
}

// moves reports whether the patch does more than operators may without taking over somebody else's claim: changing what
// blocks the story, its merge failure, and its boxes.
func (p patch) moves() bool {
	for field := range p.fields {
		if field != "blocked" && field != "merge_failure" && field != "task" {
			return true
		}
	}
	return false
}

// values returns the fields that the patch sets, each with its value before and after, "" for null. known is false if
// it has others.
func (p patch) values(before domain.Story) (set []fieldChange, known bool) {
	for _, field := range []fieldChange{
		{name: "stage", before: before.Stage},
		{name: "blocked", before: before.Blocked},
		{name: "merge_failure", before: before.MergeFailure},
	} {
		if raw, given := p.fields[field.name]; given && json.Unmarshal(raw, &field.after) == nil {
			set = append(set, field)
		}
	}
	var task domain.Task
	if raw, given := p.fields["task"]; given && json.Unmarshal(raw, &task) == nil {
		set = append(set, taskChange(before.File, task))
	}
	return set, len(set) == len(p.fields)
}

func taskChange(before *domain.StoryFile, task domain.Task) fieldChange {
	words := map[bool]string{true: "done", false: "open"}
	at := strings.TrimLeft(task.Path+" line "+strconv.Itoa(task.Line)+" ", " ")
	isSame := func(t domain.Task) bool { return t.Path == task.Path && t.Line == task.Line && t.Done == task.Done }
	same := before != nil && slices.ContainsFunc(before.Tasks, isSame)
	return fieldChange{"task", at + words[task.Done == same], at + words[task.Done]}
}

type fieldChange struct{ name, before, after string }

func (f fieldChange) changes() bool { return f.before != f.after }

// Patch sends a change of a story to its project server and returns the status and body of the response. It returns
// NotFound for an unknown project, BadGateway for a server that does not respond, Conflict for a move to the stage
// where the story is and for a story that somebody else has claimed, unless take_over is set, and Forbidden for taking
// over without being an operator.
func (s *Stories) Patch(ctx context.Context, project, id string, change []byte) (status int, body []byte, err error) {
	p, err := s.mayChange(ctx, project)
	if err != nil {
		return 0, nil, err
	}
	asked := parsePatch(change)
	if asked.wrong != nil {
		return 0, nil, asked.wrong
	}
	claim, err := s.claims.now(ctx, project, id)
	if err == nil && (asked.takeOver || asked.moves() || !domain.ActorOf(ctx).Role.Allows(domain.RoleOperator)) {
		err = mayTakeOver(ctx, claim, asked.takeOver)
	}
	if err != nil {
		return 0, nil, err
	}
	before, shown, err := s.before(ctx, p, id)
	if err != nil {
		return 0, nil, err
	}
	set, known := asked.values(before)
	// In another work tree it may differ from what is shown.
	elsewhere := asked.worktree != "" && (before.File == nil || asked.worktree != before.File.Worktree)
	idle := shown && known && !elsewhere && !slices.ContainsFunc(set, fieldChange.changes)
	if asked.fields["stage"] != nil && asked.versioned && idle && asked.worktree == "" {
		return 0, nil, domain.Errorf(domain.Conflict, "already there: the story is in %s", before.Stage)
	}
	began := clock.Now()
	defer s.events.making.begin(s.changesOf(ctx, before, set, stageIn(nil, before.Stage, set), began))()
	status, body, err = s.sendFrom(ctx, p, id, asked, claim)
	s.recent.Forget(storyKey(project, id))
	if err == nil && status/100 == 2 && (!idle || asked.takeOver) {
		s.patched(ctx, before, asked, stageIn(body, before.Stage, set), began, claim)
	}
	return status, body, err
}

// before returns a story as its project server shows it, or else as its board does: the server is asked to change it in
// either case.
func (s *Stories) before(ctx context.Context, p domain.Project, id string) (story domain.Story, shown bool, err error) {
	story, err = s.servers.Story(ctx, p, id)
	code := domain.CodeOf(err)
	switch {
	case code == domain.LoopDetected || code != "" && ctx.Err() != nil:
		return story, false, err
	case code != "":
		if item, stage := s.pipelines.find(ctx, p.Name, id); item != nil {
			story = domain.Story{Stage: stage, Blocked: item.Blocked, MergeFailure: item.MergeFailure}
		}
	}
	story.Project, story.ID = p.Name, id
	return story, code == "", nil
}

// sendFrom sends a change by a story's holder to the work tree of the claim, unless that is gone.
func (s *Stories) sendFrom(ctx context.Context, p domain.Project, id string, asked patch, claim *domain.Claim) (
	status int, body []byte, err error,
) {
	write := asked
	if claim != nil && claim.Holder == domain.ActorOf(ctx).Holder() && asked.worktree == "" {
		write = asked.in(claim.Worktree)
	}
	status, body, err = s.send(ctx, p, id, write)
	if err == nil && status == 400 && write.worktree != asked.worktree {
		return s.send(ctx, p, id, asked)
	}
	return status, body, err
}

// send sends a change to a project server, unless its caller has left; once sent, it is seen through. If the answer is
// lost, it asks once for the story: if that is as it was to be, the change was made.
func (s *Stories) send(ctx context.Context, p domain.Project, id string, asked patch) (int, []byte, error) {
	if ctx.Err() != nil {
		return 0, nil, ctx.Err()
	}
	ctx = context.WithoutCancel(ctx)
	status, body, err := s.servers.PatchStory(ctx, p, id, asked.body)
	if err == nil && status < 500 {
		return status, body, nil
	}
	now, lost := s.servers.Story(ctx, p, id)
	set, known := asked.values(now)
	if lost != nil || !known || len(set) == 0 || slices.ContainsFunc(set, fieldChange.changes) {
		return status, body, err
	}
	now.Project, now.ID = p.Name, id
	return 200, domain.EncodeJSON(wire.NewStory(now)), nil
}

// patched records what a patch changed, and ends the claim of a finished story, or passes it on.
func (s *Stories) patched(
	ctx context.Context, before domain.Story, asked patch, stage string, began time.Time, claim *domain.Claim,
) {
	set, _ := asked.values(before)
	changes := s.changesOf(ctx, before, set, stage, began)
	record := func(claim string, write func(*domain.AuditEntry) error) error {
		var parts []string
		for _, f := range set {
			part := changeOf(f.name, f.before, f.after)
			if asked.worktree != "" {
				part = cmp.Or(part, f.name+": "+orNone(f.after))
			}
			parts = append(parts, part)
		}
		parts = append(parts, valueOf("worktree", asked.worktree))
		return s.audit.change(ctx, domain.Change{
			Action: domain.StoryChanged, Subject: storyKey(before.Project, before.ID), Project: before.Project,
			Detail: details(append(parts, claim)...),
		}, write)
	}
	unclaimed := func(e *domain.AuditEntry) error { return s.claims.record(ctx, e, changes) }
	var err error
	switch next := s.claims.newClaim(ctx, before.Project, before.ID, stage); {
	case claim != nil && stage != before.Stage && domain.EndsClaim(s.pipelines.known(before.Project).stages, stage):
		err = record(changeOf("claim", claim.By, ""), func(e *domain.AuditEntry) error {
			return s.claims.record(ctx, e, changes, *claim)
		})
	case asked.takeOver && claim != nil && claim.Holder != next.Holder:
		err = record(changeOf("claim", claim.By, next.By), func(e *domain.AuditEntry) error {
			return s.claims.pass(ctx, e, *claim, next, changes...)
		})
		if domain.CodeOf(err) == domain.NotFound { // it has just ended
			err = record("", unclaimed)
		}
	default:
		err = record("", unclaimed)
	}
	if err != nil {
		s.audit.log.ErrorContext(ctx, "cannot store the audit entry of a change", "error", err)
	}
}

// changesOf returns the changes that events will report.
func (s *Stories) changesOf(
	ctx context.Context, before domain.Story, set []fieldChange, stage string, began time.Time,
) (changes []domain.StoryChange) {
	actor := domain.ActorOf(ctx)
	made := domain.StoryChange{
		Project: before.Project, StoryID: before.ID, At: began, By: s.claims.agents.nameOf(actor), Via: actor.Channel,
	}
	if stage != before.Stage && before.Stage != "" { // otherwise its former stage is unknown
		made.Type, made.Value = domain.StageTransition, domain.CutText(stage)
		changes = append(changes, made)
	}
	for _, f := range set {
		if f.name == "blocked" && f.after != "" && f.changes() {
			made.Type, made.Value = domain.StoryBlocked, domain.CutReason(f.after)
			changes = append(changes, made)
		}
	}
	return changes
}

// stageIn returns the stage of a story in a project server's response, or else the one that was requested.
func stageIn(body []byte, before string, set []fieldChange) string {
	var story struct {
		Stage string `json:"stage"`
	}
	if json.Unmarshal(body, &story) == nil && story.Stage != "" {
		return story.Stage
	}
	for _, f := range set {
		if f.name == "stage" {
			return f.after
		}
	}
	return before
}

// mayTakeOver returns Conflict for somebody else's claim that is not taken over, and Forbidden for taking over without
// being an operator. claim is nil for none.
func mayTakeOver(ctx context.Context, claim *domain.Claim, takeOver bool) error {
	actor := domain.ActorOf(ctx)
	switch {
	case takeOver && !actor.Role.Allows(domain.RoleOperator):
		return domain.Errorf(domain.Forbidden, "taking over needs the role %s", domain.RoleOperator)
	case claim != nil && !takeOver && claim.Holder != actor.Holder():
		return domain.Errorf(domain.Conflict, "story '%s' is claimed by %s", claim.StoryID, claim.By)
	}
	return nil
}
