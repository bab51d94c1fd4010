package service

import (
	"math/rand/v2"
	"strings"
	"time"

	"switchyard/internal/domain"
)

// refetchInterval is how often a pipeline is fetched if its server does not report changes, less up to a quarter so
// that fetches of different projects do not coincide.
const refetchInterval = time.Minute

// pipelineState is what is known of one project at one address. Pipelines.mu guards all fields but project and spread.
type pipelineState struct {
	project domain.Project
	spread  float64       // 0 to 1, to spread the fetches of all projects over time
	task    *pipelineTask // what is queued or running, nil for nothing
	wanted  time.Time     // a fetch that began earlier is followed by another

	askedAt time.Time     // when the last completed fetch began; zero before the first
	took    time.Duration // how long it took
	err     error         // its error
	failed  time.Time     // the first failure since the last good answer
	seen    time.Time     // when the last good answer arrived
	known   *boardFacts   // derived from that; without an answer before the first

	observing  *domain.PipelineAnswer // what is about to be observed
	observed   *domain.PipelineAnswer // the last answer that visits have observed
	observedIn uint64                 // their generation
	feed       feedState
}

// feedState is what a project's feed says about its pipeline.
type feedState struct {
	version string    // the last version named in the feed, "" for none or while the feed cannot be read
	failing bool      // the feed cannot be read
	at      time.Time // when a change was last noticed
	ahead   time.Time // when it last stopped naming the known version
	paused  bool      // a fetch will begin after a pause
}

// pipelineTask fetches a pipeline, or only derives again what depends on time and visits.
type pipelineTask struct {
	turn  turn
	began time.Time     // zero while it waits for its turn
	done  chan struct{} // closed at its end
}

func (state *pipelineState) mayHaveChanged(r domain.FeedResult, now time.Time) bool {
	feed := &state.feed
	other := r.Version != feed.version || r.Failed != feed.failing
	wasNamed := state.isNamed()
	feed.version, feed.failing = r.Version, r.Failed
	if wasNamed && !state.isNamed() {
		feed.ahead = now
	}
	switch {
	case state.isNamed():
		return false
	case other || state.askedAt.IsZero():
		return true
	case r.Version == "" && r.News && (state.known.answer == nil || !state.known.answer.EventsOnly):
		return true
	}
	return now.Sub(state.askedAt) > refetchInterval-rand.N(refetchInterval/4)
}

// isNamed reports whether the known pipeline has the version that the feed named last.
func (state *pipelineState) isNamed() bool {
	if state.err != nil || state.known.answer == nil || state.feed.version == "" {
		return false
	}
	return strings.TrimPrefix(state.known.answer.ETag, "W/") == `"`+state.feed.version+`"`
}

// show returns the project's pipeline, marked stale if it is older than age allows.
func (state *pipelineState) show(age pipelineAge) domain.ProjectPipeline {
	shown := domain.ProjectPipeline{
		Project: state.project.Name, URL: state.project.URL, Reachable: state.err == nil && state.known.answer != nil,
		LastSeen: state.seen,
	}
	if k := state.known; k.answer != nil {
		shown.Stages, shown.Summarized, shown.Text, shown.FetchedAt = k.stages, &k.summary, k.text, state.seen
		shown.Limits, shown.Version = k.limits, [2]uint64{k.answer.Digest, k.version}
		shown.EventsOnly, shown.Board, shown.Note = k.answer.EventsOnly, k.answer.Board, k.answer.Note
		shown.Faults, shown.CheckedOut = k.answer.Faults, k.answer.CheckedOut
	}
	switch {
	case shown.Reachable:
		shown.Stale = !state.isFresh(age, age.grace)
	case state.err != nil:
		shown.Error = domain.MessageOf(state.err)
	default:
		shown.Error = domain.NoAnswerYet
	}
	return shown
}

func (state *pipelineState) alerts() []domain.Alert {
	if state.err == nil {
		return state.known.alerts
	}
	return []domain.Alert{{
		Kind: domain.AlertUnreachable, Project: state.project.Name, Since: state.failed, Reason: domain.MessageOf(state.err),
	}}
}

// want requires a fetch that begins at or after oldest: if the current one began earlier, another follows it.
func (state *pipelineState) want(oldest time.Time) {
	if state.wanted.Before(oldest) {
		state.wanted = oldest
	}
}

// isFresh reports whether the known pipeline is new enough: it was requested recently, or its feed names it, or did
// until just now, and it is not too old for that. It may be older by grace.
func (state *pipelineState) isFresh(a pipelineAge, grace time.Duration) bool {
	if !state.askedAt.Before(a.oldest.Add(-grace)) {
		return true
	}
	trusted := a.trusted + grace
	trusted -= time.Duration(state.spread * float64(trusted) / 2)
	isNamed := state.isNamed() || a.now.Sub(state.feed.ahead) < grace
	return a.trusted > 0 && isNamed && a.now.Sub(state.askedAt) <= trusted
}

// See docs/design/freshness.md for why these times.
const (
	// trustedAge is how old a pipeline on a page may be if its feed names the same version. With many projects it is
	// trustedAgeEach for each of them, at most maxTrustedAge.
	trustedAge, trustedAgeEach, maxTrustedAge = 30 * time.Second, 240 * time.Millisecond, 10 * time.Minute
	// staleGrace is how much older than allowed a pipeline on a page may be without being marked stale.
	staleGrace = 5 * time.Second
	// pipelineBudget is how long a caller waits for one project, and for all of them together; knownBudget is how long
	// a page waits if it can show the last known state of all.
	pipelineBudget, knownBudget = 250 * time.Millisecond, 50 * time.Millisecond
	// quietAge is how old a pipeline on a page may be if no event has arrived since.
	quietAge = 2 * time.Second
)

// pipelineAge is how old the pipelines that a caller gets may be.
type pipelineAge struct {
	now     time.Time
	oldest  time.Time     // the earliest time of a fetch
	trusted time.Duration // the age allowed instead if the feed names the known version; 0 for callers that always ask
	grace   time.Duration // how much older it may be without counting as stale
}

func apiAge(maxAge time.Duration) pipelineAge {
	now := time.Now()
	return pipelineAge{now: now, oldest: now.Add(-maxAge)}
}

func pageAge(maxAge time.Duration, projects int) pipelineAge {
	age := apiAge(maxAge)
	age.grace = staleGrace
	age.trusted = min(max(trustedAge, time.Duration(projects)*trustedAgeEach), maxTrustedAge)
	return age
}
