package service

import (
	"slices"

	"switchyard/internal/domain"
)

// flowProject are a project's visits, in little memory.
type flowProject struct {
	version uint64
	names   []string // of stages; visits have indexes into it
	visits  []flowVisit
	open    map[string]int64 // the numbers of the stories on the board, by id
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

// flowPlaces says where the stages of visits are on the board: indexes, -1 for an unknown stage.
type flowPlaces struct {
	of                        []int
	waiting, from, work, done int // work is the end of the stages of work, which begin with from
	openSpec                  bool
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

// finishes reports whether a move from one place to another finishes a story.
func (p flowPlaces) finishes(from, to int) bool {
	return from >= 0 && from < p.done && (to == p.done || p.openSpec && to > p.done)
}

// storyFlow is what the visits of a story tell, in Unix milliseconds; 0 is unknown or not.
type storyFlow struct {
	firstMove, started, finished int64
	arrived                      int64 // in a stage of work for the first time, or on its way past them all to be finished
	working                      bool  // it is in a stage of work
}

// follow goes through the visits of one story.
func (p flowPlaces) follow(visits []flowVisit) (s storyFlow) {
	moved := func(at int64, from, to int) {
		if s.firstMove == 0 {
			s.firstMove = at
		}
		if to > p.waiting && s.started == 0 {
			s.started = at
		}
		if p.isWork(to) && s.arrived == 0 {
			s.arrived = at
		}
		switch {
		case p.finishes(from, to):
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
	if s.started == 0 {
		s.started = s.firstMove
	}
	if s.finished > 0 {
		s.arrived = s.started
	}
	last := visits[len(visits)-1]
	s.working = last.to == 0 && p.isWork(p.of[last.stage])
	return s
}
