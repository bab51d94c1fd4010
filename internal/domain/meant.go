package domain

import (
	"slices"
	"strings"
	"unicode"
)

// FindStage returns the name of the stage that a text means: its name, its word or its label, whatever their case,
// blanks and dashes. A whole name that none has is returned as it is, since the board may be newer. It returns Invalid,
// with the stages that there are, unless exactly one fits.
func FindStage(stages []Stage, text string) (name string, err error) {
	var fit []string
	for i := range stages {
		stage := &stages[i]
		if stage.Name == text {
			return text, nil
		}
		if stage.IsMeant(text) {
			fit = append(fit, stage.Name)
		}
	}
	switch {
	case len(fit) == 1:
		return fit[0], nil
	case len(fit) > 1:
		return "", Errorf(Invalid, "'%s' may be each of the stages %s", CutText(text), strings.Join(fit, ", "))
	}
	if _, whole := StageNumber(text); whole || len(stages) == 0 {
		return text, nil
	}
	return "", NoStage(stages, text)
}

// NoStage is the error for a stage that does not exist. It lists those that do.
func NoStage(stages []Stage, name string) error {
	var names []string
	for _, s := range stages {
		names = append(names, s.Name)
	}
	return Errorf(Invalid, "there is no stage '%s'. The stages are: %s", CutText(name),
		CutText(strings.Join(names, ", ")))
}

// IsMeant reports whether a text is the stage's name, its word or its label.
func (s *Stage) IsMeant(text string) bool {
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

// FindStory returns the id of the story that a text means: the id itself, or what is left of one without its prefix
// and zeros, such as 2 or task-2 for TASK-002. A text that fits none is returned as it is. It returns Invalid, with the
// ids, if several fit.
func FindStory(stages []Stage, text string) (id string, err error) {
	prefix, rest := cutPrefix(text)
	var whole, begun []string // that are the same but for prefix and zeros; that begin with the same number
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

// cutPrefix returns what stands before the first digit of an id, and the rest without leading zeros.
func cutPrefix(id string) (prefix, rest string) {
	id = strings.ToLower(id)
	digit := strings.IndexFunc(id, unicode.IsDigit)
	if digit < 0 {
		return id, ""
	}
	return strings.TrimRight(id[:digit], "-_/ #"), strings.TrimLeft(id[digit:], "0")
}
