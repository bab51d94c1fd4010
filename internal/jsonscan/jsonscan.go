// Package jsonscan reads JSON texts a value at a time, so that a large text is never decoded as a whole and a changed
// one keeps its form around the change.
package jsonscan

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// MaxDepth is how deep objects and lists of other programs may nest. Many JSON decoders fail at 1000 levels, some at
	// 256: they would fail on everything in the same document.
	MaxDepth = 100
	// MaxValues is the most values in a text of another program, including names.
	MaxValues = 1_000_000
)

var (
	ErrDeep = errors.New("JSON is nested more than 100 levels deep")
	ErrMany = errors.New("JSON has over 1,000,000 values")
)

// Reader reads a JSON text. After an error it has no more values. It accepts texts that are not UTF-8, and names that
// an object has twice, as encoding/json does.
type Reader struct {
	decoder *jsontext.Decoder
	text    []byte
	quoted  []byte // the last name
	err     error
}

func NewReader(text []byte) *Reader {
	r := &Reader{decoder: &jsontext.Decoder{}}
	r.reset(text)
	return r
}

func (r *Reader) reset(text []byte) {
	r.decoder.Reset(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	r.text, r.err = text, nil
}

// Strings returns the strings in a text, except names.
func Strings(text []byte) (found []string) {
	r := NewReader(text)
	var collect func()
	collect = func() {
		if r.Kind() == '"' {
			found = append(found, r.Text())
		}
		for range r.Parts() {
			collect()
		}
	}
	collect()
	return found
}

var readers = sync.Pool{New: func() any { return &Reader{decoder: &jsontext.Decoder{}} }}

// Use calls do with a reader of a text. Readers are reused: a new one costs more than reading a short text.
func Use(text []byte, do func(*Reader) error) error {
	r := readers.Get().(*Reader)
	r.reset(text)
	defer func() {
		r.reset(nil)
		readers.Put(r)
	}()
	return do(r)
}

// Check returns an error unless text is one value that is not too deep and does not hold too many.
func Check(text []byte) error {
	return Use(text, func(r *Reader) error {
		for values := 1; ; values++ {
			_, r.err = r.decoder.ReadToken()
			switch depth := r.decoder.StackDepth(); {
			case r.err != nil:
				return r.err
			case depth > MaxDepth:
				return ErrDeep
			case values > MaxValues:
				return ErrMany
			case depth == 0:
				return r.End()
			}
		}
	})
}

// Name is the name of a member, which shares the text's memory; nil for an element of a list.
type Name []byte

func (n Name) Is(name string) bool { return string(n) == name }

// Parts yields the names of the members of the next value, if that is an object, or nil for each element, if it is a
// list; otherwise it yields nothing. The loop may read the part's value, and must not end early if something is read
// afterwards.
func (r *Reader) Parts() iter.Seq[Name] {
	return func(yield func(Name) bool) {
		open := r.Kind()
		if open != '{' && open != '[' {
			return
		}
		_, r.err = r.decoder.ReadToken()
		for r.err == nil && r.Kind() != open+2 { // the closing bracket, in ASCII
			var name Name
			if open == '{' {
				if name = r.name(); r.err != nil {
					return
				}
			}
			if r.Kind() == 0 {
				break
			}
			at := r.decoder.InputOffset()
			if !yield(name) {
				return
			}
			if r.err == nil && r.decoder.InputOffset() == at {
				r.err = r.decoder.SkipValue()
			}
		}
		if r.err == nil {
			_, r.err = r.decoder.ReadToken()
		}
	}
}

func (r *Reader) name() Name {
	quoted, err := r.decoder.ReadValue()
	if r.err = err; err != nil {
		return nil
	}
	r.quoted = quoted
	return unquote(quoted)
}

// Quoted returns the name that Parts yielded last as JSON, as the text has it.
func (r *Reader) Quoted() []byte { return r.quoted }

// unquote returns what a string says, in its own memory if possible. Invalid UTF-8 is replaced.
func unquote(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 && utf8.Valid(quoted) {
		return quoted[1 : len(quoted)-1]
	}
	text, _ := jsontext.AppendUnquote(nil, quoted)
	return text
}

// Kind returns what the next value begins with, '0' for every number; 0 if there is none.
func (r *Reader) Kind() byte {
	if r.err != nil {
		return 0
	}
	return byte(r.decoder.PeekKind())
}

// At returns where the next value begins.
func (r *Reader) At() int {
	at := int(r.decoder.InputOffset())
	for at < len(r.text) && bytes.IndexByte([]byte(" \t\r\n:,"), r.text[at]) >= 0 {
		at++
	}
	return at
}

// Value reads the next value, which shares the text's memory. It is nil after an error.
func (r *Reader) Value() []byte {
	if r.err != nil {
		return nil
	}
	value, err := r.decoder.ReadValue()
	if r.err = err; err != nil {
		if err == io.EOF {
			r.err = io.ErrUnexpectedEOF
		}
		return nil
	}
	return value[:len(value):len(value)]
}

// Text reads the next value, which is a string, and returns what it says.
func (r *Reader) Text() string {
	if quoted := r.Value(); quoted != nil {
		return string(unquote(quoted))
	}
	return ""
}

// Offset returns where the value read last ends.
func (r *Reader) Offset() int { return int(r.decoder.InputOffset()) }

func (r *Reader) Err() error { return r.err }

// More reports whether there is another value: some texts hold several.
func (r *Reader) More() bool {
	if r.err == nil && r.decoder.PeekKind() == 0 {
		if _, r.err = r.decoder.ReadToken(); r.err == io.EOF {
			r.err = nil
			return false
		}
	}
	return r.err == nil
}

// End returns an error unless all has been read.
func (r *Reader) End() error {
	if r.err == nil {
		_, r.err = r.decoder.ReadToken()
	}
	switch r.err {
	case io.EOF:
		return nil
	case nil:
		return errors.New("JSON is followed by something else")
	}
	return r.err
}
