package service

import (
	"math/rand/v2"
	"strings"
	"time"

	"switchyard/internal/domain"
)

// refetchInterval is how often a pipeline is fetched whose server does not report changes, less up to a quarter so that
// fetches of different projects do not coincide.
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
	known   *derived      // from that; nil before the first

	observing  *domain.PipelineAnswer // what is about to be observed
	observed   *domain.PipelineAnswer // the last answer that visits have observed
	observedIn uint64                 // their generation
	feed       feedState
}

// feedState is what a project's feed says about its pipeline.
type feedState struct {
	version string    // the last version named in the feed, "" for none and while the feed cannot be read
	failing bool      // the feed cannot be read
	at      time.Time // when a change was last noticed
	paused  bool      // a fetch begins after a pause
}

// pipelineTask is a fetch, or only deriving again what depends on time and visits.
type pipelineTask struct {
	turn  turn
	began time.Time     // zero while it waits for its turn
	done  chan struct{} // closed at its end
}

func newPipelineState(project domain.Project) *pipelineState {
	return &pipelineState{project: project, spread: rand.Float64()}
}

// mayHaveChanged takes the result of a read of the feed.
func (state *pipelineState) mayHaveChanged(r domain.FeedResult, now time.Time) bool {
	feed := &state.feed
	other := r.Version != feed.version || r.Failed != feed.failing
	feed.version, feed.failing = r.Version, r.Failed
	switch {
	case state.isNamed():
		return false
	case other || state.askedAt.IsZero():
		return true
	case r.Version == "" && r.News && (state.known == nil || !state.known.answer.EventsOnly):
		return true
	}
	return now.Sub(state.askedAt) > refetchInterval-rand.N(refetchInterval/4)
}

// isNamed reports whether the known pipeline has the version that the feed named last.
func (state *pipelineState) isNamed() bool {
	if state.err != nil || state.known == nil || state.feed.version == "" {
		return false
	}
	return strings.TrimPrefix(state.known.answer.ETag, "W/") == `"`+state.feed.version+`"`
}

// show returns the project's pipeline, marked stale if it is older than age allows.
func (state *pipelineState) show(age pipelineAge) domain.ProjectPipeline {
	shown := domain.ProjectPipeline{
		Project: state.project.Name, URL: state.project.URL, Reachable: state.err == nil && state.known != nil,
		LastSeen: state.seen,
	}
	if k := state.known; k != nil {
		shown.Stages, shown.Summarized, shown.Raw, shown.FetchedAt = k.stages, &k.summary, k.raw, state.seen
		shown.EventsOnly, shown.Note = k.answer.EventsOnly, k.answer.Note
	}
	switch {
	case shown.Reachable:
		shown.Stale = state.isStale(age)
	case state.err != nil:
		shown.Error, shown.FailedSince = domain.MessageOf(state.err), state.failed
	default:
		shown.Error = domain.NoAnswerYet
	}
	return shown
}

// alerts returns what needs attention in the project.
func (state *pipelineState) alerts() []domain.Alert {
	switch {
	case state.err != nil:
		unreachable := domain.Alert{Kind: domain.AlertUnreachable, Project: state.project.Name, Since: state.failed}
		unreachable.Reason = domain.MessageOf(state.err)
		return []domain.Alert{unreachable}
	case state.known == nil:
		return nil
	}
	return state.known.alerts
}

// charts returns the project's charts, empty ones while they are unknown.
func (state *pipelineState) charts() domain.Charts {
	if state.known == nil {
		return domain.Charts{}
	}
	return state.known.charts
}

// want makes a fetch necessary that begins at or after oldest: if the current one began earlier, another follows it.
func (state *pipelineState) want(oldest time.Time) {
	if state.wanted.Before(oldest) {
		state.wanted = oldest
	}
}

// isCurrent reports whether the known pipeline is not too old.
func (state *pipelineState) isCurrent(a pipelineAge) bool {
	if !state.askedAt.Before(a.oldest) {
		return true
	}
	sooner := time.Duration(state.spread * float64(a.trusted) / 2)
	return a.trusted > 0 && a.now.Sub(state.askedAt) <= a.trusted-sooner && state.isNamed()
}

// isStale reports whether the known pipeline must be marked as too old.
func (state *pipelineState) isStale(a pipelineAge) bool {
	a.oldest = a.oldest.Add(-a.grace)
	if a.trusted > 0 {
		a.trusted += a.grace
	}
	return !state.isCurrent(a)
}
