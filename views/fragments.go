package views

import (
	"bytes"
	"context"
	"io"
	"sync"
	"time"

	"github.com/a-h/templ"
)

// Fragments keeps pieces of pages as they were rendered, so that a page of two hundred rows of which one has changed costs
// one row. A nil *Fragments keeps nothing.
type Fragments struct {
	mu     sync.Mutex
	kept   map[string]fragment // of one minute
	minute int64
	bytes  int
}

type fragment struct {
	state fragmentState
	html  []byte
}

// fragmentState is all that a fragment depends on, other than the minute: relative times in it are true to that.
type fragmentState struct {
	change  int64  // the version of what it shows
	stamp   int64  // of the last event, where it is shown
	columns string // of the grid, or what filters it
	active  bool
	compact bool
}

// maxFragmentBytes bounds what is kept: it holds the rows of some 15,000 projects.
const maxFragmentBytes = 32 << 20

// keep returns c, which is rendered again only when state has changed since it last was. name is unique among all fragments.
func (f *Fragments) keep(name string, state fragmentState, now time.Time, c templ.Component) templ.Component {
	if f == nil {
		return c
	}
	minute := now.Unix() / 60
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		kept, ok := f.find(name, minute)
		if !ok || kept.state != state {
			var b bytes.Buffer
			if err := c.Render(ctx, &b); err != nil {
				return err
			}
			kept = fragment{state, b.Bytes()}
			f.put(name, kept)
		}
		_, err := w.Write(kept.html)
		return err
	})
}

// find returns what is kept under the name, after forgetting all that was rendered in another minute.
func (f *Fragments) find(name string, minute int64) (fragment, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.kept == nil || f.minute != minute { // also after a clock was set back
		f.forget()
		f.minute = minute
	}
	kept, ok := f.kept[name]
	return kept, ok
}

func (f *Fragments) put(name string, made fragment) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.bytes+len(made.html) > maxFragmentBytes {
		f.forget()
	}
	f.bytes += len(made.html) - len(f.kept[name].html)
	f.kept[name] = made
}

func (f *Fragments) forget() { f.kept, f.bytes = map[string]fragment{}, 0 }
