package sample_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/sample"
	"switchyard/internal/service"
	"switchyard/internal/store/sqlite"
	"switchyard/internal/store/storetest"
)

// yard is a gateway with a sample.
type yard struct {
	t   *testing.T
	dir string
	log strings.Builder
	db  *sqlite.DB
	*service.Service
	*sample.Sample
}

// stories are project servers that know every story.
type stories struct{ service.StoryServers }

func (stories) Story(context.Context, domain.Project, string) (domain.Story, error) {
	return domain.Story{Stage: "2_current"}, nil
}

// inBubble runs fn in virtual time.
func inBubble(t *testing.T, fn func(t *testing.T, y *yard)) {
	dir, data := t.TempDir(), storetest.Dir(t)
	synctest.Test(t, func(t *testing.T) {
		db, err := sqlite.Open(t.Context(), data)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		y := &yard{t: t, dir: filepath.Join(dir, "sample"), db: db}
		y.Service, err = service.New(t.Context(), service.Options{
			Store: db, Log: slog.New(slog.DiscardHandler), AgentTimeout: 45 * time.Second, JoinTokenTTL: time.Hour,
			Stories: stories{},
		})
		if err != nil {
			t.Fatal(err)
		}
		y.open(db)
		fn(t, y)
	})
}

func (y *yard) open(state sample.State) {
	y.t.Helper()
	var err error
	y.Sample, err = sample.Open(y.t.Context(), y.dir, y.Service, state, slog.New(slog.NewTextHandler(&y.log, nil)))
	if err != nil {
		y.t.Fatal(err)
	}
}

func (y *yard) make() {
	y.t.Helper()
	if _, err := y.Make(y.t.Context()); err != nil {
		y.t.Fatal(err)
	}
}

// run makes the sample, registers its projects and lets it run until the returned function is called.
func (y *yard) run() (stop func()) {
	y.t.Helper()
	y.make()
	for _, name := range sample.Names() {
		if _, err := y.Projects.Ensure(y.t.Context(), name, "http://"+name, nil); err != nil {
			y.t.Fatal(err)
		}
	}
	if err := y.Registered(y.t.Context()); err != nil {
		y.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(y.t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := y.Sample.Run(ctx); err != nil {
			y.t.Error(err)
		}
	})
	return func() { cancel(); wg.Wait() }
}

// files returns the paths of all files.
func (y *yard) files() string {
	y.t.Helper()
	var paths []string
	err := fs.WalkDir(os.DirFS(y.dir), ".", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		y.t.Error(err)
	}
	return strings.Join(paths, "\n")
}

// changes returns how often the files change within a time, in which somebody looks every look, 0 for never.
func (y *yard) changes(within, look time.Duration) (n int) {
	before := y.files()
	for second := range within / time.Second {
		if look > 0 && second%(look/time.Second) == 0 {
			y.Look()
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if now := y.files(); now != before {
			n, before = n+1, now
		}
	}
	return n
}

func (y *yard) alive() (n int) { return len(y.Agents.Alive()) }

func TestStoriesMoveOnlyWhileSomebodyLooks(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		defer y.run()()
		if n := y.changes(10*time.Minute, 0); n != 0 || y.alive() != 0 {
			t.Errorf("before anybody looked, %d moves and %d agents", n, y.alive())
		}
		if n := y.changes(10*time.Minute, 10*time.Second); n < 600/15-1 || n > 600/5 || y.alive() != 2 {
			t.Errorf("in ten minutes in which somebody looked, %d moves and %d agents; %s", n, y.alive(), &y.log)
		}
		y.changes(46*time.Second, 0)
		if n := y.changes(10*time.Minute, 0); n != 0 || y.alive() != 0 {
			t.Errorf("after that, %d moves and %d agents", n, y.alive())
		}
		if n := y.changes(time.Minute, 10*time.Second); n < 3 || y.alive() != 2 {
			t.Errorf("when somebody looks again, %d moves and %d agents", n, y.alive())
		}
	})
}

