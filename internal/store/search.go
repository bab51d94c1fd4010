package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"switchyard/internal/domain"
	"switchyard/internal/fold"
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
	for _, text := range r.Texts() {
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

// Values that tests change, as they have few events.
var (
	// roundRead is how many events in order are read at once: the first ones have what one in twenty has.
	roundRead = 2000
	// maxFound is how many events may be found by an index of texts. If there are more, some are found soon in order.
	maxFound = 30_000
)

func (p *pageReader) search(ctx context.Context, tx *sql.Tx) error {
	if done, err := p.read(ctx, tx, roundRead); err != nil || done {
		return err
	}
	found, err := p.find(ctx, tx)
	if err != nil {
		return err
	}
	for len(found) > maxFound {
		if done, err := p.read(ctx, tx, roundRead); err != nil || done {
			return err
		}
	}
	slices.Sort(found)
	found = slices.Compact(found)
	if p.query.Backward {
		slices.Reverse(found)
	}
	for ids := range slices.Chunk(found, roundRead) {
		err := p.each(ctx, tx, p.add, "events.id IN ("+List(ids)+")", len(ids))
		if err != nil || p.page.More {
			return err
		}
	}
	return nil
}

// find returns the ids of all events that may contain the text and have not been read, in any order, or more than
// maxFound of them.
func (p *pageReader) find(ctx context.Context, tx *sql.Tx) (ids []int64, err error) {
	q := p.query
	text := Text(q.Text)
	if text == "" {
		return nil, nil
	}
	condition, args := p.where()
	containing := func(table string) string {
		statement, more := p.dialect.containing(table, len(args)+1, text)
		args = append(args, more...)
		return statement
	}
	if q.Project != "" {
		statement := "SELECT events.id FROM " + p.dialect.ProjectEvents + " WHERE (events.story IN (" +
			containing("stories") + ") OR events.text IN (" + containing("texts") + "))" + condition
		return p.ids(ctx, tx, statement, args)
	}
	for _, by := range []struct{ table, column, text string }{
		{"stories", "story", "events.text"}, {"texts", "text", "found.id"},
	} {
		condition, args = p.where()
		if q.Type != "" { // by an index, not by the events
			condition = strings.Replace(condition, "events.type = $3",
				"EXISTS (SELECT 1 FROM texts WHERE texts.id = "+by.text+" AND texts.type = $3)", 1)
		}
		more, err := p.ids(ctx, tx, "SELECT events.id FROM ("+containing(by.table)+") AS found CROSS JOIN events"+
			" WHERE events."+by.column+" = found.id"+condition, args)
		if ids = append(ids, more...); err != nil || len(ids) > maxFound {
			return ids, err
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
		condition, args = p.where()
		args = append(args, project)
		more, err := p.ids(ctx, tx, fmt.Sprintf("SELECT events.id FROM %s WHERE events.project = $%d",
			p.dialect.ProjectEvents, len(args))+condition, args)
		if ids = append(ids, more...); err != nil || len(ids) > maxFound {
			return ids, err
		}
	}
	return ids, nil
}

func (p *pageReader) ids(ctx context.Context, tx *sql.Tx, statement string, args []any) ([]int64, error) {
	return AllRows(ctx, tx, ScanOne[int64], fmt.Sprintf("%s LIMIT %d", statement, maxFound+1), args...)
}

// tooShort reports whether a text is in no index: those have three characters at a time.
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
