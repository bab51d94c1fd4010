package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"switchyard/internal/store"
)

// dialect is store.Dialect for PostgreSQL.
type dialect struct{}

// From returns just the table: PostgreSQL's planner finds the run's index.
func (dialect) From(store.Run) string { return "events" }

// FirstOfRuns selects the first $3 ids of each run. Runs with the same fields set share a statement, which does an index scan for
// each.
func (dialect) FirstOfRuns(runs []store.Run, order string) string {
	shapes := map[string][]store.Run{}
	for _, r := range runs {
		shape := fmt.Sprint(r.Project != 0, r.Kind != 0, r.Text != 0, r.Kinds)
		shapes[shape] = append(shapes[shape], r)
	}
	var statements []string
	for _, alike := range shapes {
		var values []string
		for _, r := range alike {
			values = append(values, fmt.Sprintf("(%d, %d, %d)", r.Project, r.Kind, r.Text))
		}
		first := alike[0]
		conditions := []string{"events.id > $1", "events.id < $2"}
		for column, id := range map[string]int64{"project_id": first.Project, "kind_id": first.Kind, "text_id": first.Text} {
			if id != 0 {
				conditions = append(conditions, fmt.Sprintf("events.%s = run.%[1]s", column))
			}
		}
		if first.Kinds != nil {
			conditions = append(conditions, "events.kind_id IN ("+store.List(first.Kinds)+")")
		}
		slices.Sort(conditions)
		statements = append(statements, fmt.Sprintf(`SELECT found.id FROM (VALUES %s) AS run (project_id, kind_id, text_id),
			LATERAL (SELECT id FROM events WHERE %s ORDER BY id%s LIMIT $3) AS found`,
			strings.Join(values, ", "), strings.Join(conditions, " AND "), strings.TrimPrefix(order, "id")))
	}
	slices.Sort(statements)
	return strings.Join(statements, " UNION ALL ")
}

// TextsWith selects the texts that contain text. The index does not help with one or two characters.
func (dialect) TextsWith(_ context.Context, _ *sql.Tx, project int64, text string) (statement string, args []any, err error) {
	statement, args = `SELECT id, story_id, story_name, more FROM event_texts WHERE folded LIKE $1 ESCAPE '\'`, []any{store.Pattern(text)}
	if project != 0 {
		statement, args = statement+" AND project_id = $2", append(args, project)
	}
	return statement, args, nil
}

// StoriesWith selects the stories of the texts that contain the folded words, newest first.
func (dialect) StoriesWith(words []string) (statement string, args []any) {
	texts := fmt.Sprintf("(SELECT id, project_id, story_id, story_name, folded FROM event_texts ORDER BY id DESC LIMIT %d) AS event_texts", store.MaxShortSearch)
	var conditions []string
	for _, word := range words {
		args = append(args, store.Pattern(word))
		conditions = append(conditions, fmt.Sprintf(`event_texts.folded LIKE $%d ESCAPE '\'`, len(args)))
		if len([]rune(word)) >= 3 {
			texts = "event_texts"
		}
	}
	return fmt.Sprintf(`SELECT event_projects.name, stories.story_id, story_name FROM %s
		JOIN stories ON stories.project_id = event_texts.project_id AND stories.story_id = event_texts.story_id AND stories.text_id = event_texts.id
		JOIN event_projects ON event_projects.id = stories.project_id WHERE %s ORDER BY event_texts.id DESC`, texts, strings.Join(conditions, " AND ")), args
}
