package views

import (
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"

	"switchyard/internal/domain"
)

// MaxReason is the longest reason or name that a form takes, in characters.
const MaxReason = 500

// storyName returns the story's name, or its id if it has none.
func storyName(s domain.Story) string {
	if strings.TrimSpace(s.Name) == "" {
		return s.ID
	}
	return s.Name
}

func (p StoryProps) Title() string { return domain.Cut(storyName(p.Story), 80) }

// alertControls returns the controls of the story's alert, nil if it is of another kind.
func (p StoryProps) alertControls(kind domain.AlertKind) templ.Component {
	if p.Alert == nil || p.Alert.Kind != kind {
		return nil
	}
	return alertControls(*p.Alert, StoryURL(p.Story.Project, p.Story.ID), p.Now)
}

// canWrite reports whether the story's project server accepts changes of it.
func canWrite(s domain.Story) bool { return s.File != nil && s.File.Writable }

// mergeFailedSince returns when the story's merge last failed, zero if the stream does not say.
func mergeFailedSince(s domain.Story) time.Time {
	for _, e := range slices.Backward(s.History) {
		if e.Type == domain.MergeFailure {
			return eventTime(e)
		}
	}
	return time.Time{}
}

// lastLines returns the last lines of an agent's detail, at most most of them.
func lastLines(detail string, most int) string {
	lines := strings.Split(strings.TrimRight(detail, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}

func countWord(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
