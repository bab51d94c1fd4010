package service

import (
	"slices"
	"sync"

	"switchyard/internal/domain"
)

// sessionLinks are what sessions are linked by: the claims of each asker, newest first, and the projects of work trees,
// "" for one that several have.
type sessionLinks struct {
	claims map[string][]domain.Claim
	trees  func() map[hostTree]string
}

type hostTree struct{ host, worktree string }

func (s *Sessions) links() sessionLinks {
	return sessionLinks{s.claims.latest(), sync.OnceValue(func() map[hostTree]string {
		trees := map[hostTree]string{}
		for _, p := range s.projects.Registry().Projects {
			answer := s.pipelines.known(p.Name).answer
			if answer == nil {
				continue
			}
			for _, worktree := range answer.Board.Worktrees {
				at := hostTree{answer.Board.Host, worktree}
				if _, another := trees[at]; another {
					trees[at] = ""
				} else {
					trees[at] = p.Name
				}
			}
		}
		return trees
	})}
}

// link returns the project and the story of a session.
func (s *Sessions) link(one domain.AgentSession, links sessionLinks) (project, storyID string) {
	if _, registered := s.projects.Registry().Find(one.Project); registered {
		project = one.Project
	} else if one.Worktree != "" {
		project = links.trees()[hostTree{one.Host, one.Worktree}]
	}
	for _, c := range links.claims[one.Asker] {
		if project == "" || c.Project == project {
			return c.Project, c.StoryID
		}
	}
	return project, s.storyAt(project, one)
}

// storyAt returns the story that a session's branch or work tree is linked to, if there is exactly one.
func (s *Sessions) storyAt(project string, one domain.AgentSession) (storyID string) {
	answer := s.pipelines.known(project).answer
	if answer == nil {
		return ""
	}
	for _, l := range answer.Board.Links {
		if l.Branch != "" && l.Branch == one.Branch || l.Branch == "" && one.Branch == "" && l.Worktree == one.Worktree {
			return l.StoryID
		}
	}
	return ""
}

// storyOf returns the project and the story that a session of an asker works on, "" if unknown.
func (s *Sessions) storyOf(asker, id string, links func() sessionLinks) (project, storyID string) {
	one, known := s.table.get(domain.AgentSessionKey{Asker: asker, ID: id})
	if !known {
		return "", ""
	}
	return s.link(one, links())
}

// mark links the places of a story to the sessions that work in them, and puts these places first.
func (s *Sessions) mark(story *domain.Story) {
	if story.File == nil {
		return
	}
	isIn := func(p domain.Place, sessions []domain.AgentSession) bool {
		return slices.ContainsFunc(sessions, func(one domain.AgentSession) bool {
			return p.Worktree != "" && p.Worktree == one.Worktree || p.Branch != "" && p.Branch == one.Branch
		})
	}
	known := s.table.list()
	if !slices.ContainsFunc(story.File.Work, func(p domain.Place) bool { return isIn(p, known) }) {
		return // every reading of a story comes here: look for what sessions work on only if it may matter
	}
	working := s.ByStory()[domain.StoryKey{Project: story.Project, ID: story.ID}]
	places := slices.Clone(story.File.Work)
	for i, p := range places {
		if isIn(p, working) {
			places[i].Link = domain.LinkSession
		}
	}
	domain.SortFirst(places, func(p domain.Place) bool { return p.Link == domain.LinkSession })
	story.File.Work = places
}
