package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"switchyard/internal/domain"
)

const VisitColumns = "stage_visits.project, (SELECT story_id FROM stories WHERE id = stage_visits.story), number," +
	" stage, from_ms, to_ms, next_stage, source, blocked_ms, blocked_since_ms, merge_failed_since_ms, event_ms"

// ObserveVisits applies observations of projects to the visits of their stories, in one transaction. It returns the
// changed ones, and the projects with sightings that newer events contradict; and ErrNotLeader once another gateway has
// taken over.
func (db visits) ObserveVisits(ctx context.Context, token int64, observed ...domain.Observation) (
	changed []domain.Visit, contradicted []string, err error,
) {
	var keys []domain.StoryKey
	var named []domain.StoryRef
	for _, o := range observed {
		for _, s := range o.Seen {
			keys = append(keys, domain.StoryKey{Project: o.Project, ID: s.StoryID})
			if s.Stage != "" {
				named = append(named, domain.StoryRef{Project: o.Project, ID: s.StoryID, Name: s.StoryName})
			}
		}
	}
	var visits visitRead
	read := visits.statements(db.sql, db.sql.newest, keys)
	err = db.lead(ctx, token, read, func() (saved []Statement, about topics, err error) {
		book := visits.book()
		contradicted = book.Observe(observed)
		if changed, saved = saveVisits(db.sql, book); len(changed) > 0 {
			name := Statement{SQL: db.sql.nameStories, Args: []any{jsonText(storyRows(named))}}
			saved, about = slices.Insert(saved, 0, name), topics{domain.TopicVisits}
		}
		return saved, about, nil
	})
	return changed, contradicted, db.Wrote(err)
}

// lead is Transact under the leader's fencing token, 0 for a gateway that is alone.
func (db visits) lead(
	ctx context.Context, token int64, read []Statement, write func() ([]Statement, topics, error),
) error {
	first, held := []Statement{{SQL: db.sql.lock}}, token == 0
	if !held {
		first = append(first, Statement{db.sql.held, []any{jsonText([][]any{{token}})}, func(Row) error {
			held = true
			return nil
		}})
	}
	return db.engine.Transact(ctx, append(first, read...), func() ([]Statement, topics, error) {
		if !held {
			db.engine.Refused(token)
			return nil, nil, domain.ErrNotLeader
		}
		return write()
	})
}

// visitRead holds the newest visits of stories and the counts of their projects, once its statements have run.
type visitRead struct {
	newest []domain.Visit
	counts []domain.VisitCounts
}

func (r *visitRead) book() *domain.VisitBook { return domain.NewVisitBook(r.newest, r.counts) }

// statements read the visits that newest selects, and the counts.
func (r *visitRead) statements(sql *changeSQL, newest string, keys []domain.StoryKey) []Statement {
	if len(keys) == 0 {
		return nil
	}
	stories, projects := map[domain.StoryKey]bool{}, map[string]bool{}
	var rows, names [][]any
	for _, k := range keys {
		if !stories[k] {
			stories[k], rows = true, append(rows, []any{k.Project, k.ID})
		}
		if !projects[k.Project] {
			projects[k.Project], names = true, append(names, []any{k.Project})
		}
	}
	return []Statement{{newest, []any{jsonText(rows)}, func(row Row) error {
		v, err := ScanVisit(row)
		r.newest = append(r.newest, v)
		return err
	}}, {sql.counts, []any{jsonText(names)}, func(row Row) error {
		var c domain.VisitCounts
		var stages string
		if err := row.Scan(&c.Project, &c.Open, &stages); err != nil {
			return err
		}
		r.counts = append(r.counts, c)
		return json.Unmarshal([]byte(stages), &r.counts[len(r.counts)-1].Stages)
	}}}
}

func saveVisits(sql *changeSQL, book *domain.VisitBook) (changed []domain.Visit, statements []Statement) {
	changed, counted := book.Changed()
	return changed, saveRows(sql, changed, counted)
}

func saveRows(sql *changeSQL, changed []domain.Visit, counted []domain.VisitCounts) (statements []Statement) {
	var rows, countRows [][]any
	for _, v := range changed {
		rows = append(rows, []any{
			v.Project, v.StoryID, v.Number, v.Stage, ToMilli(v.From), ToMilli(v.To), v.Next, string(v.Source),
			v.Blocked.Milliseconds(), ToMilli(v.BlockedSince), ToMilli(v.MergeFailedSince), ToMilli(v.EventAt),
		})
	}
	for _, c := range counted {
		countRows = append(countRows, []any{c.Project, c.Open, encoded(c.Stages)})
	}
	if len(rows) > 0 {
		statements = append(statements, Statement{SQL: sql.saveVisits, Args: []any{jsonText(rows)}})
	}
	if len(countRows) > 0 {
		statements = append(statements, Statement{SQL: sql.saveCounts, Args: []any{jsonText(countRows)}})
	}
	return statements
}

func jsonText(rows [][]any) string {
	for _, row := range rows {
		for i, value := range row {
			if text, ok := value.(string); ok {
				row[i] = Text(text)
			}
		}
	}
	if rows == nil {
		return "[]"
	}
	return encoded(rows)
}

