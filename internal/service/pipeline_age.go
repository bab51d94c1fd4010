package service

import "time"

const (
	// unchangedAge is how old a pipeline may be whose server reports that it has not changed. With many projects it is
	// unchangedAgeEach for each of them, at most maxUnchangedAge: each fetch takes a new connection, and there are about five a
	// second. A hanging server is noticed just as soon through its feed, which waits for 25 s.
	unchangedAge, unchangedAgeEach, maxUnchangedAge = 30 * time.Second, 240 * time.Millisecond, 10 * time.Minute
	// staleGrace is how much older than allowed a pipeline on a page may be without being marked stale: with thousands of projects
	// some are always fetched a little late, and each change of the mark would make pages refresh.
	staleGrace = 5 * time.Second
	// knownBudget is how long a page waits for projects whose last known state it can show, so that a slow project does not slow
	// down the pages of the others.
	knownBudget = 50 * time.Millisecond
)

// pipelineAge is how old the pipelines that a caller gets may be.
type pipelineAge struct {
	now       time.Time
	oldest    time.Time     // the earliest time of a fetch
	unchanged time.Duration // the age allowed instead if the feed reports no change since
	grace     time.Duration // how much older it may be without counting as stale
}

func newestAge(maxAge time.Duration) pipelineAge {
	now := time.Now()
	return pipelineAge{now: now, oldest: now.Add(-maxAge)}
}

func (s *Pipelines) recentAge(maxAge time.Duration) pipelineAge {
	age := newestAge(maxAge)
	age.grace = staleGrace
	age.unchanged = min(max(unchangedAge, time.Duration(len(s.projects.Registry().Projects))*unchangedAgeEach), maxUnchangedAge)
	return age
}

func (a pipelineAge) withGrace() pipelineAge {
	a.oldest = a.oldest.Add(-a.grace)
	if a.unchanged > 0 {
		a.unchanged += a.grace
	}
	return a
}

// isCurrent reports whether the known pipeline is not too old.
func (state *pipelineState) isCurrent(a pipelineAge) bool {
	if !state.askedAt.Before(a.oldest) {
		return true
	}
	sooner := time.Duration(state.spread * float64(a.unchanged) / 2)
	return a.unchanged > 0 && a.now.Sub(state.askedAt) <= a.unchanged-sooner && state.isNamed()
}
