package domain

import (
	"slices"
	"strings"
	"unicode"
)

// MatchStages returns the stages that a text may mean: the one of this name, or else all that Matches accepts.
func MatchStages(stages []Stage, text string) (fit []Stage) {
	for i := range stages {
		if stages[i].Name == text {
			return stages[i : i+1]
		}
		if stages[i].Matches(text) {
			fit = append(fit, stages[i])
		}
	}
	return fit
}

// FindStage returns the name of the stage that a text means. A full name that no stage has is returned as it is, since
// the board may be newer. It returns Invalid, listing the stages, unless exactly one fits.
func FindStage(stages []Stage, text string) (name string, err error) {
	fit := MatchStages(stages, text)
	switch _, whole := StageNumber(text); {
	case len(fit) == 1:
		return fit[0].Name, nil
	case len(fit) > 1:
		return "", Errorf(Invalid, "'%s' may be each of the stages %s", CutText(text), stageNames(fit))
	case whole || len(stages) == 0:
		return text, nil
	}
	return "", NoStage(stages, text)
}

// NoStage is the error for a stage that does not exist. It lists those that do.
func NoStage(stages []Stage, name string) error {
	return Errorf(Invalid, "there is no stage '%s'. The stages are: %s", CutText(name), CutText(stageNames(stages)))
}

func stageNames(stages []Stage) string {
	return strings.Join(Map(stages, func(s Stage) string { return s.Name }), ", ")
}

// Matches reports whether a text is the stage's name, its word or its label, ignoring case, blanks and dashes.
func (s *Stage) Matches(text string) bool {
	its := []string{lettersOf(s.Name), lettersOf(stageWord(s.Name)), lettersOf(s.Title())}
	return slices.Contains(its, lettersOf(text))
}

func lettersOf(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || r == '_' || r == '-' {
			return -1
		}
		return unicode.ToLower(r)
	}, text)
}

// FindStory returns the id of the story that a text means: the id itself, or what is left of one without its prefix and
// zeros, such as 2 or task-2 for TASK-002. A text that fits none is returned as it is. It returns Invalid, listing the
// ids, if several fit.
func FindStory(stages []Stage, text string) (id string, err error) {
	prefix, rest := cutPrefix(text)
	var whole, begun []string // the same except for prefix and zeros; beginning with the same number
	for i := range stages {
		for j := range stages[i].Items {
			id := stages[i].Items[j].StoryID
			its, left := cutPrefix(id)
			switch {
			case id == text:
				return id, nil
			case rest == "" || prefix != "" && its != prefix:
			case left == rest:
				whole = append(whole, id)
			case strings.TrimLeft(firstNumber(id), "0") == rest:
				begun = append(begun, id)
			}
		}
	}
	fit := whole
	if len(fit) == 0 {
		fit = begun
	}
	switch len(fit) {
	case 0:
		return text, nil
	case 1:
		return fit[0], nil
	}
	return "", Errorf(Invalid, "'%s' may be each of the stories %s", CutText(text),
		CutText(strings.Join(slices.Sorted(slices.Values(fit)), ", ")))
}

// cutPrefix returns what precedes the first digit of an id, and the rest without leading zeros.
func cutPrefix(id string) (prefix, rest string) {
	id = strings.ToLower(id)
	digit := strings.IndexFunc(id, unicode.IsDigit)
	if digit < 0 {
		return id, ""
	}
	return strings.TrimRight(id[:digit], "-_/ #"), strings.TrimLeft(id[digit:], "0")
}
