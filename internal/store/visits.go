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
// changed ones, and the projects of which newer events contradict a sighting; and ErrNotLeader once another gateway has
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

// StoryVisits returns the last limit visits of a story in order.
func (db visits) StoryVisits(ctx context.Context, project, storyID string, limit int) ([]domain.Visit, error) {
	visits, err := selectAll(ctx, db.conn, ScanVisit, "SELECT "+VisitColumns+` FROM stage_visits
		WHERE story = (SELECT id FROM stories WHERE project = $1 AND story_id = $2) ORDER BY number DESC LIMIT $3`,
		project, storyID, limit)
	slices.Reverse(visits)
	return visits, err
}

// ProjectVisits returns what pages need of the visits of at most 100 projects: the open ones, the newest transitions,
// and counts of those before that charts of now need.
func (db visits) ProjectVisits(
	ctx context.Context, projects []string, now time.Time,
) (found map[string]*domain.ProjectVisits, err error) {
	found = map[string]*domain.ProjectVisits{}
	err = db.Snapshot(ctx, func(ctx context.Context, tx *sql.Tx) error {
		var ended, open []string
		var rows [][]any
		since, names := []any{now.Add(-domain.TransitionMemory).UnixMilli(), domain.MaxTransitions}, []any{}
		for _, project := range projects {
			since, names, rows = append(since, project), append(names, project), append(rows, []any{project})
			of := " FROM stage_visits WHERE project = $%d AND to_ms "
			newest := "SELECT " + endColumns + of + ">= $1 ORDER BY to_ms DESC LIMIT $2"
			ended = append(ended, fmt.Sprintf("SELECT * FROM ("+newest+") AS newest", len(since)))
			open = append(open, fmt.Sprintf("SELECT "+VisitColumns+of+"= 0", len(names)))
		}
		visits := map[string][]domain.Visit{}
		err := Each(ctx, tx, func(row Row) error {
			v, err := ScanVisit(row)
			visits[v.Project] = append(visits[v.Project], v)
			return err
		}, strings.Join(open, " UNION ALL "), names...)
		if err != nil {
			return err
		}
		ends, err := visitEnds(ctx, tx, strings.Join(ended, " UNION ALL "), since...)
		if err != nil {
			return err
		}
		for _, project := range projects {
			newest := ends[project]
			slices.Reverse(newest)
			older, err := olderTransitions(ctx, tx, project, newest, now)
			if err != nil {
				return err
			}
			found[project] = domain.NewProjectVisits(visits[project], newest, older)
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

// quarterHour divides the day in every time zone.
const quarterHour = 15 * time.Minute

const endColumns = "project, (SELECT story_id FROM stories WHERE id = stage_visits.story), number, stage, next_stage," +
	" from_ms, to_ms"

// visitEnds returns the selected ends of visits by project. There may be many: only what names a project or a stage for
// the first time is allocated.
func visitEnds(
	ctx context.Context, tx *sql.Tx, statement string, args ...any,
) (ends map[string][]domain.VisitEnd, err error) {
	ends = map[string][]domain.VisitEnd{}
	known := names{}
	var project, story, stage, next sql.RawBytes
	var e domain.VisitEnd
	return ends, Each(ctx, tx, func(row Row) error {
		if err := row.Scan(&project, &story, &e.Number, &stage, &next, &e.From, &e.To); err != nil {
			return err
		}
		e.Story, e.Stage, e.Next = domain.StoryHash(story), known.name(stage), known.name(next)
		of := known.name(project)
		ends[of] = append(ends[of], e)
		return nil
	}, statement, args...)
}

// olderTransitions counts the transitions before these newest ones.
func olderTransitions(
	ctx context.Context, tx *sql.Tx, project string, newest []domain.VisitEnd, now time.Time,
) ([]domain.TransitionCount, error) {
	if len(newest) < domain.MaxTransitions {
		return nil, nil
	}
	since := now.AddDate(0, 0, -2*domain.ChartDays).UnixMilli()
	return AllRows(ctx, tx, func(row Row) (c domain.TransitionCount, err error) {
		var quarter int64
		err = row.Scan(&quarter, &c.Stage, &c.Next, &c.Count)
		c.At = time.UnixMilli(quarter * quarterHour.Milliseconds())
		return c, err
	}, `SELECT to_ms / $4, stage, next_stage, COUNT(*) FROM stage_visits WHERE project = $1 AND to_ms >= $2 AND to_ms < $3
		GROUP BY 1, 2, 3`, project, since, newest[0].To, quarterHour.Milliseconds())
}
