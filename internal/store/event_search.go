package store

import (
	"context"
	"database/sql"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"switchyard/internal/domain"
	"switchyard/internal/fold"
)

// SearchLimit is the time limit of a search.
const SearchLimit = 5 * time.Second

// Up to fewMatches matches are read from the index of words at once. If there are more, firstScans batches of events are scanned
// first; if those do not fill the page, up to maxMatches matches are read. A text with even more matches is common enough to be
// found by scanning. Tests use smaller values.
var (
	maxMatches, fewMatches = 5000, 300
	scanned, firstScans    = 2000, 3
)

var errTooLong = domain.Errorf(domain.Unavailable, "the search took too long; search for a longer text, or in one project")

// search runs fn like snapshot, on a connection for searches and within their time limit.
func (db *Tables) search(ctx context.Context, fn func(context.Context, *sql.Tx) error) error {
	limited, cancel := context.WithTimeout(ctx, db.engine.SearchLimit)
	defer cancel()
	err := db.snapshot(limited, db.engine.Searches, fn)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return errTooLong
	}
	return err
}

// readEvents adds the events that match the query.
func readEvents(ctx context.Context, tx *sql.Tx, p *pageReader) error {
	f, found, err := newEventFilter(ctx, tx, p.query)
	if err != nil || !found {
		return err
	}
	if f.text == "" {
		return p.readRuns(ctx, tx, f.runs(f.kinds))
	}
	complete := false
	var runs []Run
	if !f.short() { // short texts are mostly common
		if runs, complete, err = f.matches(ctx, tx, p, fewMatches); err != nil {
			return err
		}
	}
	if !complete {
		before := *p
		if done, err := f.scan(ctx, tx, p, firstScans); done || err != nil {
			return err
		}
		*p = before
		if runs, complete, err = f.matches(ctx, tx, p, maxMatches); err != nil {
			return err
		}
	}
	if !complete {
		_, err := f.scan(ctx, tx, p, math.MaxInt)
		return err
	}
	return p.readRuns(ctx, tx, runs)
}

// eventFilter holds a query's filters as ids of the database.
type eventFilter struct {
	project int64   // 0 for any
	kinds   []int64 // those of the type; nil for any
	text    string  // folded; "" for any
}

// newEventFilter returns false if no event can match.
func newEventFilter(ctx context.Context, tx *sql.Tx, q domain.EventQuery) (f eventFilter, found bool, err error) {
	f.text = fold.Text(q.Text)
	if q.Project != "" {
		ids, err := SelectIDs(ctx, tx, "SELECT id FROM event_projects WHERE name = $1", q.Project)
		if err != nil || len(ids) == 0 {
			return f, false, err
		}
		if f.project = ids[0]; strings.Contains(fold.Text(q.Project), f.text) {
			f.text = ""
		}
	}
	if q.Type != "" {
		f.kinds, err = SelectIDs(ctx, tx, "SELECT id FROM event_kinds WHERE type = $1", q.Type)
		if err != nil || len(f.kinds) == 0 {
			return f, false, err
		}
	}
	return f, true, nil
}

// runs returns the runs of the project's events of these kinds, nil for all.
func (f eventFilter) runs(kinds []int64) []Run {
	if kinds == nil {
		return []Run{{Project: f.project}}
	}
	var runs []Run
	for _, kind := range kinds {
		runs = append(runs, Run{Project: f.project, Kind: kind})
	}
	return runs
}

// matches returns the runs of the events that contain the text in their project's name, their kind, or their other texts. It returns
// false if there are more than most.
func (f eventFilter) matches(ctx context.Context, tx *sql.Tx, p *pageReader, most int) (runs []Run, complete bool, err error) {
	kinds, err := f.matchingKinds(ctx, tx)
	if err != nil {
		return nil, false, err
	}
	if len(kinds) > 0 {
		runs = f.runs(kinds)
	}
	projects, err := f.matchingProjects(ctx, tx)
	if err != nil {
		return nil, false, err
	}
	for _, id := range projects {
		runs = append(runs, eventFilter{project: id}.runs(f.kinds)...)
	}
	if len(runs) > maxMatches {
		return nil, false, nil
	}
	texts, complete, err := f.matchingTexts(ctx, tx, p.dialect, most)
	if err != nil || !complete {
		return nil, false, err
	}
	if texts, err = p.firstTexts(ctx, tx, texts, f.kinds); err != nil {
		return nil, false, err
	}
	for _, id := range texts {
		runs = append(runs, Run{Text: id, Kinds: f.kinds})
	}
	return runs, true, nil
}

// matchingKinds returns those of f's kinds that contain the text.
func (f eventFilter) matchingKinds(ctx context.Context, tx *sql.Tx) ([]int64, error) {
	kinds, err := SelectIDs(ctx, tx, `SELECT id FROM event_kinds WHERE folded LIKE $1 ESCAPE '\'`, Pattern(f.text))
	if f.kinds != nil {
		kinds = slices.DeleteFunc(kinds, func(id int64) bool { return !slices.Contains(f.kinds, id) })
	}
	return kinds, err
}

// matchingProjects returns the projects whose names contain the text, none if the query is about one project.
func (f eventFilter) matchingProjects(ctx context.Context, tx *sql.Tx) ([]int64, error) {
	if f.project != 0 {
		return nil, nil
	}
	return SelectIDs(ctx, tx, `SELECT id FROM event_projects WHERE folded LIKE $1 ESCAPE '\'`, Pattern(f.text))
}

// eachText calls take with each text that a statement selects, until take returns false.
func eachText(ctx context.Context, tx *sql.Tx, take func(id int64, t EventText) bool, statement string, args ...any) error {
	rows, err := tx.QueryContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var t EventText
		if err := rows.Scan(&id, &t.StoryID, &t.StoryName, &t.More); err != nil {
			return err
		}
		if !take(id, t) {
			return nil
		}
	}
	return rows.Err()
}

// matchingTexts returns the texts of f's project that contain the text. It returns false if there are more than most.
func (f eventFilter) matchingTexts(ctx context.Context, tx *sql.Tx, dialect Dialect, most int) (texts []int64, complete bool, err error) {
	statement, args, err := dialect.TextsWith(ctx, tx, f.project, f.text)
	if err != nil || statement == "" {
		return nil, err == nil, err
	}
	seen := 0
	err = eachText(ctx, tx, func(id int64, text EventText) bool {
		if text.holds(f.text) {
			texts = append(texts, id)
		}
		seen++
		return seen < 2*most && len(texts) < most
	}, statement, args...)
	return texts, seen < 2*most && len(texts) < most, err
}

// short reports whether the text is too short to have a trigram.
func (f eventFilter) short() bool { return utf8.RuneCountInString(f.text) < 3 }

// holds reports whether one of the values contains a folded text.
func (t EventText) holds(text string) bool {
	return slices.ContainsFunc(t.Values(), func(value string) bool { return strings.Contains(fold.Text(value), text) })
}
