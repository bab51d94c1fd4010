package service

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

type Questions struct {
	store    *database
	audit    *Audit
	projects *Projects
	agents   *agentTable
	claims   *claimTable
	leader   domain.Leadership
	sessions *Sessions // the sessions of coding agents, who ask
	// permissionRole is who may answer permissions.
	permissionRole domain.Role
	// table has the questions that are open or ended a short while ago, abbreviated.
	table table[int64, domain.Question]
	held  heldQuestions
}

const (
	// shownEnded is how long an ended question is shown.
	shownEnded = time.Minute
	// questionCheck is how often to look for expired questions, and for those who wait to look again.
	questionCheck = time.Second
	// questionLife is how long ended questions are kept, endedQuestions how many of them, and questionSweep how often
	// others are removed.
	questionLife, endedQuestions, questionSweep = 90 * 24 * time.Hour, 10_000, time.Minute
)

func newQuestions(o Options, audit *Audit, projects *Projects, agents *agentTable, claims *claimTable) *Questions {
	s := &Questions{
		store: o.store, audit: audit, projects: projects, agents: agents, claims: claims, leader: o.Leadership,
		permissionRole: cmp.Or(o.PermissionRole, domain.RoleOperator), held: heldQuestions{began: clock.Now()},
	}
	s.table.read = func(ctx context.Context) ([]domain.Question, error) {
		return o.store.RecentQuestions(ctx, clock.Now().Add(-shownEnded))
	}
	s.table.key = func(q domain.Question) int64 { return q.ID }
	s.table.compare = func(a, b domain.Question) int { return cmp.Compare(a.ID, b.ID) }
	s.table.same = func(a, b domain.Question) bool { // nothing else of a question changes
		return a.State == b.State && a.Lasting == b.Lasting && a.HeldUntil.Equal(b.HeldUntil)
	}
	s.table.reloader = newReloader(o.Changes, domain.TopicQuestions, s.table.load)
	return s
}

// Recent returns the questions that are open or ended within the last minute, oldest first, with the beginnings of
// their prompts and answers, and without details, options and tools.
func (s *Questions) Recent() (list []domain.Question) {
	now := clock.Now()
	for _, q := range s.table.list() {
		if q = s.at(q, now); q.State == domain.QuestionOpen || now.Sub(q.Ended) < shownEnded {
			list = append(list, q)
		}
	}
	return list
}

func (s *Questions) at(q domain.Question, now time.Time) domain.Question {
	q = q.At(now)
	q.Held = q.State == domain.QuestionOpen && (s.held.has(q.ID) || q.HeldUntil.After(now))
	return q
}

func (s *Questions) Open() (n int) {
	now := clock.Now()
	for _, q := range s.table.list() {
		if q.State == domain.QuestionOpen && now.Before(q.Expires) {
			n++
		}
	}
	return n
}

// Changed returns a channel that is closed when a question may have changed. Call it before reading.
func (s *Questions) Changed() <-chan struct{} { return s.table.changedAny() }

// Ask asks a question for the actor of ctx; life is how long it is open, 0 for the usual time. An agent asks for its
// own project. If the same actor has already asked it, it returns that question, with Again set, while it is open, or
// answered without anybody having received the answer. It returns Invalid, NotFound for an unknown project, Forbidden,
// and RateLimited if too many are open or ended a short while ago.
func (s *Questions) Ask(ctx context.Context, q domain.Question, life time.Duration) (domain.Question, error) {
	actor := domain.ActorOf(ctx)
	if actor.AgentID == "" && !actor.Role.Allows(domain.RoleOperator) {
		return q, domain.Errorf(domain.Forbidden, "asking needs the role %s; yours is %s", domain.RoleOperator, actor.Role)
	}
	q.Project = cmp.Or(q.Project, actor.Project)
	if _, found := s.projects.Registry().Find(q.Project); !found && q.Project != "" {
		return q, projectNotFound(q.Project)
	}
	if q.StoryID != "" && q.Project == "" {
		return q, domain.Errorf(domain.Invalid, "project: is required with story_id")
	}
	if len(q.StoryID) > 2*domain.MaxText {
		return q, domain.Errorf(domain.Invalid, "story_id: is too long")
	}
	q.Asker, q.AgentID, q.By, q.State = actor.Holder(), actor.AgentID, s.agents.nameOf(actor), domain.QuestionOpen
	q.AskedAt = clock.Milli()
	q.Expires = q.AskedAt.Add(cmp.Or(life, domain.QuestionLife))
	if err := q.Check(); err != nil {
		return q, err
	}
	q.Key = questionKey(q)
	if !q.Lasting {
		q.HeldUntil = q.AskedAt.Add(holdLease) // by then somebody waits for it
	}
	if (q.Tool != nil || q.Kind == domain.QuestionPermission) && q.StoryID == "" {
		s.place(&q)
	}
	change := domain.Change{
		Action: domain.QuestionWasAsked, Subject: s.subject(q), Project: q.Project, Detail: domain.Cut(q.Prompt, 300),
	}
	var asked domain.Question
	err := s.table.write(ctx, func(ctx context.Context) ([]domain.Question, []int64, error) {
		err := s.audit.change(ctx, change, func(e *domain.AuditEntry) (err error) {
			asked, err = s.store.AddQuestion(ctx, e, q, channelName(actor), domain.AllowedQuestions)
			return err
		})
		return []domain.Question{asked.Brief()}, nil, err
	})
	if err != nil {
		return q, err
	}
	return s.at(asked, q.AskedAt), nil
}