// TestTheSampleStaysSmall: in an hour of looking its stories neither pile up nor run out.
func TestTheSampleStaysSmall(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		defer y.run()()
		if n := y.changes(time.Hour, 20*time.Second); n < 3600/15-1 {
			t.Errorf("%d moves; %s", n, &y.log)
		}
		if n := strings.Count(y.files(), ".md"); n < 60 || n > 150 {
			t.Errorf("there are %d stories", n)
		}
		for _, stays := range []string{"sample-shop/2_current/16_story_search_with_typos", "sample-app/3_qa/15_story_check_addresses"} {
			if !strings.Contains(y.files(), stays) {
				t.Errorf("%s has been moved", stays)
			}
		}
	})
}

// TestASampleThatWasHalfMadeIsFinished, with no event twice, whatever the process died in between.
func TestASampleThatWasHalfMadeIsFinished(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		y.make()
		made, last := y.files(), y.Events.LastID()
		if last < 150 || !strings.Contains(made, "sample-docs") {
			t.Fatalf("%d events, %s", last, made)
		}
		if err := os.Rename(filepath.Join(y.dir, "sample-docs"), filepath.Join(y.dir, "sample-docs.unfinished")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		y.open(y.db)
		y.make()
		if y.files() != made || y.Events.LastID() != last {
			t.Errorf("%d events instead of %d, and files:\n%s", y.Events.LastID(), last, y.files())
		}
	})
}

// dying is a state that can be stored only so often.
type dying struct {
	*sqlite.DB
	saves int
}

func (d *dying) SetState(ctx context.Context, key, value string) error {
	if d.saves--; d.saves < 0 {
		return errors.New("killed")
	}
	return d.DB.SetState(ctx, key, value)
}

func TestASampleThatWasHalfRemovedIsRemoved(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		stop := y.run()
		y.changes(time.Minute, 10*time.Second)
		stop()
		y.open(&dying{y.db, 1})
		if err := y.Remove(t.Context()); err == nil {
			t.Fatal("it was not killed")
		}
		y.open(y.db)
		if !y.Exists() || !y.Removed() {
			t.Error("the next start does not know")
		}
		if err := y.Remove(t.Context()); err != nil {
			t.Error(err)
		}
		y.open(y.db)
		page, err := y.Events.Page(t.Context(), domain.EventQuery{Limit: 1})
		visits, failed := y.db.VisitedProjects(t.Context())
		if y.Exists() || !y.Removed() || len(y.Agents.All()) > 0 || y.files() != "" || len(page.Events) > 0 || len(visits) > 0 {
			t.Errorf("left are agents %v, files %s, events %v, visits of %v; %v, %v", y.Agents.All(), y.files(), page.Events, visits, err, failed)
		}
	})
}

// TestADiskThatRefusesWritesIsLoggedOnce, and when it takes them again, the sample goes on.
func TestADiskThatRefusesWritesIsLoggedOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		defer y.run()()
		y.changes(time.Minute, 10*time.Second)
		if err := os.Rename(y.dir, y.dir+".away"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		y.changes(2*time.Minute, 10*time.Second)
		if err := os.Rename(y.dir+".away", y.dir); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(y.log.String(), "cannot move on"); n < 1 || n > 2 {
			t.Errorf("logged %d times: %s", n, &y.log)
		}
		if n := y.changes(time.Minute, 10*time.Second); n < 3 {
			t.Errorf("then %d moves", n)
		}
	})
}

// TestSomebodyElsesProjectIsLeftAlone: the sample is not made when a project has one of its names.
func TestSomebodyElsesProjectIsLeftAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		if _, err := y.Projects.Ensure(t.Context(), "sample-app", "http://mine", nil); err != nil {
			t.Fatal(err)
		}
		if _, err := y.Make(t.Context()); domain.CodeOf(err) != domain.Conflict || y.files() != "" {
			t.Errorf("%v, and files %s", err, y.files())
		}
	})
}
