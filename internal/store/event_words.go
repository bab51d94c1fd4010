package store

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"

	"switchyard/internal/domain"
	"switchyard/internal/fold"
)

// maxWords is how many bytes of an event's texts are searched by the index: indexing takes a microsecond for some of
// them.
const maxWords = 8 << 10

// EventWords returns the text by which an event is searched: project, type and the other texts, folded, each on a line
// of its own.
func EventWords(project string, r domain.Record) string {
	d := r.Details()
	texts := []string{project, string(r.Type), d.StoryID, d.StoryName, d.FromStage, d.ToStage}
	known := len(texts)
	for _, text := range r.Texts() {
		if !slices.Contains(texts[:known], text) {
			texts = append(texts, text)
		}
	}
	var b strings.Builder
	b.WriteByte('\n')
	for _, text := range texts {
		if text == "" {
			continue
		}
		if b.WriteString(fold.Text(text) + "\n"); b.Len() > maxWords {
			return domain.CutBytes(b.String(), maxWords) + "\n"
		}
	}
	return b.String()
}

// StoryWords returns the text by which a story is searched.
func StoryWords(id, name string) string { return fold.Text(id + "\n" + name) }

// StoryOf returns the story of an event, and false for an event of none.
func StoryOf(e domain.Event) (s domain.StoryRef, ok bool) {
	if !e.Type.Kind().OfStory {
		return s, false
	}
	d := e.Details()
	return domain.StoryRef{Project: e.Project, ID: d.StoryID, Name: d.StoryName}, d.StoryID != ""
}

// hasText reports whether one of an event's texts contains a folded text.
func hasText(e domain.Event, text string) bool {
	return slices.ContainsFunc(append(e.Texts(), e.Project), func(value string) bool {
		return strings.Contains(fold.Text(value), text)
	})
}

// EventDigest identifies a record among those of all projects: it is the first 8 bytes of a SHA-256.
func EventDigest(project string, r domain.Record) int64 {
	hash := sha256.New()
	hash.Write([]byte(project + "\x00"))
	hash.Write(r.JSON)
	return int64(binary.BigEndian.Uint64(hash.Sum(nil)))
}
