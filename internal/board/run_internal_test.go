//go:build unix

package board

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"

	"switchyard/internal/feed"
	"switchyard/internal/waittest"
)

// patience is how long a test waits for what should take milliseconds.
const patience = time.Minute

// live is a running board of a real directory with the machine's own watcher.
type live struct {
	*fixture
	notifications chan feed.Notification
}

func newLive(t *testing.T, files map[string]string) *live {
	l := &live{fixture: newFixture(t, files), notifications: make(chan feed.Notification, 1000)}
	l.record = func(n ...feed.Notification) {
		for _, one := range n {
			l.notifications <- one
		}
	}
	return l
}

// run starts the board, and returns once it watches, that is once it has recorded a new file.
func (l *live) run() {
	l.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := l.Run(ctx); err != nil {
			l.t.Error(err)
		}
	})
	l.t.Cleanup(func() { cancel(); running.Wait() })
	l.write("2_current/first.md", "x")
	l.next("first >2_current")
}

func (l *live) next(want string) {
	l.t.Helper()
	select {
	case n := <-l.notifications:
		if got := recorded(changes{notifications: []feed.Notification{n}}); got != want {
			l.t.Fatalf("recorded %q, want %q", got, want)
		}
	case <-time.After(patience):
		l.t.Fatalf("never recorded %q", want)
	}
}

func TestARunningBoardRecordsMoves(t *testing.T) {
	l := newLive(t, map[string]string{"1_backlog/a.md": "a", "2_current/b.md": "b", "3_qa/c.md": "c"})
	l.run()
	l.move("1_backlog/a.md", "2_current/a.md")
	l.next("a 1_backlog>2_current")
	l.write("3_qa/c.md", "---\nblocked: key\n---\n")
	l.next("c blocked: key")
	// A new stage that has a file at once, which then moves on.
	l.write("5_new/d.md", "d")
	l.next("d >5_new")
	l.move("5_new/d.md", "3_qa/d.md")
	l.next("d 5_new>3_qa")
	// A stage that is removed and comes back is watched again, under the same name or another.
	l.remove("5_new")
	l.write("5_new/e.md", "e")
	l.next("e >5_new")
	l.move("5_new", "6_newer")
	l.next("e 5_new>6_newer")
	l.move("6_newer/e.md", "1_backlog/e.md")
	l.next("e 6_newer>1_backlog")
}

func TestAWorkDirectoryThatIsReplacedIsWatchedAgain(t *testing.T) {
	l := newLive(t, map[string]string{"2_current/a.md": "a", "3_qa/b.md": "b"})
	l.run()
	l.move("", "../away")
	l.write("2_current/b.md", "b")
	l.next("b 3_qa>2_current")
	l.write("3_qa/c.md", "c")
	l.next("c >3_qa")
}

func TestAVanishedWorkDirectoryIsAnErrorUntilItIsBack(t *testing.T) {
	l := newLive(t, map[string]string{"2_current/a.md": "a", "3_qa/b.md": "b"})
	l.run()
	l.move("", "../away")
	waittest.Until(t, "an error", func() bool { return errors.Is(l.View().Err, fs.ErrNotExist) })
	l.move("../away", "")
	waittest.Until(t, "no error", func() bool { return l.View().Err == nil })
	l.move("2_current/a.md", "3_qa/a.md")
	l.next("a 2_current>3_qa")
}

func TestTheBoardShowsANewStateBeforeItRecordsIt(t *testing.T) {
	d := newFixture(t, map[string]string{"2_current/a.md": "a", "3_qa/b.md": "b"})
	shown := ""
	d.record = func(...feed.Notification) { shown = d.stories() }
	d.move("2_current/a.md", "3_qa/a.md")
	if _, err := d.scan(nil, false); err != nil || shown != "2_current[] 3_qa[a b]" {
		t.Errorf("showed %s, %v", shown, err)
	}
}

// bubble is a board that runs in a synctest bubble, with a watcher whose events the test sends.
// The files are real.
type bubble struct {
	*fixture
	mu     sync.Mutex
	events chan fsnotify.Event
	errors chan error
	opened int
	added  map[string]int
	fail   error // returned when opening the watcher and adding to it
}

func inBubble(t *testing.T, test func(*bubble)) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{fixture: &fixture{t: t, dir: dir}, events: make(chan fsnotify.Event), errors: make(chan error), added: map[string]int{}}
		b.write("2_current/a.md", "a")
		b.write("3_qa/b.md", "b")
		board, err := Open(Options{Dir: dir, Log: slog.New(slog.DiscardHandler), Record: b.record})
		if err != nil {
			t.Fatal(err)
		}
		b.Board = board
		b.openWatcher = b.open
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			if err := b.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		test(b)
		cancel()
		running.Wait()
	})
}

func (b *bubble) record(n ...feed.Notification) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.recorded = append(b.recorded, n...)
}

func (b *bubble) open() (watcher, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opened++
	if b.fail != nil {
		return watcher{}, b.fail
	}
	return watcher{b.events, b.errors, b.add, func() error { return nil }}, nil
}

func (b *bubble) add(path string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.added[filepath.Base(path)]++
	return b.fail
}

// set changes what the watcher does from now on.
func (b *bubble) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

// pass lets time pass.
func (b *bubble) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// within requires that the board records exactly want within after.
func (b *bubble) within(after time.Duration, want string) {
	b.t.Helper()
	b.pass(after)
	b.mu.Lock()
	defer b.mu.Unlock()
	if got := recorded(changes{notifications: b.recorded}); got != want {
		b.t.Errorf("recorded %q within %v, want %q", got, after, want)
	}
	b.recorded = nil
}

