package postgres

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"switchyard/internal/domain"
	"switchyard/internal/store"
)

// Text returns a text as PostgreSQL can store it: valid UTF-8 without NUL. Records of events keep NUL, which JSON escapes.
func Text(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "\ufffd")
}

// Key returns the form in which PostgreSQL can store and index a story's id or a part of a kind: the text itself or, if that is not
// possible, another one that ends with a number to be unique.
func Key(s string) string {
	short := store.Cut(Text(s), store.MaxKey)
	if short == s {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return fmt.Sprintf("%s\ufffd%x", short, sum[:8])
}

// storedKind returns the kind in the form that can be stored.
func storedKind(k store.EventKind) store.EventKind {
	return store.EventKind{Type: domain.EventType(Key(string(k.Type))), From: Key(k.From), To: Key(k.To)}
}
