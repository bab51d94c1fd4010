package domain

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// StageTitle returns a stage's name for display: "2_current" is "Current", "3_qa" is "QA", "4_code_review" is "Code
// review".
func StageTitle(name string) string {
	if name == "" {
		return ""
	}
	title := stageWord(name)
	if len(title) <= 2 {
		return strings.ToUpper(title)
	}
	first, size := utf8.DecodeRuneInString(title)
	return string(unicode.ToUpper(first)) + strings.ReplaceAll(title[size:], "_", " ")
}

// stageWord returns a stage's name without its leading number.
func stageWord(name string) string {
	digits, word, found := strings.Cut(name, "_")
	if !found || word == "" || strings.ContainsFunc(digits, func(r rune) bool { return !unicode.IsDigit(r) }) {
		return name
	}
	return word
}

// Title returns the stage's name for display: the board's own word, or else StageTitle of its name.
func (s *Stage) Title() string {
	if s.Label != "" {
		return s.Label
	}
	return StageTitle(s.Name)
}

// doneWords are the words of stages in which stories are finished, and of later ones.
var doneWords = []string{"done", "completed", "closed", "shipped", "live", "released", "archived"}

// endedWords are the words of Other stages in which stories are neither in work nor finished.
var endedWords = []string{
	"cancelled", "canceled", "wont_do", "won_t_do", "wontfix", "wont_fix", "won_t_fix", "rejected", "declined",
	"abandoned", "dropped", "duplicate", "obsolete", "superseded", "invalid", "done", "complete", "completed", "closed",
	"shipped", "live", "released", "archived", "merged", "resolved",
}

// HasEnded reports whether stories in the stage are neither in work nor finished, because its status is an unknown one
// that says so.
func (s *Stage) HasEnded() bool {
	return s.Other && slices.Contains(endedWords, strings.ToLower(stageWord(s.Name)))
}

// InOrder returns stages, of which Other ones come last, in the order in which stories pass them: Other stages are
// stages of work, and so come before the one that finishes stories, unless stories in them have ended.
func InOrder(stages []Stage) []Stage {
	others := slices.IndexFunc(stages, func(s Stage) bool { return s.Other })
	if others <= 0 {
		return stages
	}
	own, done := stages[:others], DoneStage(stages)
	var work, ended []Stage
	for _, stage := range stages[others:] {
		if stage.HasEnded() {
			ended = append(ended, stage)
		} else {
			work = append(work, stage)
		}
	}
	return slices.Concat(own[:done], work, own[done:], ended)
}

// DoneStage returns the index of the stage that finishes a story: the first whose word says so, or else the last one
// that is not Other. It is -1 without stages.
func DoneStage(stages []Stage) int {
	if done := doneByName(stages); done >= 0 {
		return done
	}
	for i, stage := range slices.Backward(stages) {
		if !stage.Other {
			return i
		}
	}
	return len(stages) - 1
}

func doneByName(stages []Stage) int {
	return slices.IndexFunc(stages, func(s Stage) bool {
		return !s.Other && slices.Contains(doneWords, strings.ToLower(stageWord(s.Name)))
	})
}

// WaitingStage returns the index of the stage in which work waits until somebody starts it: the marked one, or else the
// first.
func WaitingStage(stages []Stage) int {
	return max(0, slices.IndexFunc(stages, func(s Stage) bool { return s.Waiting }))
}

// WorkStages returns the range of stages, excluding to, in which stories are worked on: those after WaitingStage and
// before DoneStage.
func WorkStages(stages []Stage) (from, to int) {
	to = max(0, DoneStage(stages))
	return min(WaitingStage(stages)+1, to), to
}

