package projectserver_test

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/feed"
	"switchyard/internal/gitlog"
	"switchyard/internal/projectserver"
	"switchyard/internal/wire"
)

// committed is what git knows.
type committed struct{ moves *gitlog.Moves }

func (c committed) Commits(string) wire.Commits { return nil }
func (c committed) Moves() *gitlog.Moves        { return c.moves }
func (c committed) Branch() string              { return "main" }

// noRepository is what the log of a directory without git knows.
type noRepository struct{ committed }

func (noRepository) Branch() string { return "" }

func TestTheHistoryIsServedInParts(t *testing.T) {
	known := &gitlog.Moves{ID: "x", Complete: true}
	for i := range 1500 {
		known.List = append(known.List, wire.Move{StoryID: fmt.Sprint(i), ToStage: "1_a", AtMS: int64(i), Author: "Ada", Commit: "c"})
	}
	p := newProject("")
	p.handler = projectserver.Server{
		Name: "alpha", Board: p, Feed: feed.New(time.Now), Commits: committed{known}, Log: slog.New(slog.DiscardHandler),
	}.Handler()
	for query, want := range map[string]struct{ moves, next int }{
		"": {200, 200}, "?after=0&limit=1000": {1000, 1000}, "?after=1000&limit=1000": {500, 1500}, "?after=1500": {0, 1500},
		"?after=1499&limit=1": {1, 1500}, "?after=9000": {0, 9000}, "?limit=1": {1, 1},
	} {
		w := p.ask("GET", "/api/history"+query)
		if w.Code != 200 || !strings.HasPrefix(w.Body.String(), fmt.Sprintf(`{"id":"x","complete":true,"next":%d,"moves":[`, want.next)) ||
			strings.Count(w.Body.String(), `"story_id"`) != want.moves {
			t.Errorf("%s: %d %.100s", query, w.Code, w.Body)
		}
	}
	if w := p.ask("GET", "/api/history?limit=1"); !strings.Contains(w.Body.String(), `{"story_id":"0","from_stage":null,"to_stage":"1_a","at_ms":0,"author":"Ada","commit":"c"}`) {
		t.Errorf("%s", w.Body)
	}
	for _, query := range []string{"?after=x", "?after=-1", "?after=", "?limit=0", "?limit=1001", "?limit=", "?after=9223372036854775808", "?%zz"} {
		if w := p.ask("GET", "/api/history"+query); w.Code != 400 || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
	if w := p.ask("POST", "/api/history"); w.Code != 405 || w.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %d", w.Code)
	}
}

func TestWithoutGitThereIsNoHistory(t *testing.T) {
	if w := newProject("").ask("GET", "/api/history"); w.Code != 200 || w.Body.String() != `{"id":"none","complete":true,"next":0,"moves":[]}` {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// onBranch is a work tree whose branch changes.
type onBranch struct {
	committed
	name atomic.Value
}

func (o *onBranch) Branch() string { return o.name.Load().(string) }

// TestAnotherBranchIsAnotherPipeline, also for those who wait, although no story is different.
func TestAnotherBranchIsAnotherPipeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, tree := newProject(""), &onBranch{}
		tree.name.Store("main")
		tree.moves = &gitlog.Moves{Complete: true}
		p.handler = projectserver.Server{
			Name: "alpha", Board: p, Feed: feed.New(time.Now), Commits: tree, Log: slog.New(slog.DiscardHandler),
		}.Handler()
		first := p.ask("GET", "/api/pipeline")
		tag := first.Header().Get("ETag")
		if !strings.Contains(first.Body.String(), `"branch":"main"`) || p.ask("GET", "/api/pipeline", "If-None-Match: "+tag).Code != 304 {
			t.Fatalf("%v %s", first.Header(), first.Body)
		}
		began := time.Now()
		var waiting sync.WaitGroup
		waiting.Go(func() {
			w := p.ask("GET", "/api/events?since=0&wait=25s&pipeline="+strings.Trim(tag, `"`))
			if version := w.Header().Get("Pipeline-Version"); `"`+version+`"` == tag || time.Since(began) > 4*time.Second {
				t.Errorf("after %v the version is %s", time.Since(began), version)
			}
		})
		synctest.Wait()
		tree.name.Store("other")
		waiting.Wait()
		if now := p.ask("GET", "/api/pipeline", "If-None-Match: "+tag); !strings.Contains(now.Body.String(), `"branch":"other"`) {
			t.Errorf("%d %s", now.Code, now.Body)
		}
	})
}

// TestThePipelineSaysHowFarGitIsRead, as another pipeline each time, until it is.
func TestThePipelineSaysHowFarGitIsRead(t *testing.T) {
	p, seen := newProject(""), map[string]bool{}
	for _, c := range []struct {
		moves gitlog.Moves
		want  string
	}{
		{gitlog.Moves{}, ""},
		{gitlog.Moves{HistoryProgress: domain.HistoryProgress{Read: 1, Of: 20}}, `"past":{"read":1,"of":20}`},
		{gitlog.Moves{HistoryProgress: domain.HistoryProgress{Read: 7, Of: 20}}, `"past":{"read":7,"of":20}`},
		{gitlog.Moves{ID: "x", Complete: true}, ""},
	} {
		p.handler = projectserver.Server{
			Name: "alpha", Board: p, Feed: feed.New(time.Now), Commits: committed{&c.moves}, Log: slog.New(slog.DiscardHandler),
		}.Handler()
		w := p.ask("GET", "/api/pipeline")
		if strings.Contains(w.Body.String(), `"past"`) != (c.want != "") || !strings.Contains(w.Body.String(), c.want) ||
			c.want != "" && seen[w.Header().Get("ETag")] {
			t.Errorf("%+v: %v %s", c, w.Header(), w.Body)
		}
		seen[w.Header().Get("ETag")] = true
	}
}
