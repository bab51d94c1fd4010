package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// registerTypes names the types of the arguments of statements, for addresses with default_query_exec_mode=exec or
// simple_protocol, where the server does not say what it expects. The program is built without pgx's list of all types, which
// takes 1.4 MB (build tag nopgxregisterdefaulttypes).
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

// registerType names a type and that of slices of it, in which NULL may be.
func registerType[T any](types *pgtype.Map, name string) {
	var value T
	types.RegisterDefaultPgType(value, name)
	types.RegisterDefaultPgType([]T(nil), "_"+name)
	types.RegisterDefaultPgType([]*T(nil), "_"+name)
}

// connect opens a connection that belongs to no pool.
func connect(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
	c, err := pgx.ConnectConfig(ctx, config)
	if err == nil {
		registerTypes(c.TypeMap())
	}
	return c, err
}
