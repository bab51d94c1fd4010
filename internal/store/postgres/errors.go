package postgres

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"switchyard/internal/domain"
	"switchyard/internal/store"
)

// readOnly is the code for a write on a read-only connection. A connection becomes one when it begins, so it is closed.
const readOnly = "25006"

// reasons are the messages for PostgreSQL's error codes, or their first two characters, about which people can do
// something.
var reasons = map[string]string{
	"08":     "cannot be reached",
	readOnly: "is read-only",
	"28":     "refuses the login",
	"3D000":  "does not exist",
	"42501":  "denies this login a required privilege",
	diskFull: "has no space left on its disk",
	"53200":  "is out of memory",
	"53300":  "has no connections left",
	"55P03":  "takes too long",
	"57014":  "takes too long",
	"57P":    "is shutting down or starting",
}

func reason(code string) string {
	for n := len(code); n >= 2; n-- {
		if message := reasons[code[:n]]; message != "" {
			return message
		}
	}
	return ""
}

// code translates an error: Conflict for a row that already exists, NotFound for a dangling reference, and Unavailable
// for all others, since the database may recover by itself.
func code(err error) *domain.Error {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return domain.WrapError(domain.Unavailable, err, "the database cannot be reached")
	}
	switch refused.Code {
	case "23505":
		return domain.WrapError(domain.Conflict, err, "already exists")
	case "23503": // the referenced row has just been removed
		return domain.WrapError(domain.NotFound, err, "not found")
	}
	if refused.Code == diskFull {
		err = fmt.Errorf("%w: %w", store.ErrNoSpace, err)
	}
	message := "the store failed"
	if why := reason(refused.Code); why != "" {
		message = "the database " + why
	}
	return domain.WrapError(domain.Unavailable, err, message)
}

// openFailure translates an error of opening the database: Unavailable if it is worth retrying.
func openFailure(err error) error {
	var known *domain.Error
	var refused *pgconn.PgError
	switch {
	case errors.As(err, &known):
		return err
	case !errors.As(err, &refused):
		if _, ok := errors.AsType[*pgconn.ParseConfigError](err); ok {
			return err
		}
		return code(err)
	case strings.Contains(refused.Message, "startup parameter"):
		return domain.WrapError(domain.Internal, err,
			"PgBouncer refuses a startup parameter: list all of ours in its ignore_startup_parameters")
	}
	if refused.Code == readOnly || slices.Contains([]string{"08", "53", "55", "57"}, refused.Code[:2]) {
		return code(err)
	}
	if why := reason(refused.Code); why != "" {
		return domain.WrapError(domain.Internal, err, "the database "+why)
	}
	return err
}
