package postgres

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"switchyard/internal/domain"
	"switchyard/internal/store"
)

// dialect is store.Dialect for PostgreSQL, whose planner chooses between an index and reading events in order.
type dialect struct{}

// Key returns the form in which a type or a story's id is stored.
func (dialect) Key(text string) string { return Key(text) }

// EventsLike reads the events whose words contain the text. The index does not help with one or two characters.
func (dialect) EventsLike(_ context.Context, _ store.Querier, q domain.EventQuery, _ bool) (store.Source, error) {
	from := store.Source{Tables: "events", ID: "events.id"}
	if q.Text != "" {
		from.Condition, from.Arg = `events.words LIKE $%d ESCAPE '\'`, store.Pattern(q.Text)
	}
	return from, nil
}

// StoriesWith selects the stories that contain the folded words, newest first.
func (dialect) StoriesWith(words []string, limit int) (statement string, args []any) {
	from := fmt.Sprintf("(SELECT * FROM stories ORDER BY id DESC LIMIT %d) AS stories", store.MaxShortSearch)
	args = []any{limit}
	var conditions []string
	for _, word := range words {
		args = append(args, store.Pattern(word))
		conditions = append(conditions, fmt.Sprintf(`words LIKE $%d ESCAPE '\'`, len(args)))
		if utf8.RuneCountInString(word) >= 3 {
			from = "stories"
		}
	}
	return fmt.Sprintf("SELECT project, story_id, story_name FROM %s WHERE %s ORDER BY id DESC LIMIT $1",
		from, strings.Join(conditions, " AND ")), args
}
