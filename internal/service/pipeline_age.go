package service

import "time"

const (
	// unchangedAge is how old a pipeline may be whose server says that it has not changed. With many projects it is unchangedAgeEach
	// for each of them, but no longer than maxUnchangedAge: each is asked over a new connection, about five a second. A server that
	// hangs is found as soon by its feed, which waits for 25 s.
	unchangedAge, unchangedAgeEach, maxUnchangedAge = 30 * time.Second, 240 * time.Millisecond, 10 * time.Minute
	// staleGrace is how much too old a pipeline on a page may be without being marked stale: with thousands of projects some are
	// always asked a little late, and each change of the mark would send pages again.
	staleGrace = 5 * time.Second
	// knownBudget is how long a page waits for projects whose last known state it can show: a slow project must not slow down the
	// pages of all others.
	knownBudget = 50 * time.Millisecond
)

// pipelineAge says how old the pipelines that somebody wants to see may be.
type pipelineAge struct {
	now       time.Time
	oldest    time.Time     // when a project was asked
	unchanged time.Duration // how long ago instead, if its feed says that it has not changed since
	grace     time.Duration // how much older than that does not count as stale
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
