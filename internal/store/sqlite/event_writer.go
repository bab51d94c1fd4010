package sqlite

import (
	"context"
	"database/sql"
	"sync"

	"switchyard/internal/domain"
	"switchyard/internal/store"
)

// Limits of the cache of ids.
const (
	// maxRemembered is how many ids are cached. Beyond it the cache is emptied.
	maxRemembered = 20_000
)

// storyKey identifies a story.
type storyKey struct {
	project int64
	id      string
}

// eventWriter stores events split into parts. Its statements are prepared once, at the first write. It belongs to the write
// connection: only a transaction may use it.
type eventWriter struct {
	prepared            bool
	project, addProject *sql.Stmt
	kind, addKind       *sql.Stmt
	text, addText       *sql.Stmt
	addWords            *sql.Stmt
	addDigest           *sql.Stmt
	addEvent            *sql.Stmt
	setStory            *sql.Stmt
	moveCursor          *sql.Stmt
	storyText           *sql.Stmt
	addStay             *sql.Stmt
	removeStay          *sql.Stmt
	unusedText          *sql.Stmt
	removeText          *sql.Stmt
	removeWords         *sql.Stmt
	mergeWords          *sql.Stmt

	// Caches of rows that transactions have found or added.
	mu       sync.Mutex
	projects map[string]int64
	kinds    map[store.EventKind]int64
	full     map[int64]bool     // projects that must not add another kind
	stories  map[storyKey]int64 // the text with the story's newest name
	// Texts to index at the end of the transaction: with other statements in between FTS5 would write a segment for each.
	unindexed []indexedText
}

// prepare prepares the statements. It must not be called during a transaction, which has the only connection.
func (w *eventWriter) prepare(ctx context.Context, db *sql.DB) (err error) {
	if w.prepared {
		return nil
	}
	for statement, text := range map[**sql.Stmt]string{
		&w.project:    "SELECT id FROM event_projects WHERE name = $1",
		&w.addProject: "INSERT INTO event_projects (name, folded) VALUES ($1, $2) RETURNING id",
		&w.kind:       "SELECT id FROM event_kinds WHERE type = $1 AND from_stage = $2 AND to_stage = $3",
		&w.addKind:    "INSERT INTO event_kinds (type, from_stage, to_stage, folded, project_id) VALUES ($1, $2, $3, $4, $5) RETURNING id",
		&w.text:       "SELECT id FROM event_texts WHERE project_id = $1 AND story_id = $2 AND digest = $3",
		&w.addText:    "INSERT INTO event_texts (project_id, story_id, story_name, more, digest) VALUES ($1, $2, $3, $4, $5) RETURNING id",
		&w.addWords:   "INSERT INTO event_words (rowid, words) VALUES ($1, $2)",
		&w.addDigest:  "INSERT INTO event_digests (project_id, digest) VALUES ($1, $2) ON CONFLICT (project_id, digest) DO NOTHING",
		&w.addEvent: `INSERT INTO events (id, project_id, kind_id, text_id, timestamp_ms, received_at_ms, record)
			VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		&w.setStory: `INSERT INTO stories (project_id, story_id, text_id) VALUES ($1, $2, $3) ON CONFLICT (project_id, story_id)
			DO UPDATE SET text_id = excluded.text_id WHERE text_id <> excluded.text_id`,
		&w.unusedText: `SELECT project_id, story_id, story_name, more FROM event_texts WHERE id = $1
			AND NOT EXISTS (SELECT 1 FROM events WHERE text_id = event_texts.id)
			AND NOT EXISTS (SELECT 1 FROM stays WHERE text_id = event_texts.id)
			AND NOT EXISTS (SELECT 1 FROM stories WHERE stories.project_id = event_texts.project_id
				AND stories.story_id = event_texts.story_id AND stories.text_id = event_texts.id)`,
		&w.storyText: "SELECT text_id FROM stories WHERE project_id = $1 AND story_id = $2",
		&w.addStay: `INSERT INTO stays (text_id, number, stage, from_ms, to_ms, next_stage, shown, blocked_ms, blocked_since_ms,
			merge_failed_since_ms) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		&w.removeStay: `DELETE FROM stays WHERE text_id IN (SELECT id FROM event_texts WHERE project_id = $1 AND story_id = $2)
			AND number = $3`,
		&w.mergeWords:  "INSERT INTO event_words (event_words, rank) VALUES ('merge', $1)",
		&w.removeText:  "DELETE FROM event_texts WHERE id = $1",
		&w.removeWords: "INSERT INTO event_words (event_words, rowid, words) VALUES ('delete', $1, $2)",
		&w.moveCursor: `INSERT INTO feed_cursors (project, url, since, instance, sequence) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (project, url) DO UPDATE SET since = excluded.since, instance = excluded.instance, sequence = excluded.sequence`,
	} {
		if *statement, err = db.PrepareContext(ctx, text); err != nil {
			return err
		}
	}
	w.forget()
	w.prepared = true
	return nil
}

func (w *eventWriter) forget() {
	w.projects, w.kinds, w.stories = map[string]int64{}, map[store.EventKind]int64{}, map[storyKey]int64{}
	w.full = map[int64]bool{}
}

// writing is an eventWriter in a transaction. Only the transaction watches its context: that takes a goroutine, which each
// statement would need as well.
type writing struct {
	*eventWriter
	tx   *sql.Tx
	ctx  context.Context
	inTx map[*sql.Stmt]*sql.Stmt // the statements bound to the transaction
}

// writeEvents runs fn in one transaction, as Tx does.
func (db *DB) writeEvents(ctx context.Context, fn func(w writing) error) error {
	w := &db.events
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unindexed = nil
	if err := w.prepare(ctx, db.write); err != nil {
		return db.Wrote(err)
	}
	err := db.Tx(ctx, []domain.Topic{domain.TopicEvents}, func(tx *sql.Tx) error {
		w := writing{w, tx, context.WithoutCancel(ctx), map[*sql.Stmt]*sql.Stmt{}}
		if err := fn(w); err != nil {
			return err
		}
		return w.index()
	})
	if err != nil || len(w.projects)+len(w.kinds)+len(w.stories) > maxRemembered {
		w.forget() // cached rows may have been rolled back
	}
	return err
}

// use returns a statement bound to the transaction.
func (w writing) use(statement *sql.Stmt) *sql.Stmt {
	prepared := w.inTx[statement]
	if prepared == nil {
		prepared = w.tx.StmtContext(w.ctx, statement)
		w.inTx[statement] = prepared
	}
	return prepared
}

// id returns the single column of the row that a statement selects, sql.ErrNoRows if there is none.
func (w writing) id(statement *sql.Stmt, args ...any) (id int64, err error) {
	err = w.use(statement).QueryRowContext(w.ctx, args...).Scan(&id)
	return id, err
}

func (w writing) exec(statement *sql.Stmt, args ...any) (changed bool, err error) {
	result, err := w.use(statement).ExecContext(w.ctx, args...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}
