package sqlite

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"unicode/utf8"

	"switchyard/internal/fold"
)

// What is particular to SQLite in finding parts of words is here: the index of trigrams.

// indexedText is what of a text is indexed.
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
	return nil
}

// projectRunes is how many characters of the private use area number the projects.
const projectRunes = 0x1000

// projectMark is the trigram that is indexed with each text of a project, to be searched with others.
func projectMark(id int64) string {
	return string([]rune{0xe000 + rune(id/projectRunes/projectRunes%projectRunes), 0xe000 + rune(id/projectRunes%projectRunes), 0xe000 + rune(id%projectRunes)})
}

// indexed is what of a text is indexed. At its end each of its characters begins a trigram, too.
func indexed(project int64, t eventText) string {
	return projectMark(project) + "\n" + fold.Text(strings.Join(t.values(), "\n")) + "\n\n"
}

// matchingTexts returns the texts of the wanted project, 0 for any, that hold the text. It returns false when those are too
// many.
func (f eventFilter) matchingTexts(ctx context.Context, tx *sql.Tx) (texts []int64, complete bool, err error) {
	words := trigrams(f.project, f.text)
	if f.short() {
		if words, err = f.beginnings(ctx, tx); err != nil || words == "" {
			return nil, err == nil, err
		}
	}
	seen := 0
	err = eachText(ctx, tx, func(id int64, text eventText) bool {
		if text.holds(f.text) {
			texts = append(texts, id)
		}
		seen++
		return seen < 2*maxMatches && len(texts) < maxMatches
	}, `SELECT event_texts.id, story_id, story_name, more FROM event_words JOIN event_texts ON event_texts.id = event_words.rowid
		WHERE event_words MATCH $1 AND event_texts.project_id = COALESCE(NULLIF($2, 0), event_texts.project_id)`, words, f.project)
	return texts, seen < 2*maxMatches && len(texts) < maxMatches, err
}

// short reports whether the text is too short to have a trigram.
func (f eventFilter) short() bool { return utf8.RuneCountInString(f.text) < 3 }

// beginnings is a full-text query for what holds a trigram that begins with the text, in the wanted project; "" when there is
// none.
func (f eventFilter) beginnings(ctx context.Context, tx *sql.Tx) (string, error) {
	rows, err := tx.QueryContext(ctx, "SELECT term FROM event_trigrams WHERE term >= $1 AND term < $2 LIMIT $3", f.text, f.text+"\U0010ffff", maxTrigrams)
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
		terms = append(terms, quote(term))
	}
	words := strings.Join(terms, " OR ")
	if f.project != 0 && words != "" {
		words = "(" + words + ") AND " + quote(projectMark(f.project))
	}
	return words, rows.Err()
}

// trigrams is a full-text query for what holds all trigrams of a folded text, in a project unless it is 0.
func trigrams(project int64, text string) string {
	var terms []string
	if project != 0 {
		terms = append(terms, quote(projectMark(project)))
	}
	runes := []rune(text)
	for i := range len(runes) - 2 {
		if term := quote(string(runes[i : i+3])); !slices.Contains(terms, term) {
			terms = append(terms, term)
		}
	}
	return strings.Join(terms, " AND ")
}

func quote(term string) string { return `"` + strings.ReplaceAll(term, `"`, `""`) + `"` }

// holds reports whether a folded text is in one of the values.
func (t eventText) holds(text string) bool {
	return slices.ContainsFunc(t.values(), func(value string) bool { return strings.Contains(fold.Text(value), text) })
}
