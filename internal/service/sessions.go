package service

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

// Sessions are those of coding agents, as their hooks tell. Hooks come by the hundred: they change memory only, and
// once a second what has changed is stored.
type Sessions struct {
	store     *database
	projects  *Projects
	agents    *agentTable
	claims    *claimTable
	questions *Questions
	pipelines *Pipelines
	table     table[domain.AgentSessionKey, domain.AgentSession]

	mu sync.Mutex // held while a session is changed in memory
	// unsaved are the sessions that are not stored yet, or being stored; dropped likewise those that are to be removed.
	unsaved, saving, dropped sessionsByKey
}

type sessionsByKey = map[domain.AgentSessionKey]domain.AgentSession

func newSessions(o Options, claims *claimTable, pipelines *Pipelines, asks *Questions) *Sessions {
	s := &Sessions{
		store: o.store, projects: asks.projects, agents: asks.agents, claims: claims, questions: asks, pipelines: pipelines,
	}
	s.unsaved, s.dropped = sessionsByKey{}, sessionsByKey{}
	s.table.key = domain.AgentSession.Key
	s.table.compare = domain.CompareSessions
	s.table.same = func(known, other domain.AgentSession) bool { return !other.Last.After(known.Last) }
	s.table.stored = newReloader(o.Changes, domain.TopicSessions, s.load)
	asks.sessions, asks.table.edited = s, func(_, now []domain.Question) { s.asked(now) }
	return s
}

// Heard takes an event that the actor of ctx has sent, in memory only.
func (s *Sessions) Heard(ctx context.Context, e domain.HookEvent) {
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
	s.keep(one.After(e, now))
}

// keep puts a session into memory and notes that it has to be stored. The caller holds mu.
func (s *Sessions) keep(one domain.AgentSession) {
	s.table.edit([]domain.AgentSession{one})
	delete(s.dropped, one.Key())
	s.unsaved[one.Key()] = one
}

// makeRoom ends an asker's oldest session if there is no room for one more. The caller holds mu.
func (s *Sessions) makeRoom(asker string) {
	s.table.mu.RLock()
	n, oldest := 0, domain.AgentSession{}
	for _, one := range s.table.rows {
		if one.Asker != asker {
			continue
		}
		if n++; oldest.ID == "" || one.Last.Before(oldest.Last) {
			oldest = one
		}
	}
	s.table.mu.RUnlock()
	if n >= domain.MaxAgentSessions {
		s.drop(oldest)
	}
}

// drop forgets a session. The caller holds mu.
func (s *Sessions) drop(one domain.AgentSession) {
	s.table.edit(nil, one.Key())
	delete(s.unsaved, one.Key())
	s.dropped[one.Key()] = one
}

// asked notes which of their questions have ended.
func (s *Sessions) asked(questions []domain.Question) {
	s.mu.Lock()
	defer s.mu.Unlock()
	askers := sync.OnceValue(s.byAsker)
	for _, q := range questions {
		if q.State == domain.QuestionOpen {
			continue
		}
		if one, known := s.of(q, askers()); known {
			if next := one.Answered(q); !next.Last.Equal(one.Last) {
				s.keep(next)
			}
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

// of returns the session that has asked a question, as it is now: the one that it names, or whose use of a tool it is
// about, else the one live session of its asker.
func (s *Sessions) of(q domain.Question, askers sessionsByAsker) (domain.AgentSession, bool) {
	if q.Session != "" {
		return s.Asking(q)
	}
	var live []domain.AgentSession
	now := clock.Now()
	for _, one := range askers[q.Asker] {
		switch {
		case q.UseID != "" && slices.Contains(one.Uses, q.UseID):
			return s.table.get(one.Key())
		case one.At(now, nil).State != domain.SessionOver:
			live = append(live, one)
		}
	}
	if len(live) == 1 {
		return s.table.get(live[0].Key())
	}
	return domain.AgentSession{}, false
}

// Asking returns the session that a question names, as its hooks have told it.
func (s *Sessions) Asking(q domain.Question) (domain.AgentSession, bool) {
	return s.table.get(domain.AgentSessionKey{Asker: q.Asker, ID: q.Session})
}

// using returns the id of the asker's session that has begun a use of a tool, "" for none.
func (s *Sessions) using(asker, useID string) string {
	for _, one := range s.table.list() {
		if useID != "" && one.Asker == asker && slices.Contains(one.Uses, useID) {
			return one.ID
		}
	}
	return ""
}

// wentOn reports whether the session that has asked a question went on since.
func (s *Sessions) wentOn(q domain.Question, askers sessionsByAsker) bool {
	one, known := s.of(q, askers)
	return known && one.WentOn.After(q.AskedAt)
}

// List returns all sessions as they are now: those that wait for a person first, longest first, and ended ones last.
func (s *Sessions) List() []domain.AgentSession {
	now, asks, links := clock.Now(), s.asks(), s.links()
	var list []domain.AgentSession
	for _, one := range s.table.list() {
		if one = s.at(one, now, asks[one.Key()], links); !one.Gone(now) {
			list = append(list, one)
		}
	}
	slices.SortFunc(list, domain.CompareSessions)
	return list
}

// ByStory returns the sessions that work on stories, in the order of List, without those that ended.
func (s *Sessions) ByStory() map[domain.StoryKey][]domain.AgentSession {
	byStory := map[domain.StoryKey][]domain.AgentSession{}
	for _, one := range s.List() {
		if one.StoryID != "" && one.State != domain.SessionOver {
			byStory[one.Story()] = append(byStory[one.Story()], one)
		}
	}
	return byStory
}

// asks returns the open questions of each session.
func (s *Sessions) asks() map[domain.AgentSessionKey][]domain.Question {
	asks, askers := map[domain.AgentSessionKey][]domain.Question{}, s.byAsker()
	for _, q := range s.questions.Recent() {
		if q.State != domain.QuestionOpen {
			continue
		}
		if one, known := s.of(q, askers); known {
			asks[one.Key()] = append(asks[one.Key()], q)
		}
	}
	return asks
}

func (s *Sessions) at(
	one domain.AgentSession, now time.Time, asks []domain.Question, links sessionLinks,
) domain.AgentSession {
	var held *domain.Question
	if i := slices.IndexFunc(asks, func(q domain.Question) bool { return q.Held }); i >= 0 {
		held = &asks[i]
	}
	one = one.At(now, held)
	one.Asks = len(asks) > 0
	if one.AgentID != "" {
		one.By = cmp.Or(s.agents.label(one.AgentID), one.By)
	}
	one.Project, one.StoryID = s.link(one, links)
	return one
}
