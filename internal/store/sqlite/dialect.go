package sqlite

import (
	"context"
	"errors"
	"hash/fnv"
	"slices"
	"strings"
	"unicode/utf8"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"switchyard/internal/domain"
	"switchyard/internal/store"
)

// dialect is store.Dialect for SQLite. Parts of words are found by indexes of trigrams.
type dialect struct{}

// Key returns the text up to a NUL, where SQLite's JSON functions end a text.
func (dialect) Key(text string) string {
	text, _, _ = strings.Cut(text, "\x00")
	return text
}

// EventsLike reads events with a text by the index of words, in the order of their ids. The first events with a text
// too short for that are sought among all: mostly they are soon found.
func (dialect) EventsLike(ctx context.Context, tx store.Querier, q domain.EventQuery, first bool) (store.Source,
	error,
) {
	short := utf8.RuneCountInString(q.Text) < 3
	switch {
	case q.Text != "" && !(short && first):
	case q.Project != "" && q.Type != "": // without statistics SQLite may use the index of types
		return store.Source{Tables: "events INDEXED BY events_of_project", ID: "events.id"}, nil
	default:
		return store.Source{Tables: "events", ID: "events.id"}, nil
	}
	terms := trigrams(q.Text)
	if short {
		any, err := beginnings(ctx, tx, q.Text)
		if err != nil {
			return store.Source{}, err
		}
		terms = []string{any}
	}
	if len(terms) == 0 { // only NULs
		terms = []string{noTerm}
	}
	if q.Project != "" {
		terms = append(terms, quote(mark("project", q.Project)))
	}
	if q.Type != "" {
		terms = append(terms, quote(mark("type", string(q.Type))))
	}
	return store.Source{
		Tables: "event_words CROSS JOIN events ON events.id = event_words.rowid", ID: "event_words.rowid",
		Condition: "event_words MATCH $%d", Arg: strings.Join(terms, " AND "),
	}, nil
}

// StoriesWith selects the stories with all trigrams of the words or, if they have none, the newest ones.
func (dialect) StoriesWith(words []string, _ int) (statement string, args []any) {
	var terms []string
	for _, word := range words {
		terms = append(terms, trigrams(word)...)
	}
	if len(terms) == 0 {
		return "SELECT project, story_id, story_name FROM stories ORDER BY id DESC LIMIT $1", []any{store.MaxShortSearch}
	}
	return `SELECT project, story_id, story_name FROM story_words CROSS JOIN stories ON stories.id = story_words.rowid
		WHERE story_words MATCH $1 ORDER BY story_words.rowid DESC`, []any{strings.Join(terms, " AND ")}
}

// padding follows an indexed text, so that its last characters begin trigrams as well.
const padding = "\n\n"

func Indexed(project string, r domain.Record) string {
	return mark("project", project) + "\n" + mark("type", string(r.Type)) + store.EventWords(project, r) + padding
}

// mark returns the trigram, of the private use area, that is indexed with all events of a project or a type: to search
// for one is faster than for those of a name, most of which other names have as well.
func mark(what, name string) string {
	hash := fnv.New64a()
	hash.Write([]byte(what + "\x00" + name))
	sum := hash.Sum64()
	const runes = 0x1000
	return string([]rune{rune(0xe000 + sum%runes), rune(0xe000 + sum/runes%runes), rune(0xe000 + sum/runes/runes%runes)})
}

const noTerm = "\"\x01\x01\x01\""

// trigrams returns just enough trigrams, quoted, to cover a folded text. Results are checked anyway, and each further
// trigram costs time in proportion to the texts that have it.
func trigrams(text string) (terms []string) {
	runes := []rune(text)
	for i := 0; i < len(runes) && len(runes) >= 3; i += 3 {
		at := min(i, len(runes)-3)
		if term := quote(string(runes[at : at+3])); canQuery(term) && !slices.Contains(terms, term) {
			terms = append(terms, term)
		}
	}
	return terms
}

// maxTrigrams is how many trigrams that begin with a short text are searched for.
const maxTrigrams = 200

// beginnings returns a full-text query for any trigram that begins with the text.
func beginnings(ctx context.Context, tx store.Querier, text string) (string, error) {
	terms := []string{noTerm}
	err := store.EachRow(ctx, tx, store.ScanOne[string], func(term string) bool {
		if canQuery(term) {
			terms = append(terms, quote(term))
		}
		return true
	}, "SELECT term FROM event_trigrams WHERE term >= $1 AND term < $2 LIMIT $3", text, text+"\U0010ffff", maxTrigrams)
	return "(" + strings.Join(terms, " OR ") + ")", err
}

// canQuery reports whether a full-text query can contain a term: in FTS5 the character NUL ends a query.
func canQuery(term string) bool { return !strings.Contains(term, "\x00") }

func quote(term string) string { return `"` + strings.ReplaceAll(term, `"`, `""`) + `"` }

// code translates an error of SQLite: Conflict for a row that already exists, Internal for others. The message names
// the reason if people can do something about it.
func code(err error) *domain.Error {
	var driver *sqlite.Error
	if !errors.As(err, &driver) {
		return nil
	}
	switch driver.Code() {
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY:
		return domain.WrapError(domain.Conflict, err, "already exists")
	}
	message := "the store failed"
	switch driver.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		message += ": the disk is full"
	case sqlite3.SQLITE_READONLY:
		message += ": the database is read-only"
	case sqlite3.SQLITE_IOERR:
		message += ": the disk has an error"
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		message += ": the database is damaged"
	}
	return domain.WrapError(domain.Internal, err, message)
}
