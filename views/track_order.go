package views

import (
	"cmp"
	"hash/maphash"
	"reflect"
	"slices"
	"time"

	"switchyard/internal/domain"
)

// TrackOrder is the order of all projects' tracks, with what it depends on. It is computed once for all readers of the same
// projects: a page shows only a few of thousands.
type TrackOrder struct {
	pipelines []domain.ProjectPipeline
	stuck     map[string][]string // ids of stories, by project
	tracks    []trackSummary      // of pipelines, in their order
	order     []int32             // indexes of tracks, the worst trouble first
	working   int                 // stories in work in all projects
}

// trackSummary holds what the position of a track depends on.
type trackSummary struct {
	rank     int8
	stations int32
	working  int32
	stages   uint64 // a hash of the names of stages
	moved    time.Time
}

// NewTrackOrder returns the order for these pipelines and stuck stories, which must not change later. It returns last, which may
// be nil, if they are the same, and is faster if most of them are.
func NewTrackOrder(pipelines []domain.ProjectPipeline, stuck map[string][]string, last *TrackOrder) *TrackOrder {
	if last != nil && domain.SameArray(pipelines, last.pipelines) && reflect.DeepEqual(stuck, last.stuck) {
		return last
	}
	o := &TrackOrder{pipelines: pipelines, stuck: stuck, tracks: make([]trackSummary, len(pipelines))}
	var changed []int32
	for i := range pipelines {
		if last.hasSame(i, &pipelines[i], stuck) {
			o.tracks[i] = last.tracks[i]
		} else {
			o.tracks[i] = summarizeTrack(&pipelines[i], stuck[pipelines[i].Project])
			changed = append(changed, int32(i))
		}
		o.working += int(o.tracks[i].working)
	}
	o.sort(last, changed)
	return o
}

// hasSame reports whether the i-th project is the same as in o, which may be nil.
func (o *TrackOrder) hasSame(i int, p *domain.ProjectPipeline, stuck map[string][]string) bool {
	return o != nil && i < len(o.pipelines) && o.pipelines[i].ShowsSame(*p) && slices.Equal(o.stuck[p.Project], stuck[p.Project])
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

// sort orders the tracks. Those not among changed keep their order from last.
func (o *TrackOrder) sort(last *TrackOrder, changed []int32) {
	if last == nil || len(last.tracks) != len(o.tracks) || len(changed) > len(o.tracks)/16 {
		o.order = make([]int32, len(o.tracks))
		for i := range o.order {
			o.order[i] = int32(i)
		}
		slices.SortFunc(o.order, o.byTrouble)
		return
	}
	o.order = make([]int32, 0, len(o.tracks))
	for _, i := range last.order {
		if _, is := slices.BinarySearch(changed, i); !is {
			o.order = append(o.order, i)
		}
	}
	for _, i := range changed {
		at, _ := slices.BinarySearchFunc(o.order, i, o.byTrouble)
		o.order = slices.Insert(o.order, at, i)
	}
}

// byTrouble orders tracks: the worst trouble first, then the last move, then the name.
func (o *TrackOrder) byTrouble(i, j int32) int {
	a, b := &o.tracks[i], &o.tracks[j]
	return cmp.Or(cmp.Compare(a.rank, b.rank), b.moved.Compare(a.moved), cmp.Compare(o.pipelines[i].Project, o.pipelines[j].Project))
}
