package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"switchyard/internal/domain"
	"switchyard/internal/store"
)

// AppendEvents stores reads in order, the records of each with its new reading position, all in one transaction. It
// drops records that their project has or had already. No read is refused, since there is only one gateway.
func (db *DB) AppendEvents(ctx context.Context, reads []domain.FeedRead) (appended domain.Appended, err error) {
	err = db.writeEvents(ctx, 0, func(w writing) error {
		// The transaction holds the write lock from its beginning, so ids increase in the order of commits.
		if err := w.tx.QueryRowContext(w.ctx, lastEventID).Scan(&appended.Last); err != nil {
			return err
		}
		for _, read := range reads {
			c := read.Cursor
			for _, record := range read.Records {
				fresh, err := w.exec(addDigest, store.EventDigest(c.Project, record))
				if err != nil {
					return err
				}
				if !fresh {
					continue
				}
				e := domain.Event{
					ID:      appended.Last + int64(len(appended.Added)) + 1,
					Project: c.Project, ReceivedAt: read.ReceivedAt, Record: record,
				}
				if _, err := w.exec(addEvent, e.ID, e.Project, e.ReceivedAt.UnixMilli(), string(e.JSON)); err != nil {
					return err
				}
				appended.Added = append(appended.Added, e)
			}
			if _, err := w.exec(moveCursor, c.Project, c.URL, c.Since, c.Instance, c.Sequence); err != nil {
				return err
			}
		}
		appended.Visits, err = changeVisits(w.ctx, w.tx, store.EventKeys(appended.Added),
			func(b *domain.VisitBook) { b.Add(appended.Added...) })
		if err != nil {
			return err
		}
		return w.index(appended.Added)
	})
	if err != nil {
		return domain.Appended{}, err
	}
	return appended, nil
}

const lastEventID = "SELECT COALESCE(MAX(id), 0) FROM events"

// LastEventID returns the greatest id in the merged stream, 0 if it is empty.
func (db *DB) LastEventID(ctx context.Context) (id int64, err error) {
	err = db.read.QueryRowContext(ctx, lastEventID).Scan(&id)
	return id, db.Translate(err)
}

// Size returns the size of the database on disk, and how much of it is free for reuse, in bytes.
func (db *DB) Size(ctx context.Context) (size, free int64, err error) {
	var pages, freePages, pageSize int64
	err = db.read.QueryRowContext(ctx, `SELECT page_count, freelist_count, page_size
		FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()`).Scan(&pages, &freePages, &pageSize)
	return pages * pageSize, freePages * pageSize, db.Translate(err)
}

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
