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

const VisitColumns = "project, story_id, number, stage, from_ms, to_ms, next_stage, source, " +
	"blocked_ms, blocked_since_ms, merge_failed_since_ms, event_ms"

// VisitSQL are the statements for changing visits. Each takes a JSON array of rows; ROWS stands for these.
type VisitSQL struct {
	Newest     string // selects the newest visits of stories, given as [project, story_id]
	Counts     string // selects the counts of projects, given as [project]
	Save       string
	SaveCounts string
}

// NewVisitSQL returns the statements for an engine. rows is what it selects each.value of a JSON array from.
func NewVisitSQL(rows string) VisitSQL {
	number := func(i int) string { return fmt.Sprintf("CAST(each.value ->> %d AS BIGINT)", i) }
	columns := make([]string, 12)
	for i := range columns {
		columns[i] = fmt.Sprintf("each.value ->> %d", i)
		if slices.Contains([]int{2, 4, 5, 8, 9, 10, 11}, i) {
			columns[i] = number(i)
		}
	}
	var updates []string
	for _, column := range strings.Split(VisitColumns, ", ")[3:] {
		updates = append(updates, column+" = excluded."+column)
	}
	return VisitSQL{
		Newest: `SELECT ` + VisitColumns + ` FROM (
				SELECT each.value ->> 0 AS asked_project, each.value ->> 1 AS asked_story, (
					SELECT number FROM stage_visits WHERE project = each.value ->> 0 AND story_id = each.value ->> 1
					ORDER BY number DESC LIMIT 1 OFFSET ` + fmt.Sprint(domain.NewestVisits-1) + `) AS first FROM ` + rows + `) AS asked
			JOIN stage_visits ON project = asked_project AND story_id = asked_story AND number >= COALESCE(first, 0)
			ORDER BY project, story_id, number`,
		Counts: `SELECT project, open_visits, stages FROM visit_counts
			WHERE project IN (SELECT each.value ->> 0 FROM ` + rows + ")",
		Save: "INSERT INTO stage_visits (" + VisitColumns + ") SELECT " + strings.Join(columns, ", ") + " FROM " + rows + `
			WHERE TRUE ON CONFLICT (project, story_id, number) DO UPDATE SET ` + strings.Join(updates, ", "),
		SaveCounts: `INSERT INTO visit_counts (project, open_visits, stages)
			SELECT each.value ->> 0, ` + number(1) + ", each.value ->> 2 FROM " + rows + `
			WHERE TRUE ON CONFLICT (project) DO UPDATE SET open_visits = excluded.open_visits, stages = excluded.stages`,
	}
}

// VisitRows returns the rows for VisitSQL.Save and SaveCounts, "" if there are none.
func VisitRows(book *domain.VisitBook) (changed []domain.Visit, visits, counts string) {
	var rows, countRows [][]any
	changed, counted := book.Changed()
	for _, v := range changed {
		rows = append(rows, []any{
			v.Project, v.StoryID, v.Number, v.Stage, ToMilli(v.From), ToMilli(v.To), v.Next, v.Source, v.Blocked.Milliseconds(),
			ToMilli(v.BlockedSince), ToMilli(v.MergeFailedSince), ToMilli(v.EventAt),
		})
	}
	for _, c := range counted {
		stages, _ := json.Marshal(c.Stages) // texts always encode
		countRows = append(countRows, []any{c.Project, c.Open, string(stages)})
	}
	return changed, jsonText(rows), jsonText(countRows)
}

// VisitKeys returns the rows for VisitSQL.Newest and Counts.
func VisitKeys(keys []domain.StoryKey) (stories, projects string) {
	var rows, names [][]string
	seen, named := map[domain.StoryKey]bool{}, map[string]bool{}
	for _, k := range keys {
		if !seen[k] {
			seen[k], rows = true, append(rows, []string{k.Project, k.ID})
		}
		if !named[k.Project] {
			named[k.Project], names = true, append(names, []string{k.Project})
		}
	}
	return jsonText(rows), jsonText(names)
}

func EventKeys(events []domain.Event) (keys []domain.StoryKey) {
	for _, e := range events {
		if key, ok := domain.VisitKey(e.Project, e.Record); ok {
			keys = append(keys, key)
		}
	}
	return keys
}

// Seen returns the stories of observations, and those of them on a board with their names.
func Seen(observed []domain.Observation) (keys []domain.StoryKey, named []domain.StoryRef) {
	for _, o := range observed {
		for _, s := range o.Seen {
			keys = append(keys, domain.StoryKey{Project: o.Project, ID: s.StoryID})
			if s.Stage != "" {
				named = append(named, domain.StoryRef{Project: o.Project, ID: s.StoryID, Name: s.StoryName})
			}
		}
	}
	return keys, named
}

func jsonText[T any](list []T) string {
	if len(list) == 0 {
		return ""
	}
	text, _ := json.Marshal(list) // texts and numbers always encode
	return string(text)
}

