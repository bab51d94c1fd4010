package postgres

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// CheckAddress returns why an address cannot be that of a database. The error quotes nothing of it: it may hold a password.
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
