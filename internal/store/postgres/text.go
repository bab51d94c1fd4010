package postgres

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"switchyard/internal/domain"
)

// Text returns a text as PostgreSQL can store it: valid UTF-8 without NUL. Records of events keep NUL, which JSON
// escapes.
func Text(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "\ufffd")
}

// maxKey is the length, in bytes, up to which an index can hold a story's id with its project.
const maxKey = 2000

// Key returns the form in which PostgreSQL can store and index a type or a story's id: the text itself or, if that is
// not possible, another one that ends with a number to be unique.
func Key(s string) string {
	short := domain.CutBytes(Text(s), maxKey)
	if short == s {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return fmt.Sprintf("%s\ufffd%x", short, sum[:8])
}
