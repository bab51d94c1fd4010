package store

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"switchyard/internal/domain"
	"switchyard/internal/fold"
)

// StoryEvents returns the newest limit events of a story, oldest first.
func (db *Tables) StoryEvents(ctx context.Context, project, id string, limit int) (events []domain.Event, err error) {
	take := func(e domain.Event) bool {
		events = append(events, e)
		return true
	}
	err = db.snapshot(ctx, db.engine.Read, func(ctx context.Context, tx *sql.Tx) error {
		return eachEvent(ctx, tx, take, storyEvents, project, id, limit)
	})
	slices.Reverse(events)
	return events, db.Translate(err)
}

var storyEvents = selectEvents("events", `events.id IN (SELECT id FROM events WHERE text_id IN (SELECT id FROM event_texts
	WHERE project_id = (SELECT id FROM event_projects WHERE name = $1) AND story_id = $2) ORDER BY id DESC LIMIT $3)`, "id DESC")

// StoryName returns the newest name of a story in the stream. It returns NotFound for a story that is in no event.
func (db *Tables) StoryName(ctx context.Context, project, id string) (name string, err error) {
	err = db.engine.Read.QueryRowContext(ctx, `SELECT story_name FROM stories JOIN event_texts ON event_texts.id = text_id
		WHERE stories.project_id = (SELECT id FROM event_projects WHERE name = $1) AND stories.story_id = $2`, project, id).Scan(&name)
	return name, db.Translate(err)
}

// MaxShortSearch is how many of the newest texts are searched for words that are too short for the index.
const MaxShortSearch = 2000

// FindStories returns at most limit stories in the stream whose id or name contains all the folded words, newest first. If no word
// has three characters, it searches only the newest texts. It returns Unavailable when that takes too long.
func (db *Tables) FindStories(ctx context.Context, words []string, limit int) (found []domain.StoryRef, err error) {
	err = db.search(ctx, func(ctx context.Context, tx *sql.Tx) error {
		statement, args := db.engine.Dialect.StoriesWith(words)
		rows, err := tx.QueryContext(ctx, statement, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() && len(found) < limit {
			var s domain.StoryRef
			if err := rows.Scan(&s.Project, &s.ID, &s.Name); err != nil {
				return err
			}
			folded := fold.Text(s.ID + "\n" + s.Name)
			if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(folded, word) }) {
				found = append(found, s)
			}
		}
		return rows.Err()
	})
	return found, db.Translate(err)
}
