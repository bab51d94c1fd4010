package sqlite

import (
	"fmt"
	"strings"

	"switchyard/internal/store"
)

// dialect is store.Dialect for SQLite; see also event_words.go.
type dialect struct{}

// From names the run's index. Without statistics SQLite would use the index on the kind alone for a project's events of a kind,
// which is a hundred times slower with ten million events.
func (dialect) From(r store.Run) string {
	switch {
	case r.Text != 0:
		return "events INDEXED BY events_of_text"
	case r.Project != 0 && r.Kind != 0:
		return "events INDEXED BY events_of_project_kind"
	case r.Project != 0:
		return "events INDEXED BY events_of_project"
	case r.Kind != 0:
		return "events INDEXED BY events_of_kind"
	}
	return "events"
}

// FirstOfRuns selects the first ids of all runs. SQLite reads no more from each than it needs.
func (d dialect) FirstOfRuns(runs []store.Run, order string) string {
	var b strings.Builder
	for i, r := range runs {
		if i > 0 {
			b.WriteString(" UNION ")
		}
		b.WriteString("SELECT events.id AS id FROM " + d.From(r) + " WHERE " + r.Condition())
	}
	return b.String() + " ORDER BY " + order + " LIMIT $3"
}

// StoriesWith selects the stories of the texts that may contain the folded words, newest first.
func (dialect) StoriesWith(words []string) (statement string, args []any) {
	var terms []string
	for _, word := range words {
		if term := trigrams(0, word); term != "" {
			terms = append(terms, term)
		}
	}
	texts, args, order := fmt.Sprintf("(SELECT id, project_id, story_id, story_name FROM event_texts ORDER BY id DESC LIMIT %d) AS event_texts", store.MaxShortSearch), nil, "event_texts.id"
	if len(terms) > 0 {
		texts = "(SELECT rowid FROM event_words WHERE event_words MATCH $1 ORDER BY rowid DESC) AS matching JOIN event_texts ON event_texts.id = matching.rowid"
		args, order = []any{strings.Join(terms, " AND ")}, "matching.rowid"
	}
	return fmt.Sprintf(`SELECT event_projects.name, stories.story_id, story_name FROM %s
		JOIN stories ON stories.project_id = event_texts.project_id AND stories.story_id = event_texts.story_id AND stories.text_id = event_texts.id
		JOIN event_projects ON event_projects.id = stories.project_id ORDER BY %s DESC`, texts, order), args
}
