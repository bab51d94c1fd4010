package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"switchyard/internal/domain"
	"switchyard/internal/fold"
	"switchyard/internal/jsonscan"
)

// maxWords is how much is searched of an event's texts and of all the names that a story has had, in bytes.
const maxWords = 8 << 10

// eventWords returns the texts by which an event is searched, folded, each on a line of its own. Many events have the
// same ones: a story's id and name are searched as stories' are.
func eventWords(r domain.Record) string {
	d := r.Details()
	ofStory := r.Type.Kind().OfStory && d.StoryID != ""
	var b strings.Builder
	b.WriteByte('\n')
	for _, text := range jsonscan.Strings(r.JSON) {
		if text == "" || ofStory && (text == d.StoryID || text == d.StoryName) {
			continue
		}
		if b.WriteString(fold.Text(text) + "\n"); b.Len() > maxWords {
			return domain.CutBytes(b.String(), maxWords)
		}
	}
	return b.String()
}

func storyWords(id, name string) string { return "\n" + fold.Text(id) + "\n" + fold.Text(name) + "\n" }

// Values that tests change, since they have few events.
var (
	// roundSize is how many events in order are read at once: enough to find at once what one in twenty has.
	roundSize = 2000
	// maxFound is how many events may be found by an index of texts. If there are more, some are found soon in order.
	maxFound = 30_000
	// newestStories is how many stories are searched in order: they may be all that is needed, and words too short for
	// the index are searched nowhere else.
	newestStories = 2000
)

func (p *pageReader) search(ctx context.Context, tx *sql.Tx) error {
	q := p.query
	if q.ByTime && q.Project != "" {
		return p.searchProject(ctx, tx)
	}
	if q.Type != "" && q.Project == "" {
		common, err := p.isCommonType(ctx, tx)
		switch {
		case err != nil:
			return err
		case !common:
			condition, args := p.between()
			args = append(args, Key(string(q.Type)))
			found, err := p.places(ctx, tx, ofType(len(args))+condition, args, maxFound)
			if err != nil {
				return err
			}
			return p.readAll(ctx, tx, found)
		case q.Text == "":
			return p.readOn(ctx, tx)
		}
	}
	if done, err := p.read(ctx, tx, roundSize); err != nil || done {
		return err
	}
	found, err := p.find(ctx, tx)
	switch {
	case err != nil:
		return err
	case len(found) > maxFound:
		return p.readOn(ctx, tx)
	}
	return p.readAll(ctx, tx, found)
}

// round is how many events are read at once: all that are requested, if all that are read match.
func (p *pageReader) round() int {
	if p.query.Text == "" && !p.query.Finished {
		return p.query.Limit + 1
	}
	return roundSize
}

// readOn reads events in order until the page is full or there are no more.
func (p *pageReader) readOn(ctx context.Context, tx *sql.Tx) error {
	for {
		if done, err := p.read(ctx, tx, p.round()); err != nil || done {
			return err
		}
	}
}

func (p *pageReader) readAll(ctx context.Context, tx *sql.Tx, found []place) error {
	slices.SortFunc(found, func(a, b place) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id)) })
	found = slices.Compact(found)
	if p.query.Backward {
		slices.Reverse(found)
	}
	_, err := p.readFound(ctx, tx, found)
	return err
}

// searchProject reads the events of one project by time: its index has their times, but is not in their order.
func (p *pageReader) searchProject(ctx context.Context, tx *sql.Tx) error {
	limit := p.round()
	for {
		from, args := p.ofProject()
		found, err := p.places(ctx, tx, from+" ORDER BY events.timestamp_ms DESC, events.id DESC", args, limit)
		if err != nil {
			return err
		}
		done, err := p.readFound(ctx, tx, found)
		if err != nil || done || len(found) < limit {
			return err
		}
		last := found[len(found)-1]
		p.query.BeforeAt, p.query.Before = last.at, last.id
	}
}

// readFound reads events at these places, which are in order, and adds those that match. It reports whether the page
// is full.
func (p *pageReader) readFound(ctx context.Context, tx *sql.Tx, found []place) (full bool, err error) {
	for chunk := range slices.Chunk(found, roundSize) {
		ids, events := make([]int64, len(chunk)), map[int64]domain.Event{}
		for i := range chunk {
			ids[i] = chunk[i].id
		}
		err := eachEvent(ctx, tx, func(e domain.Event) bool {
			events[e.ID] = e
			return true
		}, selectEvents("events", "events.id IN ("+List(ids)+")", "events.id", 1), len(ids))
		if err != nil {
			return false, err
		}
		for _, id := range ids {
			if e, found := events[id]; found && !p.add(e) {
				return true, nil
			}
		}
	}
	return false, nil
}

// place is an event's position in the order of a query; at is 0 if the order is by id.
type place struct{ at, id int64 }

