package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"switchyard/internal/domain"
)

// A run is a set of events whose ids an index holds in order: those of a project, of a kind, of a project and a kind, or of a
// text. Its fields are 0 for any.
type run struct {
	project, kind, text int64
	// kinds, unless it is nil, are the only ones wanted. The events of the run are read to know theirs.
	kinds []int64
}

// from is the table of events with the run's index. Without statistics SQLite takes that of the kind alone for a project's
// events of a kind, which at ten million events is a hundred times slower.
func (r run) from() string {
	switch {
	case r.text != 0:
		return "events INDEXED BY events_of_text"
	case r.project != 0 && r.kind != 0:
		return "events INDEXED BY events_of_project_kind"
	case r.project != 0:
		return "events INDEXED BY events_of_project"
	case r.kind != 0:
		return "events INDEXED BY events_of_kind"
	}
	return "events"
}

// condition selects the run's events between the ids $1 and $2.
func (r run) condition() string {
	var b strings.Builder
	for _, c := range []struct {
		column string
		id     int64
	}{{"project_id", r.project}, {"kind_id", r.kind}, {"text_id", r.text}} {
		if c.id != 0 {
			fmt.Fprintf(&b, "events.%s = %d AND ", c.column, c.id)
		}
	}
	if r.kinds != nil {
		fmt.Fprintf(&b, "events.kind_id IN (%s) AND ", list(r.kinds))
	}
	b.WriteString("events.id > $1 AND events.id < $2")
	return b.String()
}

// list is these ids with commas between.
func list(ids []int64) string {
	return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(ids)), ","), "[]")
}

// readRuns adds events of these runs.
func (p *pageReader) readRuns(ctx context.Context, tx *sql.Tx, runs []run) error {
	after, before, order := bounds(p.query)
	if len(runs) == 1 {
		return eachEvent(ctx, tx, p.take, selectEvents(runs[0].from(), runs[0].condition(), order+" LIMIT $3"), after, before, p.missing())
	}
	ids, err := mergeRuns(ctx, tx, runs, p.query, p.missing())
	if err != nil {
		return err
	}
	return p.readIDs(ctx, tx, ids)
}

// readIDs adds the events of these ids.
func (p *pageReader) readIDs(ctx context.Context, tx *sql.Tx, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	_, _, order := bounds(p.query)
	return eachEvent(ctx, tx, p.take, selectEvents("events", "events.id IN ("+list(ids)+")", order))
}

// maxMerged is how many runs one statement merges: SQLite takes 500.
const maxMerged = 400

// mergeRuns returns the first limit ids of events of these runs, in the query's order.
func mergeRuns(ctx context.Context, tx *sql.Tx, runs []run, q domain.EventQuery, limit int) ([]int64, error) {
	after, before, order := bounds(q)
	var merged []int64
	for some := range slices.Chunk(runs, maxMerged) {
		ids, err := selectIDs(ctx, tx, mergeStatement(some, order), after, before, limit)
		if err != nil {
			return nil, err
		}
		merged = append(merged, ids...)
	}
	slices.Sort(merged)
	if q.Backward {
		slices.Reverse(merged)
	}
	merged = slices.Compact(merged)
	return merged[:min(limit, len(merged))], nil
}

// mergeStatement selects the first $3 ids of these runs. SQLite reads from each no more than it needs.
func mergeStatement(runs []run, order string) string {
	var b strings.Builder
	for i, r := range runs {
		if i > 0 {
			b.WriteString(" UNION ")
		}
		b.WriteString("SELECT events.id AS id FROM " + r.from() + " WHERE " + r.condition())
	}
	return b.String() + " ORDER BY " + strings.TrimPrefix(order, "events.") + " LIMIT $3"
}

// firstTexts returns those of these texts among whose events are the first limit of all, perhaps with others. Each has to be
// looked at, but only at its first event: there cannot be more than limit texts whose first event is among them.
func firstTexts(ctx context.Context, tx *sql.Tx, texts, kinds []int64, q domain.EventQuery, limit int) ([]int64, error) {
	if len(texts) <= limit {
		return texts, nil
	}
	after, before, _ := bounds(q)
	return selectIDs(ctx, tx, firstTextsStatement(texts, kinds, q), after, before, limit)
}

func firstTextsStatement(texts, kinds []int64, q domain.EventQuery) string {
	first, order := "MIN(events.id)", "head"
	if q.Backward {
		first, order = "MAX(events.id)", "head DESC"
	}
	text := run{text: 1, kinds: kinds}
	condition := strings.Replace(text.condition(), "events.text_id = 1 ", "events.text_id = texts.id ", 1)
	values := strings.ReplaceAll(list(texts), ",", "),(")
	return fmt.Sprintf(`WITH texts (id) AS (VALUES (%s)) SELECT id FROM (
		SELECT id, (SELECT %s FROM %s WHERE %s) AS head FROM texts) AS heads WHERE head IS NOT NULL ORDER BY %s LIMIT $3`,
		values, first, text.from(), condition, order)
}

// selectIDs returns the only column of what a statement selects.
func selectIDs(ctx context.Context, tx *sql.Tx, statement string, args ...any) ([]int64, error) {
	rows, err := tx.QueryContext(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var ids []int64
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}
