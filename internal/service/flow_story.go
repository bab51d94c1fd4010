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

// flowPlaces says where the stages of visits are on the board.
type flowPlaces struct {
	domain.Course
	of      []int
	columns []int // where the stages of work are among those of all boards
	reached []reach
}

// reach is when a story came further than before: into a stage of work, by its column.
type reach struct {
	at     int64
	column int
}

func newFlowPlaces(p flowBoard) flowPlaces {
	places := flowPlaces{Course: domain.NewCourse(p.Board.Layout, p.Stages)}
	for _, name := range p.known.names {
		places.of = append(places.of, places.At(name))
	}
	return places
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
		if to > p.Waiting && s.started == 0 {
			s.started = at
		}
		if p.IsWork(to) {
			column := p.columns[to-p.From]
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
		case p.Finishes(from, to, s.finished > 0):
			s.finished = at
		case to >= 0 && to < p.Done:
			s.finished = 0
		}
	}
	for i, v := range visits {
		place := p.of[v.stage]
		if v.git && v.from > 0 && (i == 0 || visits[i-1].to != v.from) {
			moved(v.from, -1, place)
		}
		if place >= 0 && place < p.Done {
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
	s.working = last.to == 0 && p.IsWork(p.of[last.stage])
	return s
}
