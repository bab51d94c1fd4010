package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"switchyard/internal/domain"
	"switchyard/internal/fold"
)

// maxPage is the total size of records, in bytes, after which Events ends a page: a thousand records as large as a
// hostile project server can make them would take too much memory. Pages of our own feeds stay below 3 MiB.
const maxPage = 4 << 20

// A search reads so many events at once, not all of which have to match; more for a text of one or two characters.
const minRound, minShortRound = 200, 2000

const SearchLimit = 5 * time.Second

var errTooLong = domain.Errorf(domain.Unavailable,
	"the search took too long; search for a longer text, or in one project")

// Events returns the first q.Limit events that match q: by increasing id, or with q.Backward by decreasing id. If they
// are huge it returns fewer, but at least one. It returns Unavailable when a search for a text takes too long.
func (db events) Events(ctx context.Context, q domain.EventQuery) (domain.EventPage, error) {
	q.Text = fold.Text(q.Text)
	if q.Project != "" && strings.Contains(fold.Text(q.Project), q.Text) {
		q.Text = ""
	}
	if q.Backward {
		q.After = math.MinInt64
	}
	if !q.Backward || q.Before == 0 {
		q.Before = math.MaxInt64
	}
	reader := &pageReader{query: q, dialect: db.engine.Dialect}
	var err error
	if q.Text == "" {
		err = reader.read(ctx, db.engine.Read) // one statement, and so one round trip, unless it is filtered
	} else {
		err = db.search(ctx, func(ctx context.Context, tx *sql.Tx) error { return reader.read(ctx, tx) })
	}
	if err != nil {
		return domain.EventPage{}, db.Translate(err)
	}
	return reader.page, nil
}

type pageReader struct {
	query   domain.EventQuery // between After and Before, exclusively, with a folded text
	dialect Dialect
	page    domain.EventPage
	size    int // of the records, in bytes
}

// read reads the page in rounds: a statement selects all events that match the query, and may select others.
func (p *pageReader) read(ctx context.Context, db Querier) error {
	limit := p.query.Limit + 1 // one more shows whether others follow
	switch n := utf8.RuneCountInString(p.query.Text); {
	case n > 2:
		limit = max(limit, minRound)
	case n > 0:
		limit = max(limit, minShortRound)
	}
	for first := true; ; first = false {
		statement, args, err := p.statement(ctx, db, first, limit)
		if err != nil {
			return err
		}
		read := 0
		err = eachEvent(ctx, db, func(e domain.Event) bool {
			if read++; p.query.Backward {
				p.query.Before = e.ID
			} else {
				p.query.After = e.ID
			}
			return p.add(e)
		}, statement, args...)
		if err != nil || p.page.More || read < limit {
			return err
		}
	}
}

func (p *pageReader) statement(ctx context.Context, db Querier, first bool, limit int) (string, []any, error) {
	q := p.query
	from, err := p.dialect.EventsLike(ctx, db, q, first)
	if err != nil {
		return "", nil, err
	}
	args := []any{q.After, q.Before, limit}
	condition := from.ID + " > $1 AND " + from.ID + " < $2"
	where := func(what, value string) {
		if value != "" {
			args = append(args, value)
			condition += fmt.Sprintf(" AND "+what, len(args))
		}
	}
	where("events.project = $%d", q.Project)
	where("events.type = $%d", p.dialect.Key(string(q.Type)))
	where(from.Condition, from.Arg)
	order := from.ID
	if q.Backward {
		order += " DESC"
	}
	return selectEvents(from.Tables, condition, order, 3), args, nil
}

// add adds an event if it matches. It returns false if the page is full.
func (p *pageReader) add(e domain.Event) (more bool) {
	if p.query.Type != "" && e.Type != p.query.Type || p.query.Text != "" && !hasText(e, p.query.Text) {
		return true
	}
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
		if typeDiffers(e) {
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

// maxWords is how many bytes of an event's texts are searched by the index: indexing takes a microsecond for some of
// them.
const maxWords = 8 << 10

// EventWords returns the text by which an event is searched: project, type and the other texts, folded, each on a line
// of its own.
func EventWords(project string, r domain.Record) string {
	d := r.Details()
	texts := []string{project, string(r.Type), d.StoryID, d.StoryName, d.FromStage, d.ToStage}
	known := len(texts)
	for _, text := range r.Texts() {
		if !slices.Contains(texts[:known], text) {
			texts = append(texts, text)
		}
	}
	var b strings.Builder
	b.WriteByte('\n')
	for _, text := range texts {
		if text == "" {
			continue
		}
		if b.WriteString(fold.Text(text) + "\n"); b.Len() > maxWords {
			return domain.CutBytes(b.String(), maxWords) + "\n"
		}
	}
	return b.String()
}

func StoryWords(id, name string) string { return fold.Text(id + "\n" + name) }

// StoryOf returns the story of an event, and false for an event of none.
func StoryOf(e domain.Event) (s domain.StoryRef, ok bool) {
	if !e.Type.Kind().OfStory {
		return s, false
	}
	d := e.Details()
	return domain.StoryRef{Project: e.Project, ID: d.StoryID, Name: d.StoryName}, d.StoryID != ""
}

func hasText(e domain.Event, text string) bool {
	return slices.ContainsFunc(append(e.Texts(), e.Project), func(value string) bool {
		return strings.Contains(fold.Text(value), text)
	})
}

// EventDigest identifies a record among those of all projects: it is the first 8 bytes of a SHA-256.
func EventDigest(project string, r domain.Record) int64 {
	hash := sha256.New()
	hash.Write([]byte(project + "\x00"))
	hash.Write(r.JSON)
	return int64(binary.BigEndian.Uint64(hash.Sum(nil)))
}

// FeedCursors returns the reading positions for every URL that the project has ever had, in no particular order.
func (db events) FeedCursors(ctx context.Context, project string) ([]domain.FeedCursor, error) {
	return selectAll(ctx, db.conn, func(row Row) (c domain.FeedCursor, err error) {
		err = row.Scan(&c.Project, &c.URL, &c.Since, &c.Instance, &c.Sequence)
		return c, err
	}, "SELECT project, url, since, instance, sequence FROM feed_cursors WHERE project = $1", project)
}