// ofProject selects the events of the query's project that may match.
func (p *pageReader) ofProject() (from string, args []any) {
	condition, args := p.where()
	from = p.dialect.ProjectEvents + " WHERE TRUE" + condition
	if text := Text(p.query.Text); text != "" {
		ids := func(table string) string {
			selected, more := p.dialect.containing(table, len(args)+1, text)
			args = append(args, more...)
			return selected
		}
		from += " AND (events.story IN (" + ids("stories") + ") OR events.text IN (" + ids("texts") + "))"
	}
	return from, args
}

// isCommonType reports whether more than maxFound events have the query's type. Reading in order then soon finds some,
// while checking all of them for those between two times takes seconds; the last event of an uncommon type may be long
// ago.
func (p *pageReader) isCommonType(ctx context.Context, tx *sql.Tx) (bool, error) {
	var n int
	err := tx.QueryRowContext(ctx, fmt.Sprintf("SELECT count(*) FROM (SELECT 1 FROM %s LIMIT %d) AS first",
		ofType(1), maxFound+1), Key(string(p.query.Type))).Scan(&n)
	return n > maxFound, err
}

// ofType selects the events of a type, which is argument n, by an index.
func ofType(n int) string {
	return fmt.Sprintf("(SELECT id FROM texts WHERE type = $%d) AS found"+
		" CROSS JOIN events WHERE events.text = found.id", n)
}

// find returns the places of all events that may match and have not been read, unordered, or more than maxFound of
// them.
func (p *pageReader) find(ctx context.Context, tx *sql.Tx) (found []place, err error) {
	q := p.query
	text := Text(q.Text)
	if q.Project != "" {
		from, args := p.ofProject()
		return p.places(ctx, tx, from, args, maxFound+1)
	}
	if text == "" {
		return nil, nil
	}
	add := func(from string, args []any) (enough bool) {
		var places []place
		places, err = p.places(ctx, tx, from, args, maxFound+1)
		found = append(found, places...)
		return err != nil || len(found) > maxFound
	}
	for _, by := range []struct{ table, column, text string }{
		{"stories", "story", "events.text"}, {"texts", "text", "found.id"},
	} {
		condition, args := p.between()
		containing, more := p.dialect.containing(by.table, len(args)+1, text)
		args = append(args, more...)
		if q.Type != "" { // through an index, not the events
			args = append(args, Key(string(q.Type)))
			condition += fmt.Sprintf(" AND EXISTS (SELECT 1 FROM texts WHERE texts.id = %s AND texts.type = $%d)",
				by.text, len(args))
		}
		if add("("+containing+") AS found CROSS JOIN events WHERE events."+by.column+" = found.id"+condition, args) {
			return found, err
		}
	}
	projects, err := AllRows(ctx, tx, ScanOne[string], "SELECT DISTINCT project FROM feed_cursors")
	if err != nil {
		return nil, err
	}
	for _, project := range projects {
		if !strings.Contains(fold.Text(project), text) {
			continue
		}
		condition, args := p.where()
		args = append(args, project)
		of := fmt.Sprintf("%s WHERE events.project = $%d", p.dialect.ProjectEvents, len(args))
		if add(of+condition, args) {
			break
		}
	}
	return found, err
}

func (p *pageReader) places(ctx context.Context, tx *sql.Tx, from string, args []any, limit int) ([]place, error) {
	at := "0"
	if p.query.ByTime {
		at = "events.timestamp_ms"
	}
	return AllRows(ctx, tx, func(row Row) (found place, err error) {
		err = row.Scan(&found.id, &found.at)
		return found, err
	}, fmt.Sprintf("SELECT events.id, %s FROM %s LIMIT %d", at, from, limit), args...)
}

// tooShort reports whether a text is too short for the indexes, which have three characters at a time.
func tooShort(text string) bool { return utf8.RuneCountInString(text) < 3 }

// containing is Containing for a text of any length.
func (d Dialect) containing(table string, n int, text string) (statement string, args []any) {
	if !tooShort(text) {
		return d.Containing(table, n, text)
	}
	return fmt.Sprintf(`SELECT id FROM %s WHERE words LIKE $%d ESCAPE '\'`, table, n), []any{Pattern(text)}
}

var likeEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// Pattern returns the LIKE pattern, with the backslash as its ESCAPE, for values that contain text.
func Pattern(text string) string { return "%" + likeEscaper.Replace(text) + "%" }

// Text returns a text as every engine can store it: valid UTF-8 without NUL. Records of events keep NUL, which JSON
// escapes.
func Text(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "\ufffd")
}

// maxKey is the length, in bytes, up to which an index can hold a story's id with its project.
const maxKey = 2000

// Key returns the form in which a type or a story's id is stored and indexed: the text itself or, if that is not
// possible, another one that ends with a number to be unique.
func Key(s string) string {
	short := domain.CutBytes(Text(s), maxKey)
	if short == s {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return fmt.Sprintf("%s\ufffd%x", short, sum[:8])
}
