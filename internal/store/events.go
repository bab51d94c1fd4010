package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"switchyard/internal/domain"
)

// AppendEvents stores reads in their order, each one's records together with the position that it leads to, all in one
// transaction. A record whose content its project has already is dropped. It returns the events that are new, with
// consecutive ids, and the id that was the last before them.
func (db *DB) AppendEvents(ctx context.Context, reads []domain.FeedRead) (added []domain.Event, last int64, err error) {
	err = db.tx(ctx, func(tx *sql.Tx) error {
		// The transaction holds the write lock from its beginning, so ids increase in the order of commits.
		if err := tx.QueryRowContext(ctx, "SELECT COALESCE(MAX(id), 0) FROM events").Scan(&last); err != nil {
			return err
		}
		insert, err := tx.PrepareContext(ctx, `INSERT INTO events (id, project, type, timestamp_ms, received_at_ms, record, words, digest)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (project, digest) DO NOTHING RETURNING id`)
		if err != nil {
			return err
		}
		defer insert.Close()
		move, err := tx.PrepareContext(ctx, `INSERT INTO feed_cursors (project, url, since, instance, sequence)
			VALUES ($1, $2, $3, $4, $5) ON CONFLICT (project, url) DO UPDATE
			SET since = excluded.since, instance = excluded.instance, sequence = excluded.sequence`)
		if err != nil {
			return err
		}
		defer move.Close()
		for _, read := range reads {
			project := read.Cursor.Project
			for _, record := range read.Records {
				event := domain.Event{ID: last + int64(len(added)) + 1, Project: project, ReceivedAt: read.ReceivedAt, Record: record}
				digest := sha256.Sum256(record.JSON)
				err := insert.QueryRowContext(ctx, event.ID, project, record.Type, record.At.UnixMilli(), event.ReceivedAt.UnixMilli(),
					string(record.JSON), words(project, record.JSON), digest[:16]).Scan(&event.ID)
				if err == sql.ErrNoRows {
					continue
				}
				if err != nil {
					return err
				}
				added = append(added, event)
			}
			c := read.Cursor
			if _, err := move.ExecContext(ctx, c.Project, c.URL, c.Since, c.Instance, c.Sequence); err != nil {
				return err
			}
		}
		return saveStories(ctx, tx, storiesOf(added))
	})
	if err != nil {
		return nil, 0, err
	}
	return added, last, nil
}

// LastEventID returns the greatest id in the merged stream, 0 while it is empty.
func (db *DB) LastEventID(ctx context.Context) (id int64, err error) {
	err = db.read.QueryRowContext(ctx, "SELECT COALESCE(MAX(id), 0) FROM events").Scan(&id)
	return id, translate(err)
}

// FeedCursors returns the reading positions of every URL that the project ever had, in no particular order.
func (db *DB) FeedCursors(ctx context.Context, project string) ([]domain.FeedCursor, error) {
	rows, err := db.read.QueryContext(ctx, "SELECT project, url, since, instance, sequence FROM feed_cursors WHERE project = $1", project)
	if err != nil {
		return nil, translate(err)
	}
	defer rows.Close()
	var cursors []domain.FeedCursor
	for rows.Next() {
		var c domain.FeedCursor
		if err := rows.Scan(&c.Project, &c.URL, &c.Since, &c.Instance, &c.Sequence); err != nil {
			return nil, translate(err)
		}
		cursors = append(cursors, c)
	}
	return cursors, translate(rows.Err())
}

// maxPage is the size of the records after which Events returns no more of them, in bytes: a thousand of a project server
// that makes them as large as it can would take gigabytes. Those of our own feed are below 3 MiB.
const maxPage = 4 << 20

// Events returns the first q.Limit events that q selects: by increasing id, or when q.Backward by decreasing id. Of huge
// ones it returns fewer, at least one.
func (db *DB) Events(ctx context.Context, q domain.EventQuery) (page domain.EventPage, err error) {
	conditions, args, order := []string{"id > $1"}, []any{q.After}, "id"
	if q.Backward {
		conditions, args, order = []string{"id < $1"}, []any{q.Before}, "id DESC"
		if q.Before == 0 {
			args[0] = int64(math.MaxInt64)
		}
	}
	where := func(condition string, arg any) {
		args = append(args, arg)
		conditions = append(conditions, fmt.Sprintf(condition, len(args)))
	}
	if q.Project != "" {
		where("project = $%d", q.Project)
	}
	if q.Type != "" {
		where("type = $%d", q.Type)
	}
	if q.Text != "" {
		where(`words LIKE $%d ESCAPE '\'`, "%"+likeEscaper.Replace(strings.ToLower(q.Text))+"%")
	}
	args = append(args, q.Limit+1)
	text := fmt.Sprintf("SELECT %s FROM events WHERE %s ORDER BY %s LIMIT $%d",
		eventColumns, strings.Join(conditions, " AND "), order, len(args))
	rows, err := db.read.QueryContext(ctx, text, args...)
	if err != nil {
		return page, translate(err)
	}
	defer rows.Close()
	enough := maxPage
	if q.Bytes > 0 {
		enough = min(enough, q.Bytes)
	}
	for size := 0; rows.Next(); {
		if len(page.Events) == q.Limit || size >= enough {
			page.More = true
			break
		}
		e, err := scanEvent(rows)
		if err != nil {
			return domain.EventPage{}, translate(err)
		}
		page.Events = append(page.Events, e)
		size += len(e.JSON)
	}
	return page, translate(rows.Err())
}

const eventColumns = "id, project, type, timestamp_ms, received_at_ms, record"

// scanEvent reads a row of eventColumns.
func scanEvent(rows *sql.Rows) (e domain.Event, err error) {
	var stamp, received int64
	err = rows.Scan(&e.ID, &e.Project, &e.Type, &stamp, &received, (*[]byte)(&e.JSON))
	e.At, e.ReceivedAt = time.UnixMilli(stamp), time.UnixMilli(received)
	return e, err
}

var likeEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// words returns what a search in an event looks at: its project and the text values of its record (not the keys), in
// lower case, one a line. record is encoded without spaces.
func words(project string, record json.RawMessage) string {
	var b strings.Builder
	b.WriteString(project)
	for i := 0; i < len(record); i++ {
		if record[i] != '"' {
			continue
		}
		start, escaped := i, false
		for i++; record[i] != '"'; i++ {
			if record[i] == '\\' {
				escaped = true
				i++
			}
		}
		if i+1 < len(record) && record[i+1] == ':' {
			continue // a key
		}
		b.WriteByte('\n')
		if !escaped {
			b.Write(record[start+1 : i])
			continue
		}
		var value string
		_ = json.Unmarshal(record[start:i+1], &value) // it was encoded by us
		b.WriteString(value)
	}
	return strings.ToLower(b.String())
}
