package board

import (
	"strings"

	"switchyard/internal/domain"
)

// maxCleared is how many cleared merge failures can be restored.
const maxCleared = 100

var errNotCleared = domain.Errorf(domain.Invalid,
	"merge_failure: can only be null, or the end of what was cleared last")

// whole returns the merge failure of which a change has the end: only what a file had is written back.
func (s *scanner) whole(id string, end *string) (*string, error) {
	if end == nil || *end == "" {
		return end, nil
	}
	cleared, known := s.cleared[id]
	if !known || !strings.HasSuffix(cleared, strings.TrimSpace(*end)) {
		return nil, errNotCleared
	}
	return &cleared, nil
}

// keepCleared remembers a story's merge failure, which was cleared.
func (s *scanner) keepCleared(id string, file *storyFile) {
	front, _ := parseFrontMatter(splitDocument(file.content)) // it is empty where it cannot be read
	failure := readFacts(front, nil).mergeFailure
	if failure == "" {
		return
	}
	if s.cleared == nil || len(s.cleared) >= maxCleared {
		s.cleared = map[string]string{}
	}
	s.cleared[id] = failure
}
