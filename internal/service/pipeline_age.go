package service

import "time"

const (
	// trustedAge is how old a pipeline on a page may be whose feed names the same version. With many projects it is
	// trustedAgeEach for each of them, at most maxTrustedAge: each fetch takes a new connection, and there are about five
	// a second. A hanging server is noticed just as soon through its feed, which waits for 25 s.
	trustedAge, trustedAgeEach, maxTrustedAge = 30 * time.Second, 240 * time.Millisecond, 10 * time.Minute
	// staleGrace is how much older than allowed a pipeline on a page may be without being marked stale: with thousands of
	// projects some are always fetched a little late, and each change of the mark would make pages refresh.
	staleGrace = 5 * time.Second
	// pipelineBudget is how long a caller waits for one project, and for all of them together; knownBudget is how long a
	// page waits if it can show the last known state of all, so that a slow project does not slow down the pages of the
	// others.
	pipelineBudget, knownBudget = 250 * time.Millisecond, 50 * time.Millisecond
	// quietAge is how old a pipeline on a page may be if no event has arrived since. In this time any number of readers
	// cost one round of fetches.
	quietAge = 2 * time.Second
)

// pipelineAge is how old the pipelines that a caller gets may be.
type pipelineAge struct {
	now     time.Time
	oldest  time.Time     // the earliest time of a fetch
	trusted time.Duration // the age allowed instead if the feed names the known version; 0 for callers that always ask
	grace   time.Duration // how much older it may be without counting as stale
}

// askedAge is the age for callers that always ask.
func askedAge(maxAge time.Duration) pipelineAge {
	now := time.Now()
	return pipelineAge{now: now, oldest: now.Add(-maxAge)}
}

// pageAge is the age for pages that show so many projects.
func pageAge(maxAge time.Duration, projects int) pipelineAge {
	age := askedAge(maxAge)
	age.grace = staleGrace
	age.trusted = min(max(trustedAge, time.Duration(projects)*trustedAgeEach), maxTrustedAge)
	return age
}
