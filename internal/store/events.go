package store

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"switchyard/internal/domain"
	"switchyard/internal/fold"
	"switchyard/internal/jsonscan"
)

// maxPage is the total size of records, in bytes, after which Events ends a page: a thousand records as large as a
// hostile project server can make them would take too much memory. Pages of our own feeds stay below 3 MiB.
const maxPage = 4 << 20

const SearchLimit = 5 * time.Second

var errTooLong = domain.Errorf(domain.Unavailable,
	"the search took too long; search for a longer text, or in one project")

// Events returns the first q.Limit events that match q: by increasing id, with q.Backward by decreasing id, or with
// q.ByTime by decreasing timestamp. If they are huge it returns fewer, but at least one. It returns Unavailable when a
// search for a text takes too long.
func (db events) Events(ctx context.Context, q domain.EventQuery) (domain.EventPage, error) {
	q.Text = fold.Text(q.Text)
	if q.Project != "" && strings.Contains(fold.Text(q.Project), q.Text) {
		q.Text = ""
	}
	if q.Backward = q.Backward || q.ByTime; q.Backward {
		q.After = math.MinInt64
	}
	if !q.Backward || q.Before == 0 {
		q.Before, q.BeforeAt = math.MaxInt64, math.MaxInt64
	}
	if q.To == 0 {
		q.To = math.MaxInt64
	}
	p := &pageReader{query: q, dialect: db.engine.Dialect}
	var err error
	inOrder := q.Project == "" && q.Type == "" || q.Project != "" && !q.ByTime
	if q.Text == "" && inOrder {
		_, err = p.read(ctx, db.engine.Read, q.Limit+1) // one statement, and so one round trip, unless it is filtered
	} else {
		err = db.search(ctx, func(ctx context.Context, tx *sql.Tx) error { return p.search(ctx, tx) })
	}
	if err != nil {
		return domain.EventPage{}, db.Translate(err)
	}
	for _, e := range p.page.Events {
		db.noteEventID(e.ID)
	}
	return p.page, nil
}

type pageReader struct {
	query   domain.EventQuery // between After and Before, exclusively, with a folded text
	dialect Dialect
	page    domain.EventPage
	size    int // of the records, in bytes
}

// read reads a number of events in order, of the query's project and type, and adds those that match. It reports
// whether that was all: the page is full, or there are no more.
func (p *pageReader) read(ctx context.Context, db Querier, limit int) (done bool, err error) {
	condition, args := p.where()
	from, order := "events", "events.id"
	if p.query.Project != "" && p.query.Type != "" {
		from = p.dialect.ProjectEvents
	}
	switch {
	case p.query.ByTime:
		order = "events.timestamp_ms DESC, events.id DESC"
	case p.query.Backward:
		order += " DESC"
	}
	args = append(args, limit)
	read := 0
	err = eachEvent(ctx, db, func(e domain.Event) bool {
		if read++; p.query.Backward {
			p.query.Before, p.query.BeforeAt = e.ID, e.At.UnixMilli()
		} else {
			p.query.After = e.ID
		}
		return p.add(e)
	}, selectEvents(from, "TRUE"+condition, order, len(args)), args...)
	return err != nil || p.page.More || read < limit, err
}

// where returns the conditions that events are between the query's ids or times and of its project and type.
func (p *pageReader) where() (condition string, args []any) {
	condition, args = p.between()
	if p.query.Project != "" {
		args = append(args, p.query.Project)
		condition += fmt.Sprintf(" AND events.project = $%d", len(args))
	}
	if p.query.Type != "" {
		args = append(args, Key(string(p.query.Type)))
		condition += fmt.Sprintf(" AND events.type = $%d", len(args))
	}
	return condition, args
}

func (p *pageReader) between() (condition string, args []any) {
	q := p.query
	if !q.ByTime {
		return " AND events.id > $1 AND events.id < $2", []any{q.After, q.Before}
	}
	return " AND (events.timestamp_ms, events.id) < ($1, $2) AND events.timestamp_ms >= $3 AND events.timestamp_ms < $4",
		[]any{q.BeforeAt, q.Before, q.From, q.To}
}

// add adds an event if it matches. It returns false if the page is full.
func (p *pageReader) add(e domain.Event) (more bool) {
	q := p.query
	if q.Type != "" && e.Type != q.Type || q.Finished && !q.Finishes(e) || q.Text != "" && !hasText(e, q.Text) {
		return true
	}
	enough := maxPage
	if q.Bytes > 0 {
		enough = min(enough, q.Bytes)
	}
	if len(p.page.Events) == q.Limit || p.size >= enough {
		p.page.More = true
		return false
	}
	p.page.Events = append(p.page.Events, e)
	p.size += len(e.JSON)
	return true
}

func selectEvents(from, condition, order string, limit int) string {
	return fmt.Sprintf(`SELECT events.id, events.project, events.type, events.timestamp_ms, events.received_at_ms,
		events.record FROM %s WHERE %s ORDER BY %s LIMIT $%d`, from, condition, order, limit)
}

// eachEvent calls yield with each event that a statement from selectEvents selects, until yield returns false.
func eachEvent(ctx context.Context, db Querier, yield func(domain.Event) bool, statement string, args ...any) error {
	return EachRow(ctx, db, func(row Row) (e domain.Event, err error) {
		var stamp, received int64
		err = row.Scan(&e.ID, &e.Project, &e.Type, &stamp, &received, (*[]byte)(&e.JSON))
		e.At, e.ReceivedAt = time.UnixMilli(stamp), time.UnixMilli(received)
		if err == nil && typeDiffers(e) {
			if r, err := domain.ParseRecord(e.JSON); err == nil {
				e.Type, e.At = r.Type, r.At
			}
		}
		return e, err
	}, yield, statement, args...)
}

// typeDiffers reports whether the column of the type may differ from the record's: no engine can store every text as it
// is.
func typeDiffers(e domain.Event) bool {
	return e.Type == "" || len(e.Type) > domain.MaxText || strings.ContainsRune(string(e.Type), utf8.RuneError) ||
		strings.Contains(string(e.JSON), `\u0000`)
}

func hasText(e domain.Event, text string) bool {
	texts := []string{e.Project}
	// A record without escapes contains its texts as they are, which takes a tenth of the time to check.
	if record := string(e.JSON); strings.Contains(record, `\`) || strings.Contains(fold.Text(record), text) {
		texts = append(texts, jsonscan.Strings(e.JSON)...)
	}
	return slices.ContainsFunc(texts, func(value string) bool { return strings.Contains(fold.Text(value), text) })
}

// FeedCursors returns the reading positions for every URL that the project has ever had, in no particular order.
func (db events) FeedCursors(ctx context.Context, project string) ([]domain.FeedCursor, error) {
	return selectAll(ctx, db.conn, func(row Row) (c domain.FeedCursor, err error) {
		err = row.Scan(&c.Project, &c.URL, &c.Since, &c.Instance, &c.Sequence)
		return c, err
	}, "SELECT project, url, since, instance, sequence FROM feed_cursors WHERE project = $1", project)
}
