package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

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

// registerTypes registers the types of arguments, for addresses with default_query_exec_mode=exec or simple_protocol,
// where the server does not report what it expects. The program is built without pgx's list of all types, which takes
// 1.4 MB (build tag nopgxregisterdefaulttypes).
func registerTypes(types *pgtype.Map) {
	registerType[bool](types, "bool")
	registerType[int](types, "int8")
	registerType[int64](types, "int8")
	registerType[float64](types, "float8")
	registerType[string](types, "text")
	registerType[[]byte](types, "bytea")
	registerType[time.Time](types, "timestamptz")
	registerType[time.Duration](types, "interval")
}

// registerType registers T, and slices of T and *T.
func registerType[T any](types *pgtype.Map, name string) {
	var value T
	types.RegisterDefaultPgType(value, name)
	types.RegisterDefaultPgType([]T(nil), "_"+name)
	types.RegisterDefaultPgType([]*T(nil), "_"+name)
}

// connect opens a connection outside any pool.
func connect(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
	c, err := pgx.ConnectConfig(ctx, config)
	if err == nil {
		registerTypes(c.TypeMap())
	}
	return c, err
}
