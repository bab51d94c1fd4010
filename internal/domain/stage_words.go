package domain

import (
	"context"
	"slices"
)

// StageWords returns what people read for a stage of a project: its board's own word, else StageTitle of its name.
// Whatever names a stage to people does so by this, or by Title where the stage itself is at hand.
type StageWords func(project, stage string) string

// StageWord returns the word for the stage of this name, which the board may no longer have.
func StageWord(stages []Stage, name string) string {
	if i := slices.IndexFunc(stages, func(s Stage) bool { return s.Name == name }); i >= 0 {
		return stages[i].Title()
	}
	return StageTitle(name)
}

// Says is the event in words, without its project, its story and its reason.
func (w StageWords) Says(e Event, d EventDetails) string {
	if e.Type == StageTransition {
		d.FromStage, d.ToStage = w(e.Project, d.FromStage), w(e.Project, d.ToStage)
	}
	return e.Type.Kind().Says(d)
}

type stageWordsKey struct{}

// WithStageWords returns a context for what is rendered with these words.
func WithStageWords(ctx context.Context, words StageWords) context.Context {
	return context.WithValue(ctx, stageWordsKey{}, words)
}

// StageWordsOf returns the words of a context, without any StageTitle.
func StageWordsOf(ctx context.Context) StageWords {
	if words, ok := ctx.Value(stageWordsKey{}).(StageWords); ok {
		return words
	}
	return func(_, stage string) string { return StageTitle(stage) }
}
