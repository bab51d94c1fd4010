package postgres

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// CheckAddress returns an error unless address is valid for a database. The error does not quote it, since it may hold
// a password.
func CheckAddress(address string) error {
	_, err := pgxpool.ParseConfig(address)
	if err == nil {
		return nil
	}
	text := err.Error() // "cannot parse `…`: why"
	if i := strings.LastIndex(text, "`: "); i >= 0 {
		text = text[i+len("`: "):]
	}
	return errors.New(text)
}
