package postgres

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"

	"switchyard/internal/domain"
	"switchyard/internal/store"
)

// SaveStays stores changes of stays and stories, and the event up to which they go.
func (db *DB) SaveStays(ctx context.Context, c domain.StayChanges) error {
	rows, err := db.stayRows(ctx, c)
	if err != nil {
		return db.Wrote(err)
	}
	return db.write(ctx, c.Token, func(tx pgx.Tx) error {
		var batch pgx.Batch
		batch.Queue(lockStream)
		if c.ForgetMoves {
			batch.Queue("DELETE FROM moves")
		}
		rows.texts.queue(&batch)
		batch.Queue(`INSERT INTO stories (project_id, story_id, text_id)
			SELECT project_id, story_id, t.id FROM unnest($1::bigint[], $2::text[], $3::bigint[]) AS story (project_id, story_id, digest)
			JOIN event_texts AS t USING (project_id, story_id, digest)
			ON CONFLICT (project_id, story_id) DO UPDATE SET text_id = excluded.text_id WHERE stories.text_id <> excluded.text_id`, keyColumns(rows.named)...)
		// The story may have had another name when its stay was stored.
		batch.Queue(`DELETE FROM stays USING unnest($1::bigint[], $2::text[], $3::bigint[]) AS gone (project_id, story_id, number), event_texts AS t
			WHERE t.project_id = gone.project_id AND t.story_id = gone.story_id AND stays.text_id = t.id AND stays.number = gone.number`,
			rows.goneProject, rows.goneStory, rows.goneNumber)
		batch.Queue(`INSERT INTO stays (text_id, number, stage, from_ms, to_ms, next_stage, shown, blocked_ms, blocked_since_ms, merge_failed_since_ms)
			SELECT COALESCE((SELECT text_id FROM stories AS s WHERE s.project_id = stay.project_id AND s.story_id = stay.story_id), t.id),
				number, stage, from_ms, to_ms, next_stage, shown, blocked_ms, blocked_since_ms, merge_failed_since_ms
			FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::bigint[], $7::bigint[], $8::text[], $9::boolean[], $10::bigint[], $11::bigint[], $12::bigint[])
				AS stay (project_id, story_id, digest, number, stage, from_ms, to_ms, next_stage, shown, blocked_ms, blocked_since_ms, merge_failed_since_ms)
			LEFT JOIN event_texts AS t USING (project_id, story_id, digest)`, rows.savedColumns()...)
		batch.Queue(store.PutState, store.StaysUpToKey, strconv.FormatInt(c.UpTo, 10))
		return tx.SendBatch(ctx, &batch).Close()
	})
}

// stayRows are changes of stays, column by column.
type stayRows struct {
	texts       texts
	named       []textKey
	goneProject []int64
	goneStory   []string
	goneNumber  []int64
	saved       []domain.Stay
	savedKeys   []textKey // the texts of stories without a name
}

func (db *DB) stayRows(ctx context.Context, c domain.StayChanges) (*stayRows, error) {
	var names []string
	for _, s := range c.Stories {
		names = append(names, Text(s.Project))
	}
	gone := append(c.Drop[:len(c.Drop):len(c.Drop)], c.Save...)
	for _, s := range gone {
		names = append(names, Text(s.Project))
	}
	projects, err := db.projectIDs(ctx, names)
	if err != nil {
		return nil, err
	}
	rows := &stayRows{}
	events := eventRows{lastNameOfStories: map[storyKey]int{}}
	for _, s := range c.Stories {
		events.name(rows.texts.add(projects[Text(s.Project)], store.EventText{StoryID: s.ID, StoryName: s.Name}))
	}
	rows.named = events.named
	for _, s := range gone {
		rows.goneProject, rows.goneStory = append(rows.goneProject, projects[Text(s.Project)]), append(rows.goneStory, Key(s.StoryID))
		rows.goneNumber = append(rows.goneNumber, s.Number)
	}
	last := map[[3]any]int{}
	for _, s := range c.Save {
		part := rows.texts.add(projects[Text(s.Project)], store.EventText{StoryID: s.StoryID})
		if i, twice := last[[3]any{part.project, part.story, s.Number}]; twice {
			rows.saved[i] = s
			continue
		}
		last[[3]any{part.project, part.story, s.Number}] = len(rows.saved)
		rows.saved, rows.savedKeys = append(rows.saved, s), append(rows.savedKeys, part)
	}
	return rows, nil
}

func (rows *stayRows) savedColumns() []any {
	var numbers, from, to, blocked, blockedSince, failedSince []int64
	var stages, next []string
	var shown []bool
	for _, s := range rows.saved {
		numbers, stages, next, shown = append(numbers, s.Number), append(stages, Text(s.Stage)), append(next, Text(s.Next)), append(shown, s.Shown)
		from, to, blocked = append(from, store.ToMilli(s.From)), append(to, store.ToMilli(s.To)), append(blocked, s.Blocked.Milliseconds())
		blockedSince, failedSince = append(blockedSince, store.ToMilli(s.BlockedSince)), append(failedSince, store.ToMilli(s.MergeFailedSince))
	}
	return append(keyColumns(rows.savedKeys), numbers, stages, from, to, next, shown, blocked, blockedSince, failedSince)
}