// ReplacementStage returns the index of the stage that replaces one that the board no longer has: the done stage if its
// word says so, the waiting stage if its number is not above that one's, or else the first stage of work.
func ReplacementStage(stages []Stage, name string) int {
	from, to := WorkStages(stages)
	waiting := WaitingStage(stages)
	waitingNumber := 0
	if len(stages) > 0 {
		waitingNumber, _ = StageNumber(stages[waiting].Name)
	}
	switch number, numbered := StageNumber(name); {
	case doneByName([]Stage{{Name: name}}) == 0:
		return DoneStage(stages)
	case numbered && number <= waitingNumber, from == to:
		return waiting
	default:
		return from
	}
}

// VisitedStages returns stages of these names in the order of their numbers; of those without one, stages whose word is
// done or the like come last.
func VisitedStages(names []string) (stages []Stage) {
	for _, name := range names {
		if name != "" {
			stages = append(stages, Stage{Name: name})
		}
	}
	place := func(s Stage) int {
		number, numbered := StageNumber(s.Name)
		if !numbered && doneByName([]Stage{s}) == 0 {
			return math.MaxInt
		}
		return number
	}
	slices.SortStableFunc(stages, func(a, b Stage) int { return cmp.Compare(place(a), place(b)) })
	return stages
}

// StageNumber returns the number that a stage's name begins with.
func StageNumber(name string) (int, bool) {
	digits, _, found := strings.Cut(name, "_")
	number, err := strconv.Atoi(digits)
	return number, found && err == nil
}

// OpenStages returns how many stages come before the one whose word is done or the like: all of them if none is, except
// those that have ended. A blocked story in any of these needs attention, even in the last stage, which need not be the
// end.
func OpenStages(stages []Stage) int {
	if done := doneByName(stages); done >= 0 {
		return done
	}
	open := len(stages)
	for open > 0 && stages[open-1].HasEnded() {
		open--
	}
	return open
}

// The layouts of boards: one whose work does not wait in the first stage also has a row in waitingStages.
const (
	LayoutStages     = "stages"
	LayoutOpenSpec   = "openspec"
	LayoutSpecKit    = "spec-kit"
	LayoutKiro       = "kiro"
	LayoutBacklog    = "backlog.md"
	LayoutTaskMaster = "task-master"
	LayoutBMAD       = "bmad"
	LayoutBeads      = "beads"
)

// waitingStages are the indexes of the stages in which work waits, for layouts where that is not the first.
var waitingStages = map[string]int{
	LayoutOpenSpec: 1, LayoutSpecKit: 1, LayoutKiro: 1, LayoutBacklog: 1, LayoutBMAD: 1, LayoutBeads: 1,
}

// MarkWaiting marks the stage in which work waits on a board of this layout.
func MarkWaiting(layout string, stages []Stage) {
	if i := waitingStages[layout]; i < len(stages) {
		stages[i].Waiting = true
	}
}

// StageWords returns what people read for a stage of a project: its board's own word, or else StageTitle of its name.
// Whatever names a stage to people uses this, or Title if it has the stage itself.
type StageWords func(project, stage string) string

// StageWord returns the word for the stage of this name, which the board may no longer have.
func StageWord(stages []Stage, name string) string {
	if i := slices.IndexFunc(stages, func(s Stage) bool { return s.Name == name }); i >= 0 {
		return stages[i].Title()
	}
	return StageTitle(name)
}

// Describe is the event in words, without its project, its story and its reason.
func (w StageWords) Describe(e Event, d EventDetails) string {
	if e.Type == StageTransition {
		d.FromStage, d.ToStage = w(e.Project, d.FromStage), w(e.Project, d.ToStage)
	}
	return e.Type.Kind().Describe(d)
}

type stageWordsKey struct{}

// WithStageWords returns a context for rendering with these words.
func WithStageWords(ctx context.Context, words StageWords) context.Context {
	return context.WithValue(ctx, stageWordsKey{}, words)
}

// StageWordsOf returns the words of a context, StageTitle if there are none.
func StageWordsOf(ctx context.Context) StageWords {
	if words, ok := ctx.Value(stageWordsKey{}).(StageWords); ok {
		return words
	}
	return func(_, stage string) string { return StageTitle(stage) }
}
