package postgres

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"switchyard/internal/domain"
	"switchyard/internal/store"
)

// Text is what PostgreSQL can store of a text: UTF-8 without the character NUL. Records of events keep theirs: JSON writes it
// with other characters.
func Text(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "\ufffd")
}

// Key is what PostgreSQL can store and look up of a story's id or the parts of a kind: where that is not the text itself, it
// ends with a number that tells it from others.
func Key(s string) string {
	short := store.Cut(Text(s), store.MaxKey)
	if short == s {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return fmt.Sprintf("%s\ufffd%x", short, sum[:8])
}

// storedKind is what can be stored of a kind.
func storedKind(k store.EventKind) store.EventKind {
	return store.EventKind{Type: domain.EventType(Key(string(k.Type))), From: Key(k.From), To: Key(k.To)}
}