// place finds out what a permission is for: what its session works on, or what the asker claimed last.
func (s *Questions) place(q *domain.Question) {
	project, storyID := s.sessions.storyOf(q.Asker, q.Session, s.sessions.links)
	if project == "" {
		project, storyID = s.claims.lastOf(q.Asker, q.Project)
	}
	if q.Project == "" || q.Project == project {
		q.Project, q.StoryID = project, storyID
	}
}

// channelName names the channel by which an actor asks: a question that came by several is answered on each.
func channelName(actor domain.Actor) string {
	return cmp.Or(string(actor.Channel), string(domain.ChannelAPI))
}

func (s *Questions) subject(q domain.Question) string {
	if q.StoryID != "" {
		return domain.StoryKey{Project: q.Project, ID: q.StoryID}.String()
	}
	return q.Project
}

func ParseQuestionID(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 || strconv.FormatInt(id, 10) != text {
		return 0, domain.Errorf(domain.NotFound, "there is no such question")
	}
	return id, nil
}

// Get returns a question as it is now. It returns NotFound.
func (s *Questions) Get(ctx context.Context, id int64) (domain.Question, error) {
	q, err := s.store.Question(ctx, id)
	return s.at(q, clock.Now()), notFound(err, "there is no such question")
}

// List returns the newest questions, newest first, with long tool inputs cut.
func (s *Questions) List(ctx context.Context, project string, open bool, limit int) ([]domain.Question, error) {
	now := clock.Now()
	list, err := s.store.Questions(ctx, project, open, now, limit)
	for i := range list {
		list[i] = s.at(list[i], now)
		list[i].Tool = list[i].Tool.Shorten()
	}
	return list, err
}

// AnsweredWithin returns the median time to an answer in the last 30 days, 0 if there was none.
func (s *Questions) AnsweredWithin(ctx context.Context) (time.Duration, error) {
	return s.store.AnsweredWithin(ctx, clock.Now().AddDate(0, 0, -30))
}

// MayAnswer returns Forbidden unless the actor may answer the question.
func (s *Questions) MayAnswer(actor domain.Actor, q domain.Question) error {
	needed := domain.RoleOperator
	if q.Kind == domain.QuestionPermission {
		needed = s.permissionRole
	}
	if !actor.Role.Allows(needed) {
		return domain.Errorf(domain.Forbidden, "answering this needs the role %s; yours is %s", needed, actor.Role)
	}
	return nil
}

// Answer answers a question for the actor of ctx. It returns NotFound, Forbidden, Conflict, saying who was first and
// what with, if the question is not open, and Invalid for what does not answer an open one.
func (s *Questions) Answer(ctx context.Context, id int64, given domain.Answer) (domain.Question, error) {
	q, err := s.Get(ctx, id)
	if err != nil {
		return q, err
	}
	actor := domain.ActorOf(ctx)
	if err := s.MayAnswer(actor, q); err != nil {
		return q, err
	}
	a, err := q.Complete(given)
	if err != nil && q.State == domain.QuestionOpen {
		return q, err
	}
	a.By, a.Via, a.At = s.agents.nameOf(actor), actor.Channel, clock.Milli()
	q.Answer = &a
	return s.end(ctx, q, domain.QuestionAnswered, domain.Change{
		Action: domain.QuestionWasAnswered, Subject: s.subject(q), Project: q.Project,
		Detail: details(domain.Cut(q.Prompt, 300), valueOf("answer", domain.Cut(a.Value, 300)), domain.Cut(a.Text, 300)),
	})
}

// Withdraw ends a question for its asker or an operator. It returns NotFound, Forbidden, and Conflict if it is not
// open.
func (s *Questions) Withdraw(ctx context.Context, id int64) error {
	q, err := s.Get(ctx, id)
	if err != nil {
		return err
	}
	if actor := domain.ActorOf(ctx); actor.Holder() != q.Asker && !actor.Role.Allows(domain.RoleOperator) {
		return domain.Errorf(domain.Forbidden, "this question is %s's", q.By)
	}
	_, err = s.end(ctx, q, domain.QuestionWithdrawn, domain.Change{
		Action: domain.QuestionWasWithdrawn, Subject: s.subject(q), Project: q.Project, Detail: domain.Cut(q.Prompt, 300),
	})
	return err
}

// end stores how a question ended, unless it has ended already, which is a Conflict.
func (s *Questions) end(
	ctx context.Context, q domain.Question, state domain.QuestionState, change domain.Change,
) (domain.Question, error) {
	if q.State != domain.QuestionOpen {
		return q, s.conflict(ctx, q.ID)
	}
	q.State, q.Ended = state, clock.Milli()
	q.Held = false
	err := s.table.write(ctx, func(ctx context.Context) ([]domain.Question, []int64, error) {
		err := s.audit.change(ctx, change, func(e *domain.AuditEntry) error { return s.store.EndQuestion(ctx, e, q) })
		return []domain.Question{q.Brief()}, nil, err
	})
	if domain.CodeOf(err) == domain.NotFound {
		return q, s.conflict(ctx, q.ID)
	}
	return q, err
}

func (s *Questions) conflict(ctx context.Context, id int64) error {
	q, err := s.Get(ctx, id)
	if err != nil {
		return err
	}
	return domain.Errorf(domain.Conflict, "this question is no longer open: it %s", q.Ending())
}
