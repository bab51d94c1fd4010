package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"switchyard/internal/domain"
	"switchyard/internal/fold"
)

// StoryEvents returns the newest limit events of a story, oldest first.
func (db *DB) StoryEvents(ctx context.Context, project, id string, limit int) (events []domain.Event, err error) {
	take := func(e domain.Event) bool {
		events = append(events, e)
		return true
	}
	err = snapshot(ctx, db.read, func(ctx context.Context, tx *sql.Tx) error {
		if err := eachEvent(ctx, tx, take, storyEvents, project, id, limit); err != nil || !db.upgrading.Load() {
			return err
		}
		return eachOldEvent(ctx, tx, take, oldStoryEvents, project, id, limit-len(events))
	})
	slices.Reverse(events)
	return events, db.Translate(err)
}

var storyEvents = selectEvents("events", `events.id IN (SELECT id FROM events WHERE text_id IN (SELECT id FROM event_texts
	WHERE project_id = (SELECT id FROM event_projects WHERE name = $1) AND story_id = $2) ORDER BY id DESC LIMIT $3)`, "events.id DESC")

// StoryName returns the newest name that the stream has of a story. It returns NotFound for one that it never told of.
func (db *DB) StoryName(ctx context.Context, project, id string) (name string, err error) {
	err = db.read.QueryRowContext(ctx, `SELECT story_name FROM stories JOIN event_texts ON event_texts.id = text_id
		WHERE stories.project_id = (SELECT id FROM event_projects WHERE name = $1) AND stories.story_id = $2`, project, id).Scan(&name)
	if isMissing(err) && db.upgrading.Load() {
		return db.oldStoryName(ctx, project, id)
	}
	return name, db.Translate(err)
}

// maxShortSearch is how many of the newest texts are looked at for words that are too short for the index.
const maxShortSearch = 2000

// FindStories returns stories of the stream whose id or name holds all these folded words, the newest first, at most limit;
// where no word has three characters, only some of the newest. It returns Unavailable when that takes too long.
func (db *DB) FindStories(ctx context.Context, words []string, limit int) (found []domain.StoryRef, err error) {
	err = db.search(ctx, func(ctx context.Context, tx *sql.Tx) error {
		statement, args := findStories(words)
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
		if err := rows.Err(); err != nil || !db.upgrading.Load() {
			return err
		}
		found, err = findOldStories(ctx, tx, words, limit, found)
		return err
	})
	return found, db.Translate(err)
}

// findStories selects the stories of the texts that may hold these folded words, the newest first.
func findStories(words []string) (statement string, args []any) {
	var terms []string
	for _, word := range words {
		if utf8.RuneCountInString(word) >= 3 {
			terms = append(terms, trigrams(0, word))
		}
	}
	texts, args, order := fmt.Sprintf("(SELECT id, project_id, story_id, story_name FROM event_texts ORDER BY id DESC LIMIT %d) AS event_texts", maxShortSearch), nil, "event_texts.id"
	if len(terms) > 0 {
		texts = "(SELECT rowid FROM event_words WHERE event_words MATCH $1 ORDER BY rowid DESC) AS matching JOIN event_texts ON event_texts.id = matching.rowid"
		args, order = []any{strings.Join(terms, " AND ")}, "matching.rowid"
	}
	return fmt.Sprintf(`SELECT event_projects.name, stories.story_id, story_name FROM %s
		JOIN stories ON stories.project_id = event_texts.project_id AND stories.story_id = event_texts.story_id AND stories.text_id = event_texts.id
		JOIN event_projects ON event_projects.id = stories.project_id ORDER BY %s DESC`, texts, order), args
}
