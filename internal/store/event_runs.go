package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"switchyard/internal/domain"
)

// Run is a set of events whose ids an index has in order: those of a project, of a kind, of both, or of a text. A field of 0 means
// any.
type Run struct {
	Project, Kind, Text int64
	// Kinds, unless nil, restricts the run to these kinds, for which its events must be read.
	Kinds []int64
}

// Condition returns the condition that selects the run's events between the ids $1 and $2.
func (r Run) Condition() string {
	var b strings.Builder
	for _, c := range []struct {
		column string
		id     int64
	}{{"project_id", r.Project}, {"kind_id", r.Kind}, {"text_id", r.Text}} {
		if c.id != 0 {
			fmt.Fprintf(&b, "events.%s = %d AND ", c.column, c.id)
		}
	}
	if r.Kinds != nil {
		fmt.Fprintf(&b, "events.kind_id IN (%s) AND ", List(r.Kinds))
	}
	b.WriteString("events.id > $1 AND events.id < $2")
	return b.String()
}

// readRuns adds events of runs.
func (p *pageReader) readRuns(ctx context.Context, tx *sql.Tx, runs []Run) error {
	after, before, order := Bounds(p.query)
	if len(runs) == 1 {
		return eachEvent(ctx, tx, p.take, selectEvents(p.dialect.From(runs[0]), runs[0].Condition(), order+" LIMIT $3"), after, before, p.missing())
	}
	ids, err := p.mergeRuns(ctx, tx, runs, p.query, p.missing())
	if err != nil {
		return err
	}
	return p.readIDs(ctx, tx, ids)
}

// readIDs adds the events with these ids.
func (p *pageReader) readIDs(ctx context.Context, tx *sql.Tx, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	_, _, order := Bounds(p.query)
	return eachEvent(ctx, tx, p.take, selectEvents("events", "events.id IN ("+List(ids)+")", order))
}

// maxMerged is how many runs one statement merges; SQLite allows 500.
const maxMerged = 400

// mergeRuns returns the first limit ids of the runs' events, in the order of q.
func (p *pageReader) mergeRuns(ctx context.Context, tx *sql.Tx, runs []Run, q domain.EventQuery, limit int) ([]int64, error) {
	after, before, order := Bounds(q)
	var merged []int64
	for some := range slices.Chunk(runs, maxMerged) {
		ids, err := SelectIDs(ctx, tx, p.dialect.FirstOfRuns(some, order), after, before, limit)
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

// firstTexts reduces texts to those that can have one of the first limit events of all. It reads the first event of each text: at
// most limit texts can have theirs among the first limit.
func (p *pageReader) firstTexts(ctx context.Context, tx *sql.Tx, texts, kinds []int64) ([]int64, error) {
	limit := p.missing()
	if len(texts) <= limit {
		return texts, nil
	}
	after, before, _ := Bounds(p.query)
	return SelectIDs(ctx, tx, p.firstTextsStatement(texts, kinds), after, before, limit)
}

func (p *pageReader) firstTextsStatement(texts, kinds []int64) string {
	first, order := "MIN(events.id)", "head"
	if p.query.Backward {
		first, order = "MAX(events.id)", "head DESC"
	}
	text := Run{Text: 1, Kinds: kinds}
	condition := strings.Replace(text.Condition(), "events.text_id = 1 ", "events.text_id = texts.id ", 1)
	values := strings.ReplaceAll(List(texts), ",", "),(")
	return fmt.Sprintf(`WITH texts (id) AS (VALUES (%s)) SELECT id FROM (
		SELECT id, (SELECT %s FROM %s WHERE %s) AS head FROM texts) AS heads WHERE head IS NOT NULL ORDER BY %s LIMIT $3`,
		values, first, p.dialect.From(text), condition, order)
}
