package service

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

// Sessions are those of coding agents, as reported by their hooks. Hooks come by the hundred: they change memory only,
// and changes are stored once a second.
type Sessions struct {
	store     *database
	projects  *Projects
	agents    *agentTable
	claims    *claimTable
	questions *Questions
	pipelines *Pipelines
	table     table[domain.AgentSessionKey, domain.AgentSession]

	mu      sync.Mutex                                     // held while a session is changed in memory
	unsaved map[domain.AgentSessionKey]domain.AgentSession // not stored yet or, once dropped, not removed
}

func newSessions(o Options, claims *claimTable, pipelines *Pipelines, asks *Questions) *Sessions {
	s := &Sessions{
		store: o.store, projects: asks.projects, agents: asks.agents, claims: claims, questions: asks, pipelines: pipelines,
	}
	s.unsaved = map[domain.AgentSessionKey]domain.AgentSession{}
	s.table.read, s.table.key = s.read, domain.AgentSession.Key
	s.table.same = func(known, other domain.AgentSession) bool { return !other.Last.After(known.Last) }
	s.table.reloader = newReloader(o.Changes, domain.TopicSessions, s.table.load)
	asks.sessions, asks.table.edited = s, func(_, now []domain.Question) { s.questionsEnded(now) }
	return s
}

// Receive takes an event that the actor of ctx has sent, in memory only.
func (s *Sessions) Receive(ctx context.Context, e domain.HookEvent) {
	e, says := e.Identify()
	if !says {
		return
	}
	actor := domain.ActorOf(ctx)
	if actor.Project != "" {
		e.Project = actor.Project
	}
	key, now := domain.AgentSessionKey{Asker: actor.Holder(), ID: e.Session}, clock.Milli()
	by := s.agents.nameOf(actor)
	s.mu.Lock()
	defer s.mu.Unlock()
	one, known := s.table.get(key)
	if !known {
		one = domain.AgentSession{ID: key.ID, Asker: key.Asker}
		s.makeRoom(key.Asker)
	}
	one.By, one.AgentID = by, actor.AgentID
	s.put(one.After(e, now))
}

func (s *Sessions) put(one domain.AgentSession) {
	s.table.edit([]domain.AgentSession{one})
	s.unsaved[one.Key()] = one
}

func (s *Sessions) drop(one domain.AgentSession) {
	s.table.edit(nil, one.Key())
	one.Dropped = true
	s.unsaved[one.Key()] = one
}

func (s *Sessions) makeRoom(asker string) {
	own := s.table.keys(func(one domain.AgentSession) bool { return one.Asker == asker })
	if len(own) < domain.MaxAgentSessions {
		return
	}
	var oldest domain.AgentSession
	for i, key := range own {
		if one, _ := s.table.get(key); i == 0 || one.Last.Before(oldest.Last) {
			oldest = one
		}
	}
	s.drop(oldest)
}

// questionsEnded notes which of their questions have ended.
func (s *Sessions) questionsEnded(questions []domain.Question) {
	s.mu.Lock()
	defer s.mu.Unlock()
	askers := sync.OnceValue(s.byAsker)
	for _, q := range questions {
		if q.State == domain.QuestionOpen {
			continue
		}
		one, known := s.table.get(s.askedBy(q, askers()))
		if next := one.Answered(q); known && !next.Last.Equal(one.Last) {
			s.put(next)
		}
	}
}

// sessionsByAsker groups sessions, for those who look for the sessions of many questions.
type sessionsByAsker map[string][]domain.AgentSession

func (s *Sessions) byAsker() sessionsByAsker {
	askers := sessionsByAsker{}
	for _, one := range s.table.list() {
		askers[one.Asker] = append(askers[one.Asker], one)
	}
	return askers
}

// askedBy returns the key of the session that asked a question: the one that it names, or whose use of a tool it is
// about; otherwise the asker's live session, if there is exactly one.
func (s *Sessions) askedBy(q domain.Question, askers sessionsByAsker) (only domain.AgentSessionKey) {
	if q.Session != "" {
		return domain.AgentSessionKey{Asker: q.Asker, ID: q.Session}
	}
	now, live := clock.Now(), 0
	for _, one := range askers[q.Asker] {
		if q.UseID != "" && slices.Contains(one.Uses, q.UseID) {
			return one.Key()
		}
		if one.At(now, nil).State != domain.SessionOver {
			only, live = one.Key(), live+1
		}
	}
	if live != 1 {
		return domain.AgentSessionKey{}
	}
	return only
}

// Asking returns the session that a question names, as reported by its hooks.
func (s *Sessions) Asking(q domain.Question) (domain.AgentSession, bool) {
	return s.table.get(domain.AgentSessionKey{Asker: q.Asker, ID: q.Session})
}

// byToolUse returns the id of the asker's session that began a tool use, "" for none.
func (s *Sessions) byToolUse(asker, useID string) string {
	for _, one := range s.table.list() {
		if useID != "" && one.Asker == asker && slices.Contains(one.Uses, useID) {
			return one.ID
		}
	}
	return ""
}

// hasResumed reports whether the session that asked a question has gone on since.
func (s *Sessions) hasResumed(q domain.Question, askers sessionsByAsker) bool {
	one, _ := s.table.get(s.askedBy(q, askers))
	return one.WentOn.After(q.AskedAt)
}

// List returns all sessions as they are now: those waiting for a person first, longest first, and ended ones last.
func (s *Sessions) List() []domain.AgentSession {
	now, asks, links := clock.Now(), s.openQuestions(), s.links()
	var list []domain.AgentSession
	for _, one := range s.table.list() {
		asked := asks[one.Key()]
		var held *domain.Question
		if i := slices.IndexFunc(asked, func(q domain.Question) bool { return q.Held }); i >= 0 {
			held = &asked[i]
		}
		if one = one.At(now, held); one.Gone(now) {
			continue
		}
		one.Asks = len(asked) > 0
		if one.AgentID != "" {
			one.By = cmp.Or(s.agents.label(one.AgentID), one.By)
		}
		one.Project, one.StoryID = s.link(one, links)
		list = append(list, one)
	}
	slices.SortFunc(list, domain.CompareSessions)
	return list
}

// ByStory returns the sessions that work on stories, in the order of List, without ended ones.
func (s *Sessions) ByStory() map[domain.StoryKey][]domain.AgentSession {
	byStory := map[domain.StoryKey][]domain.AgentSession{}
	for _, one := range s.List() {
		if one.StoryID != "" && one.State != domain.SessionOver {
			byStory[one.Story()] = append(byStory[one.Story()], one)
		}
	}
	return byStory
}

// openQuestions returns the open questions of each session.
func (s *Sessions) openQuestions() map[domain.AgentSessionKey][]domain.Question {
	asks, askers := map[domain.AgentSessionKey][]domain.Question{}, s.byAsker()
	for _, q := range s.questions.Recent() {
		if q.State == domain.QuestionOpen {
			key := s.askedBy(q, askers)
			asks[key] = append(asks[key], q)
		}
	}
	return asks
}
