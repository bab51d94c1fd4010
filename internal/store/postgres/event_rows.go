package postgres

import (
	"context"

	"switchyard/internal/store"
)

// eventRows are events split into parts, column by column.
type eventRows struct {
	texts             texts
	project, kind     []int64
	story             []string
	textDigest        []int64
	hasText           []bool
	stamp, received   []int64
	record            []*string // nil if the parts suffice
	digest            []int64
	named             []textKey // the texts with the newest names of stories
	lastNameOfStories map[storyKey]int
}

// storyKey identifies a story.
type storyKey struct {
	project int64
	id      string
}

// eventRows splits events.
func (db *DB) eventRows(ctx context.Context, events []freshEvent) (*eventRows, error) {
	columns, kinds, unknown := make([]store.EventColumns, len(events)), make([]int64, len(events)), make([]int, len(events))
	for i, e := range events {
		columns[i], unknown[i] = store.ColumnsOf(e.Record), i
	}
	for len(unknown) > 0 {
		asked := map[store.EventKind]int64{}
		for _, i := range unknown {
			asked[storedKind(columns[i].Kind)] = events[i].project
		}
		ids, err := db.kindIDs(ctx, asked)
		if err != nil {
			return nil, err
		}
		var tooMany []int
		for _, i := range unknown {
			if kinds[i] = ids[storedKind(columns[i].Kind)]; kinds[i] == 0 {
				columns[i] = columns[i].Broader(events[i].Record)
				tooMany = append(tooMany, i)
			}
		}
		unknown = tooMany
	}
	rows := &eventRows{lastNameOfStories: map[storyKey]int{}}
	for i, e := range events {
		rows.add(e, kinds[i], columns[i])
	}
	return rows, nil
}

func (rows *eventRows) add(e freshEvent, kind int64, c store.EventColumns) {
	var part textKey
	has := c.Text != store.EventText{}
	if has {
		part = rows.texts.add(e.project, c.Text)
	}
	var record *string
	if c.Record != nil {
		whole := string(c.Record)
		record = &whole
	}
	rows.project, rows.kind = append(rows.project, e.project), append(rows.kind, kind)
	rows.story, rows.textDigest, rows.hasText = append(rows.story, part.story), append(rows.textDigest, part.digest), append(rows.hasText, has)
	rows.stamp, rows.received = append(rows.stamp, e.At.UnixMilli()), append(rows.received, e.ReceivedAt.UnixMilli())
	rows.record, rows.digest = append(rows.record, record), append(rows.digest, e.digest)
	if store.Ours(e.Type) && c.Text.StoryID != "" {
		rows.name(rows.texts.add(e.project, store.EventText{StoryID: c.Text.StoryID, StoryName: c.Text.StoryName}))
	}
}

// name records the text with a story's newest name.
func (rows *eventRows) name(part textKey) {
	story := storyKey{part.project, part.story}
	if i, ok := rows.lastNameOfStories[story]; ok {
		rows.named[i] = part
		return
	}
	rows.lastNameOfStories[story] = len(rows.named)
	rows.named = append(rows.named, part)
}

// arguments returns $8 to $19 of appendStatement.
func (rows *eventRows) arguments() []any {
	return append([]any{
		rows.project, rows.kind, rows.story, rows.textDigest, rows.hasText, rows.stamp, rows.received, rows.record, rows.digest,
	}, keyColumns(rows.named)...)
}

// keyColumns returns the columns of keys: projects, stories, digests.
func keyColumns(keys []textKey) []any {
	var projects, digests []int64
	var stories []string
	for _, k := range keys {
		projects, stories, digests = append(projects, k.project), append(stories, k.story), append(digests, k.digest)
	}
	return []any{projects, stories, digests}
}
