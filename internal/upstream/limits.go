package upstream

import (
	"encoding/json"
	"fmt"
	"slices"

	"switchyard/internal/domain"
)

const (
	// maxStages and maxItems are how much of a pipeline is kept: of what has more, the first stages, and in each the first
	// items until there are so many in all. The last stages, where finished work piles up, are cut first.
	maxStages, maxItems = 50, 20_000
	// maxRaw is the largest pipeline that is passed on as it came, in bytes.
	maxRaw = 4 << 20
)

// limit cuts a pipeline to what one project may cost the others. One that was cut is not passed on as it came, but with
// what is known of its stages, and says so in its note.
func limit(p *domain.PipelineAnswer) {
	stages, items := len(p.Stages), 0
	for _, stage := range p.Stages {
		items += len(stage.Items)
	}
	switch {
	case stages > maxStages:
		p.Note = fmt.Sprintf("only the first %d of %d stages are shown", maxStages, stages)
		p.Stages = slices.Clone(p.Stages[:maxStages])
	case items > maxItems:
		p.Note = fmt.Sprintf("only the first %d of %d stories are shown", maxItems, items)
	}
	changed, left := p.Note != "" || len(p.Raw) > maxRaw, maxItems
	for i := range p.Stages {
		stage := &p.Stages[i]
		if len(stage.Items) > left {
			stage.Items = slices.Clone(stage.Items[:left]) // which lets go of the others
		}
		left -= len(stage.Items)
		changed = cut(&stage.Name) || changed
		for j := range stage.Items {
			item := &stage.Items[j]
			for _, text := range []*string{&item.StoryID, &item.StoryName, item.Blocked, item.MergeFailure} {
				changed = cut(text) || changed
			}
		}
	}
	if changed {
		p.Raw, _ = json.Marshal(p.Stages) // strings and numbers always encode
	}
}

// cut shortens a text and reports whether it had to.
func cut(text *string) bool {
	if text == nil || len(*text) <= domain.MaxText {
		return false
	}
	short := domain.CutText(*text)
	changed := len(short) < len(*text)
	*text = short
	return changed
}
