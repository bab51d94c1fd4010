package views

import "switchyard/internal/domain"

// asks returns the open question about a story, nil for none.
func (p ProjectProps) asks(storyID string) *QuestionProps {
	if q, asks := p.Asked[domain.StoryKey{Project: p.Project.Name, ID: storyID}]; asks {
		return &QuestionProps{Question: q}
	}
	return nil
}

// waiting counts the project's stories with open questions, and those whose sessions wait for a person.
func (p ProjectProps) waiting() map[domain.AlertKind]int {
	n := map[domain.AlertKind]int{}
	for key := range p.Asked {
		if key.Project == p.Project.Name {
			n[domain.AlertQuestion]++
		}
	}
	for id, s := range p.Sessions {
		if s.State == domain.SessionWaiting && p.asks(id) == nil {
			n[domain.AlertWaiting]++
		}
	}
	return n
}
