package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"switchyard/internal/store"
)

// dialect has FOR UPDATE on the stream, so that events get their ids in the order of commits. Its planner chooses
// between an index and reading events in order.
var dialect = store.Dialect{
	Rows:          func(n int) string { return fmt.Sprintf("json_array_elements($%d::json) AS each", n) },
	Lock:          " FOR UPDATE",
	ProjectEvents: "events",
	CursorURL:     "md5(url)",
	VisitChanged:  ", changed = DEFAULT",
	Containing: func(table string, n int, texts ...string) (statement string, args []any) {
		statement = "SELECT id FROM " + table + " WHERE TRUE"
		for i, text := range texts {
			statement += fmt.Sprintf(` AND words LIKE $%d ESCAPE '\'`, n+i)
			args = append(args, store.Pattern(text))
		}
		return statement, args
	},
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
