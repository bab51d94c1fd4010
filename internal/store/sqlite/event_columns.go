package sqlite

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
)

// eventKind is what many events have in common. The stages are ” but for transitions.
type eventKind struct {
	Type     domain.EventType
	From, To string
}

// eventText is what else of an event can be searched.
type eventText struct {
	StoryID, StoryName string
	More               string // a reason; of a record of another form its further texts, one a line
}

// maxMore is how much of the further texts of a record of another form is kept for searching, in bytes: each takes a
// thousand times its length in nanoseconds to index.
const maxMore = 4 << 10

// columns are a record in parts that are stored once for many events.
type columns struct {
	kind   eventKind
	text   eventText
	record []byte // nil where compose makes it of the parts
}

// columnsOf takes a record apart.
func columnsOf(r domain.Record) columns {
	d := r.Details()
	c := columns{kind: eventKind{Type: r.Type}, text: eventText{StoryID: d.StoryID, StoryName: d.StoryName}}
	switch r.Type {
	case domain.StageTransition:
		c.kind.From, c.kind.To = d.FromStage, d.ToStage
	case domain.MergeFailure, domain.StoryBlocked:
		c.text.More = d.Reason
	}
	if ours(r.Type) && bytes.Equal(compose(c.kind, c.text, r.At.UnixMilli()), r.JSON) {
		return c
	}
	return c.whole(r)
}

// whole makes c hold the record as it is, beside its kind.
func (c columns) whole(r domain.Record) columns {
	c.record = r.JSON
	known := []string{string(c.kind.Type), c.kind.From, c.kind.To, c.text.StoryID, c.text.StoryName}
	more := slices.DeleteFunc(r.Texts(), func(text string) bool { return slices.Contains(known, text) })
	c.text.More = cut(strings.Join(more, "\n"), maxMore)
	return c
}

// cut returns the beginning of text, at most n bytes.
func cut(text string, n int) string {
	if len(text) > n {
		text = strings.ToValidUTF8(text[:n], "")
	}
	return text
}

// withoutStages is c with the stages of its transition among its texts, for when there are too many kinds.
func (c columns) withoutStages(r domain.Record) columns {
	c.kind.From, c.kind.To = "", ""
	return c.whole(r)
}

func ours(t domain.EventType) bool {
	return t == domain.StageTransition || t == domain.MergeFailure || t == domain.StoryBlocked
}

// compose is the record of an event that is ours, with the keys in the order of domain.Record.
func compose(kind eventKind, text eventText, stamp int64) []byte {
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

// digest is the first 8 bytes of the SHA-256 of data.
func digest(data []byte) int64 {
	sum := sha256.Sum256(data)
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

// digest tells texts of one story apart.
func (t eventText) digest() int64 { return digest([]byte(t.StoryName + "\x00" + t.More)) }

// values are the texts that are searched.
func (t eventText) values() []string { return []string{t.StoryID, t.StoryName, t.More} }
