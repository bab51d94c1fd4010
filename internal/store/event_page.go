package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"switchyard/internal/domain"
)

// maxPage is the total size of records, in bytes, after which Events ends a page: a thousand records as large as a hostile project
// server can make them would take too much memory. Pages of our own feeds stay below 3 MiB.
const maxPage = 4 << 20

// Events returns the first q.Limit events that match q: by increasing id, or with q.Backward by decreasing id. If they are huge it
// returns fewer, but at least one. It returns Unavailable when a search for a text takes too long.
func (db *Tables) Events(ctx context.Context, q domain.EventQuery) (domain.EventPage, error) {
	reader := &pageReader{query: q, dialect: db.engine.Dialect}
	read := func(ctx context.Context, tx *sql.Tx) error { return readEvents(ctx, tx, reader) }
	var err error
	if q.Text == "" {
		err = db.snapshot(ctx, db.engine.Read, read)
	} else {
		err = db.search(ctx, read)
	}
	if err != nil {
		return domain.EventPage{}, db.Translate(err)
	}
	return reader.page, nil
}

// pageReader gathers the page that a query selects.
type pageReader struct {
	query   domain.EventQuery
	dialect Dialect
	page    domain.EventPage
	size    int // of the records, in bytes
}

// Bounds returns the ids between which, exclusively, a query selects events, and their order.
func Bounds(q domain.EventQuery) (after, before int64, order string) {
	switch {
	case !q.Backward:
		return q.After, math.MaxInt64, "id"
	case q.Before == 0:
		return math.MinInt64, math.MaxInt64, "id DESC"
	}
	return math.MinInt64, q.Before, "id DESC"
}

// missing returns how many events the page still lacks, including an extra one that shows whether there are more.
func (p *pageReader) missing() int { return p.query.Limit + 1 - len(p.page.Events) }

// take adds an event. It returns false if the page is full.
func (p *pageReader) take(e domain.Event) (added bool) {
	enough := maxPage
	if p.query.Bytes > 0 {
		enough = min(enough, p.query.Bytes)
	}
	if len(p.page.Events) == p.query.Limit || p.size >= enough {
		p.page.More = true
		return false
	}
	p.page.Events = append(p.page.Events, e)
	p.size += len(e.JSON)
	return true
}

// selectEvents returns a statement that selects the columns of events that match a condition.
func selectEvents(from, condition, order string) string {
	return fmt.Sprintf(`SELECT events.id, event_projects.name, type, from_stage, to_stage, COALESCE(event_texts.story_id, ''),
		COALESCE(story_name, ''), COALESCE(more, ''), timestamp_ms, received_at_ms, record
		FROM %s JOIN event_projects ON event_projects.id = events.project_id JOIN event_kinds ON event_kinds.id = kind_id
		LEFT JOIN event_texts ON event_texts.id = text_id WHERE %s ORDER BY events.%s`, from, condition, order)
}

// eachEvent calls take with each event that a statement from selectEvents selects, until take returns false.
func eachEvent(ctx context.Context, tx *sql.Tx, take func(domain.Event) bool, statement string, args ...any) error {
	return EachRow(ctx, tx, func(rows *sql.Rows) (e domain.Event, err error) {
		var kind EventKind
		var text EventText
		var stamp, received int64
		err = rows.Scan(&e.ID, &e.Project, &kind.Type, &kind.From, &kind.To, &text.StoryID, &text.StoryName, &text.More,
			&stamp, &received, (*[]byte)(&e.JSON))
		e.Type, e.At, e.ReceivedAt = kind.Type, time.UnixMilli(stamp), time.UnixMilli(received)
		if err == nil && e.JSON == nil {
			e.JSON = Compose(kind, text, stamp)
		}
		// There may have been too many types, or the engine may have been unable to store this one as it is.
		if e.Type == "" || strings.ContainsRune(string(e.Type), utf8.RuneError) {
			if r, err := domain.ParseRecord(json.RawMessage(e.JSON)); err == nil {
				e.Type = r.Type
			}
		}
		return e, err
	}, take, statement, args...)
}
