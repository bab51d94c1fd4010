package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"sync"

	"modernc.org/sqlite"

	"switchyard/internal/domain"
	"switchyard/internal/fold"
)

// registerFold makes fold.Text callable in SQL, for the migration that fills the table of stories.
var registerFold = sync.OnceValue(func() error {
	return sqlite.RegisterDeterministicScalarFunction("fold", 1, func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
		text, _ := args[0].(string)
		return fold.Text(text), nil
	})
})

// storyKey is what a story is known by.
type storyKey struct{ project, id string }

// storiesOf returns the stories that events tell of, and their names.
func storiesOf(added []domain.Event) map[storyKey]string {
	names := map[storyKey]string{}
	for _, e := range added {
		switch e.Type {
		case domain.StageTransition, domain.MergeFailure, domain.StoryBlocked:
			if d := e.Details(); d.StoryID != "" {
				names[storyKey{e.Project, d.StoryID}] = d.StoryName
			}
		}
	}
	return names
}

// saveStories notes that these stories are known.
func saveStories(ctx context.Context, tx *sql.Tx, names map[storyKey]string) error {
	if len(names) == 0 {
		return nil
	}
	save, err := tx.PrepareContext(ctx, `INSERT INTO stories (project, story_id, story_name, folded) VALUES ($1, $2, $3, $4)
		ON CONFLICT (project, story_id) DO UPDATE SET story_name = excluded.story_name, folded = excluded.folded
		WHERE story_name <> excluded.story_name`)
	if err != nil {
		return err
	}
	defer save.Close()
	for key, name := range names {
		if _, err := save.ExecContext(ctx, key.project, key.id, name, fold.Text(key.id+"\n"+name)); err != nil {
			return err
		}
	}
	return nil
}

// StoryEvents returns the newest limit events of a story, oldest first.
func (db *DB) StoryEvents(ctx context.Context, project, id string, limit int) ([]domain.Event, error) {
	rows, err := db.read.QueryContext(ctx, `SELECT `+eventColumns+` FROM events
		WHERE project = $1 AND json_extract(record, '$.story_id') = $2 ORDER BY id DESC LIMIT $3`, project, id, limit)
	if err != nil {
		return nil, translate(err)
	}
	defer rows.Close()
	var events []domain.Event
	for rows.Next() {
		e, err := scanEvent(rows)
		if err != nil {
			return nil, translate(err)
		}
		events = append(events, e)
	}
	slices.Reverse(events)
	return events, translate(rows.Err())
}

// StoryName returns the newest name that the stream has of a story. It returns NotFound for one that it never told of.
func (db *DB) StoryName(ctx context.Context, project, id string) (name string, err error) {
	err = db.read.QueryRowContext(ctx, "SELECT story_name FROM stories WHERE project = $1 AND story_id = $2", project, id).Scan(&name)
	return name, translate(err)
}

// FindStories returns stories of the stream whose id or name holds all these folded words, the newest first, at most limit.
func (db *DB) FindStories(ctx context.Context, words []string, limit int) ([]domain.StoryRef, error) {
	var conditions []string
	var args []any
	for i, word := range words {
		conditions = append(conditions, fmt.Sprintf("instr(folded, $%d) > 0", i+1))
		args = append(args, word)
	}
	args = append(args, limit)
	rows, err := db.read.QueryContext(ctx, fmt.Sprintf("SELECT project, story_id, story_name FROM stories WHERE %s ORDER BY rowid DESC LIMIT $%d",
		strings.Join(conditions, " AND "), len(args)), args...)
	if err != nil {
		return nil, translate(err)
	}
	defer rows.Close()
	var found []domain.StoryRef
	for rows.Next() {
		var s domain.StoryRef
		if err := rows.Scan(&s.Project, &s.ID, &s.Name); err != nil {
			return nil, translate(err)
		}
		found = append(found, s)
	}
	return found, translate(rows.Err())
}
