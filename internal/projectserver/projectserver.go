// Package projectserver serves the HTTP API of a project server: the feed, the pipeline and the stories of one board.
// It must know neither the gateway nor files.
package projectserver

import (
	"context"
	"fmt"
	"hash/crc32"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"

	"switchyard/internal/board"
	"switchyard/internal/domain"
	"switchyard/internal/feed"
	"switchyard/internal/gitlog"
	"switchyard/internal/web"
	"switchyard/internal/wire"
)

// Server holds what a project server's HTTP handler is built from.
type Server struct {
	Name  string
	Host  string // of the machine
	Board Board
	Feed  *feed.Ring
	// Commits finds the commits that mention a story; it is set even without a repository.
	Commits Commits
	// Work is what is done in work trees and on branches, nil if nobody looks.
	Work Work
	// Token is required of callers, "" for none.
	Token domain.Secret
	// AllowHosts are host names to accept besides the built-in ones.
	AllowHosts []string
	Log        *slog.Logger
}

type Board interface {
	View() *board.View
	Layout() string
	Path() string
	Read(id string) (*board.Details, error)
	ReadAll(ctx context.Context, stories []board.StoryInStage, do func(*board.Details) bool) error
	Picture(ctx context.Context, id, name string) ([]byte, error)
	Writable() bool
	Change(ctx context.Context, id string, c board.Change) (*board.Details, error)
	Create(ctx context.Context, name, body, stage string) (*board.Details, error)
	MayMerge() error
	StageIn(worktree, id string) string
	Merge(ctx context.Context, id string, q board.MergeRequest) (commit string, err error)
}

// Commits finds the commits that mention a story, newest first; nil when it cannot know any.
type Commits interface {
	Commits(story string) wire.Commits
	// Branch returns the name of the work tree's branch, "" for none.
	Branch() string
	// Moves returns what commits did to the stories.
	Moves() *gitlog.Moves
}

// Work knows the places of stories beside the board's own work tree.
type Work interface {
	// Base returns the commit that places are compared with, nil without git.
	Base() *wire.Base
	// Trees returns the paths of the repository's work trees.
	Trees() []string
	Links() []domain.PlaceLink
	// Of returns the first places of a story, and how many there are; nil without git.
	Of(story string) (list []wire.Work, count int)
	// Changes returns what a place of a story has beyond the base.
	Changes(ctx context.Context, story string, q domain.ChangesQuery) (*wire.Changes, error)
	// Version changes when what it knows does.
	Version() string
}

type server struct {
	Server
	web.Errors
	pictures chan struct{} // has a value for each that is being sent
}

// maxPictures is how many pictures are in memory at a time.
const maxPictures = 4

// Handler returns the project server's handler: first the guards, then the token check, then the route. It does without
// a router and request ids, because feeds are read all the time.
func (s Server) Handler() http.Handler {
	h := &server{s, web.Errors{Log: s.Log}, make(chan struct{}, maxPictures)}
	return web.LimitWriteTime(web.Recover(s.Log)(web.LimitBodyTime(web.Guard(s.AllowHosts)(h.routes()))))
}

// routes is the whole route table: the handlers of each path by method. GET answers HEAD as well.
func (s *server) routes() http.Handler {
	handler := func(h web.HandlerFunc) http.HandlerFunc { return s.Errors.Handler(web.Plain, h) }
	pipelines, texts := &pipelines{server: s}, &texts{board: s.Board}
	routes := map[string]map[string]http.HandlerFunc{
		healthPath:      {"GET": func(w http.ResponseWriter, _ *http.Request) { web.Plain(w, http.StatusOK, "ok") }},
		"/api/events":   {"GET": handler(s.events)},
		"/api/history":  {"GET": handler(s.history)},
		"/api/picture":  {"GET": handler(s.picture)},
		"/api/pipeline": {"GET": handler(pipelines.answer)},
		"/api/search":   {"GET": handler(texts.search)},
		"/api/stories":  {"POST": handler(s.createStory)},
	}
	ofStory := map[string]map[string]http.HandlerFunc{
		"":         {"GET": handler(s.story), "PATCH": handler(s.changeStory)},
		"/changes": {"GET": handler(s.changes)},
		"/merge":   {"POST": handler(s.merge)},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		route, ok := routes[r.URL.Path]
		if id, part := storyID(r); !ok && id != "" {
			route, ok = ofStory[part], true
		}
		if !s.authenticate(r) && r.URL.Path != healthPath {
			w.Header().Set("WWW-Authenticate", "Bearer")
			web.Plain(w, http.StatusUnauthorized, "the project's token is required")
			return
		}
		if !ok {
			web.NotFound(w, r)
			return
		}
		if h := route[strings.Replace(r.Method, "HEAD", "GET", 1)]; h != nil {
			h(w, r)
			return
		}
		methods := strings.Join(slices.Sorted(maps.Keys(route)), ", ")
		w.Header().Set("Allow", strings.Replace(methods, "GET", "GET, HEAD", 1))
		web.Plain(w, http.StatusMethodNotAllowed, "method not allowed")
	})
}

// past says how much of the board's past has been read, nil once it is known.
func (s *server) past() *domain.HistoryProgress {
	if known := s.Commits.Moves(); !known.Complete && known.Of > 0 {
		return &known.HistoryProgress
	}
	return nil
}

// version identifies a state of the board on the work tree's branch.
func (s *server) version(view *board.View) string {
	version := view.Version
	if past := s.past(); past != nil {
		version += fmt.Sprintf("-%d", past.Read)
	}
	if still := s.Commits.Moves().Still(); still != "" {
		version += "-" + still
	}
	if s.Work != nil {
		version += s.Work.Version()
	}
	if branch := s.Commits.Branch(); branch != "" {
		version += fmt.Sprintf("-%08x", crc32.ChecksumIEEE([]byte(branch)))
	}
	return version
}

// healthPath says that the process serves requests. It needs no token: it reveals nothing about the project.
const healthPath = "/healthz"

// authenticate reports whether the caller has the token, if one is required.
func (s *server) authenticate(r *http.Request) bool {
	if s.Token == "" {
		return true
	}
	token, ok := web.BearerToken(r)
	if !ok || !web.MatchesToken(token, s.Token) {
		return false
	}
	web.KnownCaller(r.Context())
	return true
}