func ScanVisit(row Row) (v domain.Visit, err error) {
	var blocked int64
	err = row.Scan(&v.Project, &v.StoryID, &v.Number, &v.Stage, (*Milli)(&v.From), (*Milli)(&v.To), &v.Next, &v.Source,
		&blocked, (*Milli)(&v.BlockedSince), (*Milli)(&v.MergeFailedSince), (*Milli)(&v.EventAt))
	v.Blocked = time.Duration(blocked) * time.Millisecond
	return v, err
}

func (db visits) StoryVisits(ctx context.Context, project, storyID string, limit int) ([]domain.Visit, error) {
	visits, err := selectAll(ctx, db.conn, ScanVisit, "SELECT "+VisitColumns+` FROM stage_visits
		WHERE story = (SELECT id FROM stories WHERE project = $1 AND story_id = $2) AND source <> $3
		ORDER BY number DESC LIMIT $4`, project, storyID, string(domain.Undone), limit)
	slices.Reverse(visits)
	return visits, err
}

// ProjectVisits returns the open visits of at most 100 projects, and the newest ended ones of each.
func (db visits) ProjectVisits(
	ctx context.Context, projects []string, newest int,
) (found map[string]*domain.ProjectVisits, err error) {
	found = map[string]*domain.ProjectVisits{}
	err = db.Snapshot(ctx, func(ctx context.Context, tx *sql.Tx) error {
		var endedOf, openOf []string
		var rows [][]any
		limit, names := []any{newest}, []any{}
		for _, project := range projects {
			limit, names, rows = append(limit, project), append(names, project), append(rows, []any{project})
			of := " FROM stage_visits WHERE project = $%d AND to_ms "
			newest := "SELECT " + endColumns + of + "> 0 AND source <> 'undone' ORDER BY to_ms DESC LIMIT $1"
			endedOf = append(endedOf, fmt.Sprintf("SELECT * FROM ("+newest+") AS newest", len(limit)))
			openOf = append(openOf, fmt.Sprintf("SELECT "+VisitColumns+of+"= 0", len(names)))
		}
		open := map[string][]domain.Visit{}
		err := Each(ctx, tx, func(row Row) error {
			v, err := ScanVisit(row)
			open[v.Project] = append(open[v.Project], v)
			return err
		}, strings.Join(openOf, " UNION ALL "), names...)
		if err != nil {
			return err
		}
		ended, err := visitEnds(ctx, tx, strings.Join(endedOf, " UNION ALL ")+" ORDER BY story, number", limit...)
		if err != nil {
			return err
		}
		for _, project := range projects {
			found[project] = domain.NewProjectVisits(open[project], ended[project])
			found[project].Whole = len(ended[project]) < newest
		}
		return EachRow(ctx, tx, scanPast, func(p projectPast) bool {
			found[p.project].Past = p.Past
			return true
		}, db.sql.pasts, jsonText(rows))
	})
	return found, db.Translate(err)
}

// RemoveVisits removes at most limit visits of a project that ended before a time or are not among the newest keep,
// and returns their number.
func (db visits) RemoveVisits(
	ctx context.Context, token int64, project string, before time.Time, keep, limit int,
) (removed int, err error) {
	err = db.LeaderTx(ctx, token, nil, func(ctx context.Context, tx *sql.Tx) error {
		kept, first := before.UnixMilli(), int64(0)
		err := tx.QueryRowContext(ctx, `SELECT to_ms FROM stage_visits WHERE project = $1 AND to_ms > 0
			ORDER BY to_ms DESC LIMIT 1 OFFSET $2`, project, keep).Scan(&first)
		if unlessMissing(err) != nil {
			return err
		}
		gone, err := AllRows(ctx, tx, ScanOne[int64], `DELETE FROM stage_visits WHERE (story, number) IN (
			SELECT story, number FROM stage_visits WHERE project = $1 AND to_ms > 0 AND to_ms <= $2
			ORDER BY to_ms LIMIT $3) RETURNING story`, project, max(kept, first), limit)
		removed = len(gone)
		return err
	})
	return removed, err
}

// VisitedProjects returns the names of all projects that have or had visits, in no particular order.
func (db visits) VisitedProjects(ctx context.Context) ([]string, error) {
	return selectAll(ctx, db.conn, ScanOne[string], "SELECT project FROM visit_counts")
}

const endColumns = "project, story, (SELECT story_id FROM stories WHERE id = story) AS story_id, number, stage," +
	" next_stage, source, from_ms, to_ms"

// visitEnds returns the selected ends of visits by project, each story's together. There may be many: only names of
// projects, stories and stages are allocated, the first time that they occur.
func visitEnds(
	ctx context.Context, tx *sql.Tx, statement string, args ...any,
) (ends map[string][]domain.VisitEnd, err error) {
	ends = map[string][]domain.VisitEnd{}
	known := names{}
	var project, story, stage, next, source sql.RawBytes
	var e domain.VisitEnd
	var number, last int64 // of stories
	return ends, Each(ctx, tx, func(row Row) error {
		if err := row.Scan(&project, &number, &story, &e.Number, &stage, &next, &source, &e.From, &e.To); err != nil {
			return err
		}
		if number != last {
			last, e.StoryID = number, string(story)
		}
		e.Stage, e.Next, e.Git = known.name(stage), known.name(next), string(source) == string(domain.FromGit)
		of := known.name(project)
		ends[of] = append(ends[of], e)
		return nil
	}, statement, args...)
}
