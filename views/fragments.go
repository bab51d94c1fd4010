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
	mu   sync.Mutex
	kept map[string]fragment
}

type fragment struct {
	state fragmentState
	html  []byte
}

// fragmentState is all that a fragment depends on. Relative times in it are true to the minute.
type fragmentState struct {
	change  int64 // the version of what it shows
	minute  int64
	stamp   int64  // of the last event, where it is shown
	columns string // of the grid
	active  bool
	compact bool
}

// maxFragments bounds what projects and events that nobody looks at any more keep in memory.
const maxFragments = 5000

// keep is c, rendered again only when state is another than when it last was. name is unique among all fragments.
func (f *Fragments) keep(name string, state fragmentState, now time.Time, c templ.Component) templ.Component {
	if f == nil {
		return c
	}
	state.minute = now.Unix() / 60
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		f.mu.Lock()
		kept, ok := f.kept[name]
		f.mu.Unlock()
		if !ok || kept.state != state {
			var b bytes.Buffer
			if err := c.Render(ctx, &b); err != nil {
				return err
			}
			kept = fragment{state, b.Bytes()}
			f.mu.Lock()
			if f.kept == nil || len(f.kept) >= maxFragments {
				f.kept = map[string]fragment{}
			}
			f.kept[name] = kept
			f.mu.Unlock()
		}
		_, err := w.Write(kept.html)
		return err
	})
}
