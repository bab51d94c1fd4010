package views

import (
	"cmp"
	"hash/maphash"
	"reflect"
	"slices"
	"time"

	"switchyard/internal/domain"
)

// Yard is the order of all projects' tracks, and what decides it. It is made once for everyone who looks at the same projects: of
// thousands, few are on a page.
type Yard struct {
	pipelines []domain.ProjectPipeline
	stuck     map[string][]string // the ids of stories, by project
	tracks    []trackSummary      // of pipelines, in their order
	order     []int32             // indexes of tracks, the worst trouble first
	working   int                 // stories in work in all projects
}

// trackSummary is what decides where a track is shown.
type trackSummary struct {
	rank     int8
	stations int32
	working  int32
	stages   uint64 // a hash of the names of stages
	moved    time.Time
}

// NewYard returns the yard of these pipelines and stuck stories, none of which may change later. It is last, which may be nil, while
// they are the same, and is made faster where most of them are.
func NewYard(pipelines []domain.ProjectPipeline, stuck map[string][]string, last *Yard) *Yard {
	if last != nil && isShared(pipelines, last.pipelines) && reflect.DeepEqual(stuck, last.stuck) {
		return last
	}
	y := &Yard{pipelines: pipelines, stuck: stuck, tracks: make([]trackSummary, len(pipelines))}
	var changed []int32
	for i := range pipelines {
		if last.hasSame(i, &pipelines[i], stuck) {
			y.tracks[i] = last.tracks[i]
		} else {
			y.tracks[i] = summarizeTrack(&pipelines[i], stuck[pipelines[i].Project])
			changed = append(changed, int32(i))
		}
		y.working += int(y.tracks[i].working)
	}
	y.sort(last, changed)
	return y
}

// isShared reports whether both are the same array.
func isShared[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// hasSame reports whether the i-th project is as it was in y, which may be nil.
func (y *Yard) hasSame(i int, p *domain.ProjectPipeline, stuck map[string][]string) bool {
	return y != nil && i < len(y.pipelines) && y.pipelines[i].ShowsSame(*p) && slices.Equal(y.stuck[p.Project], stuck[p.Project])
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

// sort orders the tracks. Those that are not among changed have the order that they had in last.
func (y *Yard) sort(last *Yard, changed []int32) {
	if last == nil || len(last.tracks) != len(y.tracks) || len(changed) > len(y.tracks)/16 {
		y.order = make([]int32, len(y.tracks))
		for i := range y.order {
			y.order[i] = int32(i)
		}
		slices.SortFunc(y.order, y.byTrouble)
		return
	}
	y.order = make([]int32, 0, len(y.tracks))
	for _, i := range last.order {
		if _, is := slices.BinarySearch(changed, i); !is {
			y.order = append(y.order, i)
		}
	}
	for _, i := range changed {
		at, _ := slices.BinarySearchFunc(y.order, i, y.byTrouble)
		y.order = slices.Insert(y.order, at, i)
	}
}

// byTrouble orders tracks: the worst trouble first, then the last move, then the name.
func (y *Yard) byTrouble(i, j int32) int {
	a, b := &y.tracks[i], &y.tracks[j]
	return cmp.Or(cmp.Compare(a.rank, b.rank), b.moved.Compare(a.moved), cmp.Compare(y.pipelines[i].Project, y.pipelines[j].Project))
}
