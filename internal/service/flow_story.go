package service

import (
	"cmp"
	"slices"

	"switchyard/internal/domain"
)

// maxFlowVisits is how many visits of a project count: all that are kept, and those since these were last counted.
const maxFlowVisits = maxKeptVisits + 50_000

// flowProject are a project's visits, in little memory.
type flowProject struct {
	version uint64
	names   []string // of stages; visits have indexes into it
	visits  []flowVisit
	open    map[string]int64 // the numbers of the stories on the board, by id
}

// add adds a visit, those of each story in order.
func (p *flowProject) add(v domain.FlowVisit) {
	if len(p.visits) >= maxFlowVisits {
		return
	}
	visit := flowVisit{story: v.Story, from: v.From, to: v.To, stage: p.stage(v.Stage), git: v.Git}
	if v.Next != "" {
		visit.next = p.stage(v.Next) + 1
	}
	if v.To == 0 {
		p.open[v.StoryID] = v.Story
	}
	p.visits = append(p.visits, visit)
}

// stage returns the index of a stage's name. Visits distinguish 100 of them.
func (p *flowProject) stage(name string) uint8 {
	i := slices.Index(p.names, name)
	if i < 0 && len(p.names) < 250 {
		i, p.names = len(p.names), append(p.names, name)
	}
	return uint8(max(0, i))
}

// flowVisit is a domain.FlowVisit; next is 0 for none, else the index of its name plus 1.
type flowVisit struct {
	story, from, to int64
	stage, next     uint8
	git             bool
}

// flowBoard is a project's board with the visits of its stories.
type flowBoard struct {
	*domain.ProjectPipeline
	known *flowProject
}

// newFlowBoard returns a project's board. Where none is known, since its server has only events or has not answered
// yet, the visits tell of its stages and of what is in them.
func newFlowBoard(p *domain.ProjectPipeline, known *flowProject) flowBoard {
	if len(p.Stages) > 0 {
		return flowBoard{p, known}
	}
	board := *p
	board.Stages = domain.VisitedStages(known.names)
	ids := make(map[int64]string, len(known.open))
	for id, number := range known.open {
		ids[number] = id
	}
	for _, v := range known.visits {
		name := known.names[v.stage]
		if i := slices.IndexFunc(board.Stages, func(s domain.Stage) bool { return s.Name == name }); v.to == 0 && i >= 0 {
			stage := &board.Stages[i]
			stage.Items = append(stage.Items, domain.Item{StoryID: ids[v.story]})
		}
	}
	return flowBoard{&board, known}
}

// flowPlaces says where the stages of visits are on the board: indexes, -1 for an unknown stage.
type flowPlaces struct {
	of                        []int
	waiting, from, work, done int // work is the end of the stages of work, which begin with from
	openSpec                  bool
	columns                   []int // where the stages of work are among those of all boards
	reached                   []reach
}

// reach is when a story came further than before: into a stage of work, by its column.
type reach struct {
	at     int64
	column int
}

func newFlowPlaces(p flowBoard) flowPlaces {
	places := flowPlaces{
		waiting: domain.WaitingStage(p.Stages), done: domain.DoneStage(p.Stages),
		openSpec: p.Board.Layout == domain.LayoutOpenSpec, of: make([]int, len(p.known.names)),
	}
	places.from, places.work = domain.WorkStages(p.Stages)
	for i, name := range p.known.names {
		places.of[i] = slices.IndexFunc(p.Stages, func(s domain.Stage) bool { return s.Name == name })
		if places.of[i] < 0 && name != "" {
			places.of[i] = domain.FormerPlace(p.Stages, name)
		}
	}
	return places
}

func (p flowPlaces) isWork(place int) bool { return place >= p.from && place < p.work }

// finishes reports whether a move from one place to another finishes a story, which may be finished already. The
// archive of OpenSpec does so for one that came with all its boxes ticked, too, as those of a squashed branch do.
func (p flowPlaces) finishes(from, to int, already bool) bool {
	if p.openSpec && to > p.done {
		return from >= 0 && from < p.done || from == p.done && !already
	}
	return from >= 0 && from < p.done && to == p.done
}

// storyFlow is what the visits of a story tell, in Unix milliseconds; 0 is unknown or not.
type storyFlow struct {
	firstMove, started, finished int64
	// arrived is when it was in a stage of work for the first time, or on its way past them all to be finished.
	arrived int64
	working bool    // it is in a stage of work
	reached []reach // valid until the next story
}

func (p *flowPlaces) follow(visits []flowVisit) (s storyFlow) {
	p.reached = p.reached[:0]
	moved := func(at int64, from, to int) {
		s.firstMove = cmp.Or(s.firstMove, at)
		if to > p.waiting && s.started == 0 {
			s.started = at
		}
		if p.isWork(to) {
			column := p.columns[to-p.from]
			if s.arrived == 0 {
				s.arrived = at
			}
			if n := len(p.reached); n == 0 {
				p.reached = append(p.reached, reach{at, column})
			} else if last := p.reached[n-1]; column > last.column {
				p.reached = append(p.reached, reach{max(at, last.at), column}) // clocks may be wrong
			}
		}
		switch {
		case p.finishes(from, to, s.finished > 0):
			s.finished = at
		case to >= 0 && to < p.done:
			s.finished = 0
		}
	}
	for i, v := range visits {
		place := p.of[v.stage]
		if v.git && v.from > 0 && (i == 0 || visits[i-1].to != v.from) {
			moved(v.from, -1, place)
		}
		if place >= 0 && place < p.done {
			s.finished = 0
		}
		if v.next > 0 {
			moved(v.to, place, p.of[v.next-1])
		}
	}
	s.started = cmp.Or(s.started, s.firstMove)
	if s.finished > 0 {
		s.arrived = s.started
	}
	s.reached = p.reached
	last := visits[len(visits)-1]
	s.working = last.to == 0 && p.isWork(p.of[last.stage])
	return s
}
