package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/fold"
	"switchyard/internal/store"
)

const (
	// defaultSearchLimit is how long a search may take.
	defaultSearchLimit = 5 * time.Second
	// maxMatches is how many texts are looked up in the index of words. A text that more of them hold is common enough to be
	// found by reading events.
	maxMatches = 5000
	// scanned is how many events are read at once then, and shortScan how often, before a text of one or two characters is looked
	// up.
	scanned, shortScan = 2000, 3
	// maxTrigrams is how many trigrams may begin with it.
	maxTrigrams = 200
)

var errTooLong = domain.Errorf(domain.Unavailable, "the search took too long; search for a longer text, or in one project")

// search runs fn as snapshot does, on a connection for searches and within their limit.
func (db *DB) search(ctx context.Context, fn func(context.Context, *sql.Tx) error) error {
	limited, cancel := context.WithTimeout(ctx, db.searchLimit)
	defer cancel()
	err := snapshot(limited, db.searches, fn)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return errTooLong
	}
	return err
}

// readEvents adds what the query selects.
func readEvents(ctx context.Context, tx *sql.Tx, p *pageReader) error {
	f, found, err := newEventFilter(ctx, tx, p.query)
	if err != nil || !found {
		return err
	}
	if f.text == "" {
		return p.readRuns(ctx, tx, f.runs(f.kinds))
	}
	if f.short() { // what is so short is common, most of the time
		before := *p
		if done, err := f.scan(ctx, tx, p, shortScan); done || err != nil {
			return err
		}
		*p = before
	}
	runs, complete, err := f.matches(ctx, tx, p)
	if err != nil {
		return err
	}
	if !complete {
		_, err := f.scan(ctx, tx, p, math.MaxInt)
		return err
	}
	return p.readRuns(ctx, tx, runs)
}

// eventFilter is a query's filters in terms of the database.
type eventFilter struct {
	project int64   // 0 for any
	kinds   []int64 // those of the type; nil for any
	text    string  // folded; "" for any
}

// newEventFilter returns false when it can select nothing.
func newEventFilter(ctx context.Context, tx *sql.Tx, q domain.EventQuery) (f eventFilter, found bool, err error) {
	f.text = fold.Text(q.Text)
	if q.Project != "" {
		ids, err := selectIDs(ctx, tx, "SELECT id FROM event_projects WHERE name = $1", q.Project)
		if err != nil || len(ids) == 0 {
			return f, false, err
		}
		if f.project = ids[0]; strings.Contains(fold.Text(q.Project), f.text) {
			f.text = ""
		}
	}
	if q.Type != "" {
		f.kinds, err = selectIDs(ctx, tx, "SELECT id FROM event_kinds WHERE type = $1", q.Type)
		if err != nil || len(f.kinds) == 0 {
			return f, false, err
		}
	}
	return f, true, nil
}

// runs are the events of the project and of these kinds, nil for all.
func (f eventFilter) runs(kinds []int64) []run {
	if kinds == nil {
		return []run{{project: f.project}}
	}
	var runs []run
	for _, kind := range kinds {
		runs = append(runs, run{project: f.project, kind: kind})
	}
	return runs
}

// matches returns the runs of the events that hold the text: in their project's name, in what makes their kind, or in their
// further texts. It returns false when those are too many.
func (f eventFilter) matches(ctx context.Context, tx *sql.Tx, p *pageReader) (runs []run, complete bool, err error) {
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
	texts, complete, err := f.matchingTexts(ctx, tx)
	if err != nil || !complete {
		return nil, false, err
	}
	if texts, err = firstTexts(ctx, tx, texts, f.kinds, p.query, p.missing()); err != nil {
		return nil, false, err
	}
	for _, id := range texts {
		runs = append(runs, run{text: id, kinds: f.kinds})
	}
	return runs, true, nil
}

// matchingKinds returns the wanted kinds that hold the text.
func (f eventFilter) matchingKinds(ctx context.Context, tx *sql.Tx) ([]int64, error) {
	kinds, err := selectIDs(ctx, tx, `SELECT id FROM event_kinds WHERE folded LIKE $1 ESCAPE '\'`, store.Pattern(f.text))
	if f.kinds != nil {
		kinds = slices.DeleteFunc(kinds, func(id int64) bool { return !slices.Contains(f.kinds, id) })
	}
	return kinds, err
}

// matchingProjects returns the projects that hold the text in their names, none when the query is about one.
func (f eventFilter) matchingProjects(ctx context.Context, tx *sql.Tx) ([]int64, error) {
	if f.project != 0 {
		return nil, nil
	}
	return selectIDs(ctx, tx, `SELECT id FROM event_projects WHERE folded LIKE $1 ESCAPE '\'`, store.Pattern(f.text))
}

// eachText calls take with the texts that a statement selects, until it returns false.
func eachText(ctx context.Context, tx *sql.Tx, take func(id int64, t eventText) bool, statement string, args ...any) error {
	rows, err := tx.QueryContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var t eventText
		if err := rows.Scan(&id, &t.StoryID, &t.StoryName, &t.More); err != nil {
			return err
		}
		if !take(id, t) {
			return nil
		}
	}
	return rows.Err()
}

// isMissing reports whether nothing was found.
func isMissing(err error) bool { return errors.Is(err, sql.ErrNoRows) }
