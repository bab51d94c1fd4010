package sqlite

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"unicode/utf8"

	"switchyard/internal/store"
)

// This file finds parts of words in SQLite, by an index of trigrams.

// indexedText is a text as it is indexed.
type indexedText struct {
	id    int64
	words string
}

func (w writing) index() error {
	for _, t := range w.unindexed {
		if _, err := w.exec(w.addWords, t.id, t.words); err != nil {
			return err
		}
	}
	return w.merge(len(w.unindexed))
}

// A transaction that changes the index merges mergedPages pages of it, in about a millisecond, plus one for every textsAPage texts.
// With a usermerge of 16 each page is written four times in all until it is in a segment of a million texts.
const mergedPages, textsAPage = 2, 8

// merge merges a few pages of the index after changes of so many texts. By itself FTS5 occasionally merges many at once, and a write
// may wait for seconds ("a change while old events are removed" in make bench).
func (w writing) merge(changed int) error {
	if changed == 0 {
		return nil
	}
	_, err := w.exec(w.mergeWords, mergedPages+changed/textsAPage)
	return err
}

// projectRunes is how many characters of the private use area encode the projects' ids.
const projectRunes = 0x1000

// projectMark returns the trigram that is indexed with each text of a project, to restrict searches to it.
func projectMark(id int64) string {
	return string([]rune{0xe000 + rune(id/projectRunes/projectRunes%projectRunes), 0xe000 + rune(id/projectRunes%projectRunes), 0xe000 + rune(id%projectRunes)})
}

// indexed returns a text in the form in which it is indexed, padded so that its last characters begin trigrams as well.
func indexed(project int64, t store.EventText) string {
	return projectMark(project) + "\n" + t.Folded() + "\n\n"
}

// TextsWith selects the texts that have all trigrams of text, or for a short text, any trigram that begins with it.
func (dialect) TextsWith(ctx context.Context, tx *sql.Tx, project int64, text string) (statement string, args []any, err error) {
	words := trigrams(project, text)
	if utf8.RuneCountInString(text) < 3 {
		words, err = beginnings(ctx, tx, project, text)
	}
	if err != nil || words == "" {
		return "", nil, err
	}
	return `SELECT event_texts.id, story_id, story_name, more FROM event_words JOIN event_texts ON event_texts.id = event_words.rowid
		WHERE event_words MATCH $1 AND event_texts.project_id = COALESCE(NULLIF($2, 0), event_texts.project_id)`, []any{words, project}, nil
}

// maxTrigrams is how many trigrams that begin with a short text are searched for.
const maxTrigrams = 200

// beginnings returns a full-text query for texts with a trigram that begins with the text, in a project unless it is 0; "" when
// there is no such trigram.
func beginnings(ctx context.Context, tx *sql.Tx, project int64, text string) (string, error) {
	rows, err := tx.QueryContext(ctx, "SELECT term FROM event_trigrams WHERE term >= $1 AND term < $2 LIMIT $3", text, text+"\U0010ffff", maxTrigrams)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	var terms []string
	for rows.Next() {
		var term string
		if err := rows.Scan(&term); err != nil {
			return "", err
		}
		if canQuery(term) {
			terms = append(terms, quote(term))
		}
	}
	words := strings.Join(terms, " OR ")
	if project != 0 && words != "" {
		words = "(" + words + ") AND " + quote(projectMark(project))
	}
	return words, rows.Err()
}

// trigrams returns a full-text query for just enough trigrams to cover a folded text, in a project unless it is 0. Results are
// checked anyway, and each further trigram costs time in proportion to the texts that have it.
func trigrams(project int64, text string) string {
	var terms []string
	if project != 0 {
		terms = append(terms, quote(projectMark(project)))
	}
	runes := []rune(text)
	for i := 0; i < len(runes) && len(runes) >= 3; i += 3 {
		at := min(i, len(runes)-3)
		if term := quote(string(runes[at : at+3])); canQuery(term) && !slices.Contains(terms, term) {
			terms = append(terms, term)
		}
	}
	return strings.Join(terms, " AND ")
}

// canQuery reports whether a full-text query can contain a term: in FTS5 the character NUL ends a query.
func canQuery(term string) bool { return !strings.Contains(term, "\x00") }

func quote(term string) string { return `"` + strings.ReplaceAll(term, `"`, `""`) + `"` }