func ScanVisit(row Row) (v domain.Visit, err error) {
	var blocked int64
	err = row.Scan(&v.Project, &v.StoryID, &v.Number, &v.Stage, (*Milli)(&v.From), (*Milli)(&v.To), &v.Next, &v.Source,
		&blocked, (*Milli)(&v.BlockedSince), (*Milli)(&v.MergeFailedSince), (*Milli)(&v.EventAt))
	v.Blocked = time.Duration(blocked) * time.Millisecond
	return v, err
}

func ScanVisitCounts(row Row) (c domain.VisitCounts, err error) {
	var stages string
	if err := row.Scan(&c.Project, &c.Open, &stages); err != nil {
		return c, err
	}
	return c, json.Unmarshal([]byte(stages), &c.Stages)
}

// StoryVisits returns the last limit visits of a story in order.
func (db visits) StoryVisits(ctx context.Context, project, storyID string, limit int) ([]domain.Visit, error) {
	visits, err := selectAll(ctx, db.conn, ScanVisit, "SELECT "+VisitColumns+` FROM stage_visits
		WHERE project = $1 AND story_id = $2 ORDER BY number DESC LIMIT $3`, project, storyID, limit)
	slices.Reverse(visits)
	return visits, err
}

// ProjectVisits returns what pages need of the visits of at most 100 projects: the open ones, the newest transitions,
// and counts of those before that charts of now need.
func (db visits) ProjectVisits(
	ctx context.Context, projects []string, now time.Time,
) (found map[string]*domain.ProjectVisits, err error) {
	found = map[string]*domain.ProjectVisits{}
	err = db.snapshot(ctx, db.engine.Read, func(ctx context.Context, tx *sql.Tx) error {
		var ended, open []string
		since, names := []any{now.Add(-domain.TransitionMemory).UnixMilli(), domain.MaxTransitions}, []any{}
		for _, project := range projects {
			since, names = append(since, project), append(names, project)
			of := "SELECT " + VisitColumns + " FROM stage_visits WHERE project = $%d AND to_ms "
			ended = append(ended, fmt.Sprintf("SELECT * FROM ("+of+">= $1 ORDER BY to_ms DESC LIMIT $2) AS newest", len(since)))
			open = append(open, fmt.Sprintf(of+"= 0", len(names)))
		}
		byProject := map[string][]domain.Visit{}
		for _, selected := range []struct {
			by   []string
			args []any
		}{{ended, since}, {open, names}} {
			visits, err := AllRows(ctx, tx, ScanVisit, strings.Join(selected.by, " UNION ALL "), selected.args...)
			if err != nil {
				return err
			}
			slices.SortStableFunc(visits, func(a, b domain.Visit) int { return a.To.Compare(b.To) })
			for _, v := range visits {
				byProject[v.Project] = append(byProject[v.Project], v)
			}
		}
		for _, project := range projects {
			visits := byProject[project]
			older, err := olderTransitions(ctx, tx, project, visits, now)
			if err != nil {
				return err
			}
			found[project] = domain.NewProjectVisits(visits, older)
		}
		return nil
	})
	return found, db.Translate(err)
}

// RemoveVisits removes at most limit visits of a project that ended before a time or are not among the newest keep,
// and returns their number.
func (db visits) RemoveVisits(
	ctx context.Context, token int64, project string, before time.Time, keep, limit int,
) (removed int, err error) {
	err = db.LeaderTx(ctx, token, nil, func(tx *sql.Tx) error {
		kept, first := before.UnixMilli(), int64(0)
		err := tx.QueryRowContext(ctx, `SELECT to_ms FROM stage_visits WHERE project = $1 AND to_ms > 0
			ORDER BY to_ms DESC LIMIT 1 OFFSET $2`, project, keep).Scan(&first)
		if unlessMissing(err) != nil {
			return err
		}
		result, err := tx.ExecContext(ctx, `DELETE FROM stage_visits WHERE (project, story_id, number) IN (
			SELECT project, story_id, number FROM stage_visits WHERE project = $1 AND to_ms > 0 AND to_ms <= $2
			ORDER BY to_ms LIMIT $3)`, project, max(kept, first), limit)
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		removed = int(n)
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

// olderTransitions counts the transitions before the newest ones, which come first in visits.
func olderTransitions(
	ctx context.Context, tx *sql.Tx, project string, visits []domain.Visit, now time.Time,
) ([]domain.TransitionCount, error) {
	if len(visits) < domain.MaxTransitions || visits[domain.MaxTransitions-1].To.IsZero() {
		return nil, nil
	}
	since := now.AddDate(0, 0, -2*domain.ChartDays).UnixMilli()
	return AllRows(ctx, tx, func(row Row) (c domain.TransitionCount, err error) {
		var quarter int64
		err = row.Scan(&quarter, &c.Stage, &c.Next, &c.Count)
		c.At = time.UnixMilli(quarter * quarterHour.Milliseconds())
		return c, err
	}, `SELECT to_ms / $4, stage, next_stage, COUNT(*) FROM stage_visits WHERE project = $1 AND to_ms >= $2 AND to_ms < $3
		GROUP BY 1, 2, 3`, project, since, visits[0].To.UnixMilli(), quarterHour.Milliseconds())
}