func TestABurstOfEventsIsOneScan(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.move("2_current/a.md", "3_qa/a.md")
		for range 100 {
			b.events <- fsnotify.Event{}
		}
		b.within(debounce-1, "")
		b.within(1, "a 2_current>3_qa")
		if b.added["2_current"] != 2 { // it is watched again for each scan
			t.Errorf("%d scans", b.added["2_current"])
		}
	})
}

func TestLostEventsAreScannedFor(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.move("2_current/a.md", "3_qa/a.md")
		b.errors <- fsnotify.ErrEventOverflow
		b.within(debounce, "a 2_current>3_qa")
	})
}

func TestAChangeWithoutAnEventIsFoundAtTheNextRescan(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.move("2_current/a.md", "3_qa/a.md")
		b.within(rescanMin-1, "")
		b.within(1, "a 2_current>3_qa")
		b.move("3_qa/a.md", "2_current/a.md")
		b.within(rescanMin, "a 3_qa>2_current")
	})
}

func TestAWatcherThatEndsIsOpenedAgain(t *testing.T) {
	inBubble(t, func(b *bubble) {
		ended := b.events
		b.set(func() { b.events = make(chan fsnotify.Event) })
		close(ended)
		b.within(debounce, "")
		b.move("2_current/a.md", "3_qa/a.md")
		b.events <- fsnotify.Event{}
		b.within(debounce, "a 2_current>3_qa")
		if b.opened != 2 {
			t.Errorf("opened %d times", b.opened)
		}
	})
}

func TestWithoutAWatcherItScansOften(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.set(func() { b.fail = errors.New("too many open files") })
		close(b.events)
		b.move("2_current/a.md", "3_qa/a.md")
		b.within(debounce, "a 2_current>3_qa")
		b.move("3_qa/a.md", "2_current/a.md")
		b.within(unwatchedRescan, "a 3_qa>2_current")
		b.set(func() { b.fail, b.events = nil, make(chan fsnotify.Event) })
		b.within(unwatchedRescan, "")
		b.move("2_current/a.md", "3_qa/a.md")
		b.events <- fsnotify.Event{}
		b.within(debounce, "a 2_current>3_qa")
	})
}

func TestADirectoryThatCannotBeWatchedIsScannedOften(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.set(func() { b.fail = errors.New("no space left on device") })
		b.events <- fsnotify.Event{}
		b.within(debounce, "")
		b.move("2_current/a.md", "3_qa/a.md")
		b.within(unwatchedRescan, "a 2_current>3_qa")
	})
}

func TestEveryDirectoryIsWatchedBeforeEachScan(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.write("4_new/c.md", "c")
		b.events <- fsnotify.Event{}
		b.within(debounce, "c >4_new")
		if b.added[filepath.Base(b.dir)] != 2 || b.added["2_current"] != 2 || b.added["4_new"] != 1 {
			t.Errorf("watched %v", b.added)
		}
	})
}

// An event that names a file causes only that file to be read.
func TestAnEventHasItsFileReadAndNoOther(t *testing.T) {
	inBubble(t, func(b *bubble) {
		event := func(path string) { b.events <- fsnotify.Event{Name: b.path(path)} }
		b.write("3_qa/unnoticed.md", "x")
		b.move("2_current/a.md", "3_qa/a.md")
		event("2_current/a.md")
		event("3_qa/a.md")
		b.within(debounce, "a 2_current>3_qa")
		b.expectStories("2_current[] 3_qa[a b]")
		b.write("3_qa/.hidden.md", "x")
		event("3_qa/.hidden.md")
		b.within(debounce, "")
		b.write("3_qa/c.md", "c")
		b.remove("3_qa/b.md")
		event("3_qa/b.md")
		b.within(debounce, "")
		b.pass(grace)
		b.expectStories("2_current[] 3_qa[a]")
		event("9_new")
		b.within(debounce, "c >3_qa; unnoticed >3_qa")
		if b.added[filepath.Base(b.dir)] != 2 {
			t.Errorf("everything was scanned %d times", b.added[filepath.Base(b.dir)])
		}
	})
}

func TestAStoryThatVanishesIsForgottenAfterASecondWithoutAnyEvent(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.remove("2_current/a.md")
		b.events <- fsnotify.Event{}
		b.pass(debounce + grace - 1)
		b.expectStories("2_current[a] 3_qa[b]")
		b.pass(1)
		b.expectStories("2_current[] 3_qa[b]")
	})
}

// Whatever a watcher misses, and however often files move, each story is finally recorded in its last stage.
func TestManyMovesAtOnceEndWhereTheFilesAre(t *testing.T) {
	files := map[string]string{}
	for i := range 200 {
		files[fmt.Sprintf("2_current/%d.md", i)] = "x"
	}
	files["3_qa/x.md"] = "x"
	l := newLive(t, files)
	l.run()
	for i := range 200 {
		l.move(fmt.Sprintf("2_current/%d.md", i), fmt.Sprintf("3_qa/%d.md", i))
	}
	moved := map[string]bool{}
	for len(moved) < 200 {
		select {
		case n := <-l.notifications:
			if n.FromStage != "2_current" || n.ToStage != "3_qa" || moved[n.StoryID] {
				t.Fatalf("recorded %+v", n)
			}
			moved[n.StoryID] = true
		case <-time.After(patience):
			t.Fatalf("recorded of %d moves", len(moved))
		}
	}
}
