package service

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/flow"
)

// costKind is what calls are added up by.
type costKind int

const (
	byModel costKind = iota
	byClient
	bySender
	byStory
	bySession // of those without a story
	costKinds
)

// costCount adds up calls, on top of earlier ones.
type costCount struct {
	earlier        *costCount // empty for none
	total, without domain.CostSum
	days           []domain.CostShare
	shares         [costKinds]map[domain.StoryKey]*domain.CostShare // by what they are about, which has a project or none
	sessions       map[storySession]bool

	sorted [costKinds][]*domain.CostShare // of one that does not change any more, the dearest first
	done   map[string]doneCost            // likewise, of finished stories by project; guarded by Costs.mu
}

// doneCost is a part of a count, and which stories it is of.
type doneCost struct {
	domain.CostSum
	of *finishedStories
}

// storySession is a session in which calls were made for a story.
type storySession struct {
	domain.StoryKey
	session string
}

func newCostCount(earlier *costCount) *costCount {
	c := &costCount{
		earlier: earlier, total: earlier.total, without: earlier.without, days: slices.Clone(earlier.days),
		sessions: map[storySession]bool{}, done: map[string]doneCost{},
	}
	for kind := range c.shares {
		c.shares[kind] = map[domain.StoryKey]*domain.CostShare{}
	}
	return c
}

func (c *costCount) count(s domain.CallSum) {
	add := func(kind costKind, about domain.StoryKey, share domain.CostShare) {
		share.CostSum, share.Last = s.CostSum, s.Last
		if known := c.shares[kind][about]; known != nil {
			known.Add(share)
		} else {
			c.shares[kind][about] = &share
		}
	}
	c.total.Plus(s.CostSum)
	c.days[s.Span].Plus(s.CostSum)
	add(byModel, domain.StoryKey{ID: s.Model}, domain.CostShare{Name: s.Model})
	add(byClient, domain.StoryKey{ID: s.Client}, domain.CostShare{Name: s.Client})
	add(bySender, domain.StoryKey{ID: s.Holder}, domain.CostShare{Name: s.By, AgentID: s.AgentID})
	if s.ID == "" {
		c.without.Plus(s.CostSum)
		about := domain.StoryKey{Project: s.Project, ID: s.Client + "\x00" + s.Session + "\x00" + s.Holder}
		add(bySession, about, domain.CostShare{Name: s.By, Project: s.Project, Client: s.Client, Session: s.Session})
		return
	}
	share := domain.CostShare{Project: s.Project, StoryID: s.ID}
	in := storySession{s.StoryKey, s.Session}
	if s.Session != "" && !c.sessions[in] && !c.earlier.sessions[in] {
		c.sessions[in], share.Sessions = true, 1
	}
	add(byStory, s.StoryKey, share)
}

// dearest returns the shares of a kind, the dearest first, at most most, and how many others there are.
func (c *costCount) dearest(kind costKind, most int) (list []domain.CostShare, more int) {
	added := map[*domain.CostShare]bool{}
	for about, share := range c.shares[kind] {
		sum := *share
		if before := c.earlier.shares[kind][about]; before != nil {
			sum.Add(*before)
			added[before] = true
		}
		list = append(list, sum)
	}
	earlier := c.earlier.sorted[kind]
	all := len(list) + len(earlier) - len(added)
	for _, share := range earlier[:min(len(earlier), most+len(added))] {
		if !added[share] {
			list = append(list, *share)
		}
	}
	slices.SortFunc(list, domain.DearestShare)
	list = list[:min(len(list), most)]
	return list, all - len(list)
}

// settle prepares a count that does not change any more to be an earlier one, and returns how many sums it has.
func (c *costCount) settle() (sums int) {
	sums = len(c.days)
	for kind, shares := range c.shares {
		sums += len(shares)
		c.sorted[kind] = slices.SortedFunc(maps.Values(shares), func(a, b *domain.CostShare) int {
			return domain.DearestShare(*a, *b)
		})
	}
	return sums
}

// days are the times at which the days of a query begin, and the last one ends.
func days(q domain.CostQuery) (times []time.Time) {
	today := flow.Day(clock.Now().In(q.Zone))
	for day := today - q.Days + 1; day <= today+1; day++ {
		times = append(times, flow.Begins(day, q.Zone))
	}
	return times
}

const (
	// settledAfter is how long after its end a day no longer changes: calls are at most a day late.
	settledAfter = 25 * time.Hour
	// settledAtOnce is how many days are added up by one search, which has a time limit.
	settledAtOnce = 7
	// maxSettled is how many sums are kept in all counts of settled days, about 300 bytes each.
	maxSettled = 400_000
)

// settledCosts are counts of days that no longer change, by what was asked. Each is made once.
type settledCosts struct {
	makes singleflight.Group
	mu    sync.Mutex
	known map[string]*costCount
	sums  int
}

// count adds up the calls of projects, of all without any, on the days that begin and end at these times.
func (s *Costs) count(ctx context.Context, times []time.Time, projects []string) (*costCount, error) {
	earlier := &costCount{}
	settled, _ := slices.BinarySearchFunc(times, clock.Now().Add(-settledAfter), time.Time.Compare)
	if settled > 1 {
		var err error
		if earlier, err = s.settledDays(ctx, times[:settled], projects); err != nil {
			return nil, err
		}
		times = times[settled-1:]
	}
	c := newCostCount(earlier)
	return c, s.addUp(ctx, c, times, projects)
}

func (s *Costs) settledDays(ctx context.Context, times []time.Time, projects []string) (*costCount, error) {
	s.mu.Lock()
	settled := s.settled
	s.mu.Unlock()
	asked := fmt.Sprint(times[0], times[len(times)-1], len(times), projects)
	settled.mu.Lock()
	known := settled.known[asked]
	settled.mu.Unlock()
	if known != nil {
		return known, nil
	}
	return shared(ctx, &settled.makes, asked, func(ctx context.Context) (*costCount, error) {
		c := newCostCount(&costCount{})
		c.days = make([]domain.CostShare, 0, len(times)-1)
		for len(times) > 1 {
			n := min(settledAtOnce, len(times)-1)
			if err := s.addUp(ctx, c, times[:n+1], projects); err != nil {
				return nil, err
			}
			times = times[n:]
		}
		settled.keep(asked, c)
		return c, nil
	})
}

// keep keeps a count that does not change any more, for those who ask the same.
func (s *settledCosts) keep(asked string, c *costCount) {
	sums := c.settle()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sums += sums; s.known == nil || s.sums > maxSettled {
		s.known, s.sums = map[string]*costCount{}, sums
	}
	s.known[asked] = c
}

// addUp adds days to a count.
func (s *Costs) addUp(ctx context.Context, c *costCount, times []time.Time, projects []string) error {
	first := len(c.days)
	for _, at := range times[1:] {
		c.days = append(c.days, domain.CostShare{Name: flow.DayName(flow.Day(at) - 1)})
	}
	return s.store.EachCost(ctx, times, projects, func(sum domain.CallSum) {
		sum.Span += first
		c.count(sum)
	})
}
