package service

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/flow"
)

type costKind int

const (
	byModel costKind = iota
	byClient
	bySender
	byStory
	bySession // for sessions without a story
	costKinds
)

// costCount adds up calls, on top of earlier ones.
type costCount struct {
	earlier        *costCount // empty for none
	total, without domain.CostSum
	days           []domain.CostShare
	shares         [costKinds]map[domain.StoryKey]*domain.CostShare // by what they are about, which may lack a project
	sessions       map[storySession]bool                            // except those of earlier
}

type storySession struct {
	domain.StoryKey
	session string
}

func newCostCount(earlier *costCount) *costCount {
	c := &costCount{
		earlier: earlier, total: earlier.total, without: earlier.without, days: slices.Clone(earlier.days),
		sessions: map[storySession]bool{},
	}
	for kind, shares := range earlier.shares {
		if c.shares[kind] = maps.Clone(shares); shares == nil {
			c.shares[kind] = map[domain.StoryKey]*domain.CostShare{}
		}
	}
	return c
}

func (c *costCount) count(s domain.CallSum) {
	add := func(kind costKind, about domain.StoryKey, share domain.CostShare) {
		share.CostSum, share.Last = s.CostSum, s.Last
		known := c.shares[kind][about]
		switch known {
		case nil:
			c.shares[kind][about] = &share
			return
		case c.earlier.shares[kind][about]: // it does not change
			known = new(*known)
			c.shares[kind][about] = known
		}
		known.Add(share)
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
	shares := c.shares[kind]
	for _, share := range first(maps.Values(shares), most, domain.DearestShare) {
		list = append(list, *share)
	}
	return list, len(shares) - len(list)
}

// first returns the first most of many in an order.
func first[T any](many iter.Seq[T], most int, compare func(a, b T) int) (list []T) {
	full := false
	cut := func() {
		slices.SortFunc(list, compare)
		full = len(list) >= most
		list = list[:min(most, len(list))]
	}
	for one := range many {
		if full && compare(one, list[most-1]) >= 0 {
			continue
		}
		if list = append(list, one); len(list) >= 2*most {
			cut()
		}
	}
	cut()
	return list
}

func (c *costCount) size() (n int) {
	n = len(c.days)
	for _, shares := range c.shares {
		n += len(shares)
	}
	return n
}

// days are the times at which the days of a query begin, and the end of the last one.
func days(q domain.CostQuery) (times []time.Time) {
	today := flow.Day(clock.Now().In(q.Zone))
	for day := today - q.Days + 1; day <= today+1; day++ {
		times = append(times, flow.Begins(day, q.Zone))
	}
	return times
}

const (
	// settledAfter is how long after its end a day stops changing: calls are at most a day late.
	settledAfter = 25 * time.Hour
	// settledAtOnce is how many days one search adds up, since it has a time limit.
	settledAtOnce = 7
	// maxSettled is how many sums are kept in all counts of settled days, about 300 bytes each.
	maxSettled = 400_000
)

// count adds up the calls of projects, or of all if none are given, on the days delimited by these times. Settled days
// are added up once, until prices change or some of their calls are removed.
func (s *Costs) count(ctx context.Context, times []time.Time, projects []string) (*costCount, error) {
	earlier := &costCount{}
	settled, _ := slices.BinarySearchFunc(times, clock.Now().Add(-settledAfter), time.Time.Compare)
	if settled > 1 {
		oldest, prices, err := s.store.CostsSince(ctx)
		if err != nil {
			return nil, err
		}
		if oldest.Before(times[0]) {
			oldest = times[0]
		}
		s.mu.Lock()
		about := fmt.Sprint(times[0], times[settled-1], settled, projects, oldest, s.gone, prices)
		s.mu.Unlock()
		earlier, err = s.settled.get(ctx, about, func(ctx context.Context) (*costCount, error) {
			c := newCostCount(&costCount{})
			for from := 0; from < settled-1; from += settledAtOnce {
				if err := s.addUp(ctx, c, times[from:min(from+settledAtOnce+1, settled)], projects); err != nil {
					return nil, err
				}
			}
			return c, nil
		})
		if err != nil {
			return nil, err
		}
		times = times[settled-1:]
	}
	c := newCostCount(earlier)
	return c, s.addUp(ctx, c, times, projects)
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
