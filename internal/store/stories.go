package store

import (
	"context"
	"database/sql"
	"math"
	"slices"
	"strings"

	"switchyard/internal/domain"
)

// StoryEvents returns the newest limit events of a story, oldest first.
func (db stories) StoryEvents(ctx context.Context, project, id string, limit int) (events []domain.Event, err error) {
	err = eachEvent(ctx, db.engine.Read, func(e domain.Event) bool {
		if e.Details().StoryID == id { // the key may stand for other ids, too
			events = append(events, e)
		}
		return true
	}, storyEvents, project, Key(id), limit)
	slices.Reverse(events)
	return events, db.Translate(err)
}

var storyEvents = selectEvents("events",
	"events.story = (SELECT id FROM stories WHERE project = $1 AND story_id = $2)", "events.id DESC", 3)

// StoryName returns the newest name of a story in the stream. It returns NotFound for a story that is in no event.
func (db stories) StoryName(ctx context.Context, project, id string) (string, error) {
	return selectOne(ctx, db.conn, ScanOne[string],
		"SELECT story_name FROM stories WHERE project = $1 AND story_id = $2", project, Key(id))
}

// FindStories returns the newest limit stories in the stream whose id or name contains all the folded words, newest
// first. If all words are too short for the index, it searches only the newest stories. It returns Unavailable if that
// takes too long.
func (db stories) FindStories(ctx context.Context, words []string, limit int) (found []domain.StoryRef, err error) {
	long := slices.DeleteFunc(slices.Clone(words), tooShort)
	from, args, size := "SELECT id FROM stories", []any{int64(math.MaxInt64), 0}, newestStories
	err = db.search(ctx, func(ctx context.Context, tx *sql.Tx) error {
		for {
			before, read := int64(0), 0
			args[1] = size
			err := EachRow(ctx, tx, func(row Row) (s domain.StoryRef, err error) {
				err = row.Scan(&before, &s.Project, &s.ID, &s.Name)
				return s, err
			}, func(s domain.StoryRef) bool {
				read++
				text := storyWords(s.ID, s.Name)
				if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) }) {
					found = append(found, s)
				}
				return len(found) < limit
			}, "SELECT stories.id, project, story_id, story_name FROM ("+from+`) AS found CROSS JOIN stories
				WHERE stories.id = found.id AND found.id < $1 ORDER BY found.id DESC LIMIT $2`, args...)
			switch {
			case err != nil || len(found) == limit || read < size || len(long) == 0:
				return err
			case len(args) == 2: // the index has the older ones
				indexed, texts := db.engine.Dialect.Containing("stories", 3, long...)
				from, args, size = indexed, append(args, texts...), 2*limit // some have only had the words in an earlier name
			default:
				size *= 4
			}
			args[0] = before
		}
	})
	return found, db.Translate(err)
}
