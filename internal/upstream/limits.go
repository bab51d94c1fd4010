package upstream

import (
	"encoding/json"
	"fmt"

	"switchyard/internal/domain"
	"switchyard/internal/wire"
)

const (
	// maxStages and maxItems are the most stages, and items in all stages together, that are kept of a pipeline. The first
	// ones are kept; the last stages, where finished work piles up, are cut first.
	maxStages, maxItems = 50, 20_000
	// maxRaw is the largest pipeline that is passed on unchanged, in bytes.
	maxRaw = 4 << 20
)

// limit cuts the stages of a pipeline to what one project may cost the others; raw is their JSON. If anything was cut,
// the JSON is encoded again with only the known fields, and the note says so. missing is how many items the server
// already left out.
func limit(
	list []wire.Stage, raw json.RawMessage, missing int,
) (cutList []wire.Stage, cutRaw json.RawMessage, note string) {
	stages, items := len(list), 0
	for _, stage := range list {
		items += len(stage.Items)
	}
	switch {
	case stages > maxStages:
		note = fmt.Sprintf("only the first %d of %d stages are shown", maxStages, stages)
		list = list[:maxStages]
	case items > maxItems || missing > 0:
		note = fmt.Sprintf("only the first %d of %d stories are shown", min(items, maxItems), items+missing)
	}
	changed, left := note != "" || len(raw) > maxRaw, maxItems
	for i := range list {
		stage := &list[i]
		if len(stage.Items) > left {
			stage.Items = stage.Items[:left]
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
		raw, _ = json.Marshal(list) // strings and numbers always encode
	}
	return list, raw, note
}

// cut shortens a text to the limit and reports whether it was longer.
func cut(text *string) bool {
	if text == nil || len(*text) <= domain.MaxText {
		return false
	}
	short := domain.CutText(*text)
	changed := len(short) < len(*text)
	*text = short
	return changed
}
