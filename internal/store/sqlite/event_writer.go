package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"switchyard/internal/domain"
	"switchyard/internal/store"
)

// writing is a transaction that stores events. Only the transaction watches its context: that takes a goroutine, which
// each statement would need as well.
type writing struct {
	ctx      context.Context
	tx       *sql.Tx
	prepared map[string]*sql.Stmt
}

// writeEvents runs fn in one transaction, as LeaderTx does.
func (db *DB) writeEvents(ctx context.Context, token int64, fn func(w writing) error) error {
	return db.LeaderTx(ctx, token, []domain.Topic{domain.TopicEvents}, func(tx *sql.Tx) error {
		return fn(writing{context.WithoutCancel(ctx), tx, map[string]*sql.Stmt{}})
	})
}

// use returns a statement, prepared once until the transaction ends.
func (w writing) use(statement string) (prepared *sql.Stmt, err error) {
	if prepared = w.prepared[statement]; prepared == nil {
		prepared, err = w.tx.PrepareContext(w.ctx, statement)
		w.prepared[statement] = prepared
	}
	return prepared, err
}

func (w writing) exec(statement string, args ...any) (changed bool, err error) {
	prepared, err := w.use(statement)
	if err != nil {
		return false, err
	}
	result, err := prepared.ExecContext(w.ctx, args...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

const (
	addDigest  = "INSERT INTO event_digests (digest) VALUES ($1) ON CONFLICT DO NOTHING"
	addEvent   = "INSERT INTO events (id, project, received_at_ms, record) VALUES ($1, $2, $3, $4)"
	addWords   = "INSERT INTO event_words (rowid, words) VALUES ($1, $2)"
	moveCursor = `INSERT INTO feed_cursors (project, url, since, instance, sequence) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (project, url) DO UPDATE SET since = excluded.since, instance = excluded.instance,
		sequence = excluded.sequence`
	// nameStory returns a row only for a new story or a new name.
	nameStory = `INSERT INTO stories (project, story_id, story_name) VALUES ($1, $2, $3) ON CONFLICT (project, story_id)
		DO UPDATE SET story_name = excluded.story_name WHERE story_name <> excluded.story_name RETURNING id`
	replaceStoryWords = "INSERT OR REPLACE INTO story_words (rowid, words) VALUES ($1, $2)"
)

// index adds new events to the index of words, with other statements in between FTS5 would write a segment for each,
// and names their stories.
func (w writing) index(events []domain.Event) error {
	var stories []domain.StoryRef
	for _, e := range events {
		if _, err := w.exec(addWords, e.ID, Indexed(e.Project, e.Record)); err != nil {
			return err
		}
		if s, ok := store.StoryOf(e); ok {
			stories = append(stories, s)
		}
	}
	if err := w.merge("event_words", len(events)); err != nil {
		return err
	}
	return w.name(stories)
}

// name stores the newest names of stories. The last one counts.
func (w writing) name(stories []domain.StoryRef) error {
	named := map[int64]domain.StoryRef{}
	for _, s := range stories {
		prepared, err := w.use(nameStory)
		if err != nil {
			return err
		}
		var id int64
		switch err := prepared.QueryRowContext(w.ctx, s.Project, dialect{}.Key(s.ID), s.Name).Scan(&id); {
		case err == nil:
			named[id] = s
		case !errors.Is(err, sql.ErrNoRows):
			return err
		}
	}
	for id, s := range named {
		if _, err := w.exec(replaceStoryWords, id, store.StoryWords(s.ID, s.Name)+padding); err != nil {
			return err
		}
	}
	return w.merge("story_words", len(named))
}

// A transaction that changes an index of words merges mergedPages pages of it, in about a millisecond, plus one for
// every textsAPage texts. With a usermerge of 16 each page is written four times in all until it is in a segment of a
// million texts.
const mergedPages, textsAPage = 2, 8

// merge merges a few pages of an index after changes of so many texts. By itself FTS5 occasionally merges many at once,
// and a write may wait for seconds ("a change while old events are removed" in make bench).
func (w writing) merge(index string, changed int) error {
	if changed == 0 {
		return nil
	}
	_, err := w.exec("INSERT INTO "+index+" ("+index+", rank) VALUES ('merge', $1)", mergedPages+changed/textsAPage)
	return err
}
