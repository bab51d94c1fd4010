package postgres

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"switchyard/internal/domain"
	"switchyard/internal/store"
)

// Text returns what PostgreSQL can store of a text: UTF-8 without the character NUL. Records of events keep it, since JSON
// escapes it.
func Text(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "\ufffd")
}

// Key returns what PostgreSQL can store and look up for a story's id or the parts of a kind: the text itself or, where that is
// impossible, one that ends with a number to stay distinct.
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
