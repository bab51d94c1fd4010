package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"switchyard/internal/domain"
	"switchyard/internal/fold"
)

// EventKind is the part that many events share. The stages are "" except for transitions.
type EventKind struct {
	Type     domain.EventType
	From, To string
}

// Projects choose types and stages freely, every search reads all kinds, and kinds are kept forever. So each project may add at most
// MaxKindsOfEach, and all together MaxKinds; further events get kinds from Broader.
const MaxKindsOfEach, MaxKinds = 250, 10_000

// Common reports whether the kind is stored even if the limits have been reached.
func (k EventKind) Common() bool {
	return k.From == "" && k.To == "" && (k.Type == "" || k.Type == domain.FeedGap || k.Type == domain.ForeignFeedGap || Ours(k.Type))
}

// Folded returns the searchable text of a kind, folded.
func (k EventKind) Folded() string { return fold.Text(string(k.Type) + "\n" + k.From + "\n" + k.To) }

// EventText holds the other searchable texts of an event.
type EventText struct {
	StoryID, StoryName string
	More               string // a reason; for a record in another form its other texts, one per line
}

// maxMore is how many bytes of the other texts are kept for searching if a record is in another form than our own feed's: indexing
// takes a microsecond per byte.
const maxMore = 4 << 10

// EventColumns is a record split into parts, so that parts that many events share are stored once.
type EventColumns struct {
	Kind   EventKind
	Text   EventText
	Record []byte // nil if Compose can restore it from the parts
}

// ColumnsOf splits a record.
func ColumnsOf(r domain.Record) EventColumns {
	d := r.Details()
	c := EventColumns{Kind: EventKind{Type: r.Type}, Text: EventText{StoryID: d.StoryID, StoryName: d.StoryName}}
	switch r.Type {
	case domain.StageTransition:
		c.Kind.From, c.Kind.To = d.FromStage, d.ToStage
	case domain.MergeFailure, domain.StoryBlocked:
		c.Text.More = d.Reason
	}
	if Ours(r.Type) && c.fit() && bytes.Equal(Compose(c.Kind, c.Text, r.At.UnixMilli()), r.JSON) {
		return c
	}
	return c.whole(r)
}

// MaxKey is the length, in bytes, up to which every engine can index a story's id or a stage.
const MaxKey = 2000

// fit reports whether every engine can store the parts: PostgreSQL does not support the character NUL.
func (c EventColumns) fit() bool {
	hasNUL := func(text string) bool { return strings.Contains(text, "\x00") }
	return max(len(c.Text.StoryID), len(c.Kind.From), len(c.Kind.To)) <= MaxKey &&
		!slices.ContainsFunc(append(c.Text.Values(), c.Kind.From, c.Kind.To), hasNUL)
}

// whole returns c with the whole record besides its kind.
func (c EventColumns) whole(r domain.Record) EventColumns {
	c.Record = r.JSON
	known := []string{string(c.Kind.Type), c.Kind.From, c.Kind.To, c.Text.StoryID, c.Text.StoryName}
	more := slices.DeleteFunc(r.Texts(), func(text string) bool { return slices.Contains(known, text) })
	if c.Kind.Type != r.Type { // first, so that it is not cut off
		more = append([]string{string(r.Type)}, slices.DeleteFunc(more, func(text string) bool { return text == string(r.Type) })...)
	}
	c.Text.More = Cut(strings.Join(more, "\n"), maxMore)
	return c
}

// Cut returns at most the first n bytes of text.
func Cut(text string, n int) string {
	if len(text) > n {
		text = strings.ToValidUTF8(text[:n], "")
	}
	return text
}

// Broader returns c with a less specific kind, for when there are too many: first without stages, then without type. These become
// searchable texts instead.
func (c EventColumns) Broader(r domain.Record) EventColumns {
	if c.Kind = (EventKind{Type: c.Kind.Type}); !c.Kind.Common() {
		c.Kind = EventKind{}
	}
	return c.whole(r)
}

// Ours reports whether this is one of the types of our own feed, which are all about stories.
func Ours(t domain.EventType) bool {
	return t == domain.StageTransition || t == domain.MergeFailure || t == domain.StoryBlocked
}

// Compose restores the record of an event of our own feed, in the form of domain.Record.
func Compose(kind EventKind, text EventText, stamp int64) []byte {
	b := make([]byte, 0, 128+len(text.StoryID)+len(text.StoryName)+len(text.More))
	if kind.Type == domain.StageTransition {
		b = appendText(append(b, `{"from_stage":`...), kind.From)
	} else {
		b = appendText(append(b, `{"reason":`...), text.More)
	}
	b = appendText(append(b, `,"story_id":`...), text.StoryID)
	b = appendText(append(b, `,"story_name":`...), text.StoryName)
	b = strconv.AppendInt(append(b, `,"timestamp_ms":`...), stamp, 10)
	if kind.Type == domain.StageTransition {
		b = appendText(append(b, `,"to_stage":`...), kind.To)
	}
	return append(appendText(append(b, `,"type":`...), string(kind.Type)), '}')
}

// appendText appends a JSON string as domain.Record encodes it.
func appendText(b []byte, text string) []byte {
	plain := func(r rune) bool {
		return r >= ' ' && r != '"' && r != '\\' && r != 0x7f && r != '\u2028' && r != '\u2029' && r != utf8.RuneError
	}
	if strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 {
		return append(append(append(b, '"'), text...), '"')
	}
	var quoted bytes.Buffer
	encoder := json.NewEncoder(&quoted)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a string always encodes
	return append(b, bytes.TrimRight(quoted.Bytes(), "\n")...)
}

// Digest returns the first 8 bytes of the SHA-256 of data.
func Digest(data []byte) int64 {
	sum := sha256.Sum256(data)
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

// Digest identifies the text among those of its story.
func (t EventText) Digest() int64 { return Digest([]byte(t.StoryName + "\x00" + t.More)) }

// Values returns the searchable texts.
func (t EventText) Values() []string { return []string{t.StoryID, t.StoryName, t.More} }

// Folded returns the searchable text, folded.
func (t EventText) Folded() string { return fold.Text(strings.Join(t.Values(), "\n")) }
