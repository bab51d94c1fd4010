package service

import (
	"context"
	"slices"
	"sync"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

// Costs adds up the model calls that coding agents report, and what stories cost.
type Costs struct {
	store     *database
	flow      *Flow
	pipelines *Pipelines
	claims    *claimTable
	sessions  *Sessions
	prices    map[string]domain.Price
	reloader  *reloader

	today   costCache[domain.CostsToday]
	reports costCache[*domain.CostReport]
	settled costCache[*costCount]

	change   sync.Mutex // held while store and memory are changed, so that the two agree
	mu       sync.Mutex // taken after change, never held while waiting for the store
	budgets  budgets
	stories  map[string]map[string]domain.Micros // of stories with calls, by project
	versions map[string]uint64                   // of stories, by project
	ended    finishedByProject                   // by project
	gone     int                                 // how often stored data of a project was removed

	gathering *callBatch // nil for none
	storedAt  time.Time  // when the last one began to be stored
	storedOf  string     // the holder whose request was alone in it
}

const (
	// gatherFor is the minimum time between the transactions of different holders: each costs a synced write, and
	// hundreds of clients report. A holder who reports one call after another does not wait.
	gatherFor = 100 * time.Millisecond
	// maxGathered is how many calls are stored at once, so that other writes do not wait long.
	maxGathered = 1000
)

// callBatch are the calls of requests that are stored together.
type callBatch struct {
	requests []*callPlacer
	size     int
	stored   chan struct{} // closed when err and the number added for each request are known
	err      error
}

func newCosts(ctx context.Context, o Options, flow *Flow, claims *claimTable, sessions *Sessions) (*Costs, error) {
	s := &Costs{
		store: o.store, flow: flow, pipelines: flow.pipelines, claims: claims, sessions: sessions, prices: o.Prices,
		budgets: budgets{limits: o.Budgets}, versions: map[string]uint64{}, ended: finishedByProject{},
	}
	s.today.most = maxReports
	s.reports.quick, s.reports.most = 100*time.Millisecond, maxReports
	s.settled.lasts, s.settled.most, s.settled.size = true, maxSettled, (*costCount).size
	s.reloader = newReloader(o.Changes, domain.TopicUsage, s.load)
	return s, o.store.Reprice(ctx, o.Prices)
}

func (s *Costs) load(ctx context.Context) error {
	s.change.Lock()
	defer s.change.Unlock()
	all, err := s.store.StoryCosts(ctx)
	if err != nil {
		return err
	}
	if err := s.readBudgets(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.stories
	s.stories = map[string]map[string]domain.Micros{}
	for _, c := range all {
		s.put(c.StoryKey, c.USD)
	}
	for project := range before {
		s.versions[project]++
		if s.stories[project] == nil {
			s.gone++
			delete(s.ended, project)
		}
	}
	return nil
}

func (s *Costs) put(story domain.StoryKey, usd domain.Micros) {
	if s.stories[story.Project] == nil {
		s.stories[story.Project] = map[string]domain.Micros{}
	}
	if story.ID == "" {
		return
	}
	s.stories[story.Project][story.ID] = usd
	s.versions[story.Project]++
}

// version returns a number that changes with the costs of a project's stories, 0 while none has a cost.
func (s *Costs) version(project string) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.versions[project]
}

// Of returns what a story costs, nil for one without calls.
func (s *Costs) Of(project, id string) *domain.Micros {
	s.mu.Lock()
	defer s.mu.Unlock()
	usd, called := s.stories[project][id]
	if !called {
		return nil
	}
	return &usd
}

// Story returns what a story costs, nil for one without calls.
func (s *Costs) Story(ctx context.Context, project, id string) (*domain.Cost, error) {
	models, sessions, err := s.store.StoryModels(ctx, project, id)
	if err != nil || len(models) == 0 {
		return nil, err
	}
	c := &domain.Cost{Models: models}
	for _, m := range models {
		c.Add(m)
	}
	c.Sessions = sessions
	slices.SortFunc(c.Models, func(a, b domain.CostShare) int { return domain.DearestShare(&a, &b) })
	return c, nil
}

// Record stores the calls that the actor of ctx made, each once, and finds the story of each. Their projects and
// stories are those that their records name.
func (s *Costs) Record(ctx context.Context, calls []domain.Call) error {
	if len(calls) == 0 {
		return nil
	}
	p := s.newCallPlacer(ctx)
	p.calls = calls
	for i := range calls {
		calls[i].At = calls[i].Received(p.now)
		if err := p.resolveNames(&calls[i]); err != nil {
			return err
		}
	}
	return s.add(p)
}

// RecordOne stores a call of another program, whose Key is the caller's id of it, and reports whether it is new. It
// returns NotFound for an unknown project, Forbidden for a project other than the actor's, and Invalid for a story
// without a project and for impossible values.
func (s *Costs) RecordOne(ctx context.Context, c domain.Call) (added bool, err error) {
	p := s.newCallPlacer(ctx)
	_, registered := s.pipelines.projects.Registry().Find(c.Project)
	switch {
	case !c.Valid():
		return false, domain.Errorf(domain.Invalid, "client, session and model have at most 200 characters, "+
			"tokens are from 0 to 1,000,000,000, and usd is from 0 to 10,000")
	case c.Project == "" && c.StoryID != "":
		return false, domain.Errorf(domain.Invalid, "story_id: needs project")
	case c.Project != "" && !registered:
		return false, projectNotFound(c.Project)
	case c.Project != "":
		if err := p.actor.CheckScope(c.Project); err != nil {
			return false, err
		}
	}
	c.At, c.Key = c.Received(p.now), domain.CallKey("id", p.actor.Holder(), c.Key)
	p.calls = []domain.Call{c}
	err = s.add(p)
	return p.added > 0, err
}

// add stores calls together with those that others report meanwhile.
func (s *Costs) add(p *callPlacer) error {
	s.mu.Lock()
	b := s.gathering
	first := b == nil || b.size >= maxGathered
	if first {
		b = &callBatch{stored: make(chan struct{})}
		s.gathering = b
	}
	b.requests, b.size = append(b.requests, p), b.size+len(p.calls)
	wait := time.Until(s.storedAt.Add(gatherFor))
	if s.storedOf == p.actor.Holder() {
		wait = 0
	}
	s.mu.Unlock()
	if first {
		time.Sleep(wait)
		s.mu.Lock()
		s.storedAt, s.storedOf = time.Now(), ""
		if len(b.requests) == 1 {
			s.storedOf = p.actor.Holder()
		}
		if s.gathering == b {
			s.gathering = nil
		}
		s.mu.Unlock()
		// A request that is cancelled must not stop the others' calls from being stored.
		b.err = supervise.Call(func() error { return s.storeBatch(context.WithoutCancel(p.ctx), b) })
		close(b.stored)
	}
	<-b.stored
	return b.err
}

func (s *Costs) storeBatch(ctx context.Context, b *callBatch) error {
	claims, err := s.store.HeldClaims(ctx, domain.Map(b.requests, func(p *callPlacer) string { return p.actor.Holder() }))
	if err != nil {
		return err
	}
	var calls []domain.Call
	of := map[string]*callPlacer{} // by a call's key
	for _, p := range b.requests {
		for _, c := range p.calls {
			of[c.Key] = p
			p.placeByClaim(&c, claims[p.actor.Holder()])
			c.Holder, c.By, c.AgentID, c.Cost = p.actor.Holder(), p.by, p.actor.AgentID, c.Stated
			if price, known := s.prices[c.Model]; known && c.Stated == nil {
				c.Cost = new(price.Of(c.Tokens))
			}
			calls = append(calls, c)
		}
	}
	s.change.Lock()
	defer s.change.Unlock()
	added, err := s.store.AddCalls(ctx, calls)
	if err != nil {
		return err
	}
	for _, c := range added {
		of[c.Key].added++
	}
	if s.spend(added) {
		_ = s.readBudgets(ctx) // otherwise the next call will find it passed
	}
	return nil
}

// spend counts new calls in memory, and reports whether a budget seems to have been passed. The caller holds change.
func (s *Costs) spend(added []domain.Call) (passed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range added {
		usd := s.stories[c.Project][c.StoryID]
		if c.Cost != nil {
			usd += *c.Cost
		}
		s.put(domain.StoryKey{Project: c.Project, ID: c.StoryID}, usd)
		passed = s.budgets.spend(c, usd) || passed
	}
	return passed
}
