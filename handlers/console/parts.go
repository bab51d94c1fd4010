package console

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/a-h/templ"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/views"
)

// now is the time as pages show it: to the minute, so that within a minute unchanged content renders to the same bytes. Scripts
// show the seconds.
func now() time.Time { return clock.Now().Truncate(time.Minute) }

// part is a rendered part. Its version is the hash of its bytes.
type part struct {
	version string
	html    document
}

// parts keeps the last rendering of each part, which all readers of one role share.
type parts struct {
	mu     sync.Mutex
	kept   map[string]*keptPart // by the reader's role and the address; all of the same minute
	minute time.Time
	bytes  int
}

type keptPart struct {
	address string
	props   any
	active  string
	once    sync.Once
	part    *part
	err     error
}

// maxKeptBytes bounds the HTML that is kept, since filters make any number of addresses.
const maxKeptBytes = 16 << 20

// get returns the current part. It is rendered again unless its values are those of the last time; active is
// the active project, which the answer also names.
func (s *parts) get(ctx context.Context, p views.Part, active string) (*part, error) {
	kept := s.find(p, domain.ActorOf(ctx).Role, active)
	kept.once.Do(func() {
		kept.part, kept.err = renderPart(context.WithoutCancel(ctx), p, active)
		s.count(kept)
	})
	return kept.part, kept.err
}

// find returns the kept part, or a new entry for it.
func (s *parts) find(p views.Part, reader domain.Role, active string) *keptPart {
	address := string(reader) + " " + p.ID + " " + p.URL
	s.mu.Lock()
	kept := s.kept[address]
	s.mu.Unlock()
	if kept != nil && kept.active == active && views.SameProps(kept.props, p.Props) {
		return kept
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if minute := now(); s.kept == nil || s.minute != minute || s.bytes > maxKeptBytes {
		s.kept, s.minute, s.bytes = map[string]*keptPart{}, minute, 0
	}
	kept = &keptPart{address: address, props: p.Props, active: active}
	s.kept[address] = kept
	return kept
}

// count adds a new rendering to the bytes kept. One that failed is tried again by the next reader.
func (s *parts) count(kept *keptPart) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case kept.err == nil:
		s.bytes += len(kept.part.html.plain)
	case s.kept[kept.address] == kept:
		delete(s.kept, kept.address)
	}
}

func renderPart(ctx context.Context, p views.Part, active string) (*part, error) {
	content, err := renderHTML(ctx, p.Content)
	if err != nil {
		return nil, err
	}
	version := hash([]byte(active), []byte(p.URL), []byte(p.Title), content)
	html, err := renderHTML(ctx, p.Element(version, templ.Raw(string(content))))
	if err != nil {
		return nil, err
	}
	return &part{version: version, html: document{plain: html}}, nil
}

// component returns the part for the page that contains it.
func (p *part) component() templ.Component { return templ.Raw(string(p.html.plain)) }

// renderHTML renders a component. A panic becomes an error, since other readers may be waiting for the result.
func renderHTML(ctx context.Context, component templ.Component) (html []byte, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic while rendering: %v\n%s", cause, debug.Stack())
		}
	}()
	buffer := takeBuffer()
	defer giveBuffer(buffer)
	if err := component.Render(ctx, buffer); err != nil {
		return nil, err
	}
	return bytes.Clone(buffer.Bytes()), nil
}

// hash returns the same for the same texts on every gateway.
func hash(texts ...[]byte) string {
	h := sha256.New()
	for _, text := range texts {
		_, _ = fmt.Fprintf(h, "%d ", len(text)) // so that "a", "bc" is not "ab", "c"
		_, _ = h.Write(text)
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:9])
}
