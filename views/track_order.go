package views

import (
	"cmp"
	"hash/maphash"
	"slices"
	"time"

	"switchyard/internal/domain"
)

// TrackOrder is the order of all projects' tracks, with what it depends on.
type TrackOrder struct {
	pipelines []domain.ProjectPipeline
	tracks    []trackSummary // of pipelines, in their order
	order     []int32        // indexes of tracks, the worst trouble first
	working   int            // stories in work in all projects
}

// trackSummary holds what the position of a track depends on.
type trackSummary struct {
	rank     int8
	stations int32
	working  int32
	stages   uint64 // a hash of the names of stages
	moved    time.Time
}

// NewTrackOrder returns the order for these pipelines and stuck stories.
func NewTrackOrder(pipelines []domain.ProjectPipeline, stuck map[string][]string) *TrackOrder {
	o := &TrackOrder{
		pipelines: pipelines, tracks: make([]trackSummary, len(pipelines)),
		order: make([]int32, len(pipelines)),
	}
	for i := range pipelines {
		o.tracks[i], o.order[i] = summarizeTrack(&pipelines[i], stuck[pipelines[i].Project]), int32(i)
		o.working += int(o.tracks[i].working)
	}
	slices.SortFunc(o.order, o.byTrouble)
	return o
}

var stagesSeed = maphash.MakeSeed()

func summarizeTrack(p *domain.ProjectPipeline, stuck []string) trackSummary {
	t, sum := newTrack(p, stuck), p.Summary()
	var names maphash.Hash
	names.SetSeed(stagesSeed)
	t.writeStages(&names)
	return trackSummary{int8(rankOf(t.troubles)), int32(t.to - t.from), int32(sum.Working), names.Sum64(), sum.Moved}
}

func (t *trackSummary) isTroubled() bool { return t.rank < 2 }

// byTrouble orders tracks: the worst trouble first, then the last move, then the name.
func (o *TrackOrder) byTrouble(i, j int32) int {
	a, b := &o.tracks[i], &o.tracks[j]
	return cmp.Or(cmp.Compare(a.rank, b.rank), b.moved.Compare(a.moved),
		cmp.Compare(o.pipelines[i].Project, o.pipelines[j].Project))
}
