package projectserver

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"switchyard/internal/board"
	"switchyard/internal/domain"
	"switchyard/internal/gitlog"
	"switchyard/internal/web"
	"switchyard/internal/wire"
)

// pipelines answers with the board. It keeps one view of it encoded, which is done once, on first use.
type pipelines struct {
	*server

	mu   sync.Mutex
	tag  string // of what body shows
	most int    // how many stories
	body []byte
}

// answer answers with the stages and at most ?items= stories: 304 to clients that already have them, 503 while the
// work directory cannot be read.
func (p *pipelines) answer(w http.ResponseWriter, r *http.Request) error {
	most := math.MaxInt
	if text := r.URL.Query().Get("items"); text != "" {
		var err error
		if most, err = strconv.Atoi(text); err != nil || most < 0 {
			return domain.Errorf(domain.Invalid, "items: must be a number from 0")
		}
	}
	view := p.Board.View()
	if view.Err != nil {
		return board.Unavailable(view.Err)
	}
	tag := `"` + p.version(view) + `"`
	header := w.Header()
	header.Set("ETag", tag)
	header.Set("Cache-Control", "no-cache")
	if strings.Contains(r.Header.Get("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	body := p.encoded(view, tag, most)
	header["Content-Type"] = web.JSONType
	header.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the client may be gone
	return nil
}

// encoded returns the encoded pipeline, which the caller must not change.
func (p *pipelines) encoded(view *board.View, tag string, most int) []byte {
	stories := 0
	for _, stage := range view.Stages {
		stories += len(stage.Stories)
	}
	most = min(most, stories)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tag != tag || p.most != most {
		p.tag, p.most, p.body = tag, most, domain.EncodeJSON(p.encode(view, most))
	}
	return p.body
}

// encode returns the pipeline with the first items of its stages, at most most in all.
func (p *pipelines) encode(view *board.View, most int) wire.Pipeline {
	stages := view.Stages
	encoded := wire.Pipeline{
		Project: p.Name, Layout: p.Board.Layout(), Path: p.Board.Path(), Branch: p.Commits.Branch(), Past: p.past(),
		Stages: make([]wire.Stage, len(stages)), Faults: wire.NewFaults(view.Faults), Worktrees: []string{},
		CheckedOut: view.CheckedOut, Writable: p.Board.Writable(),
	}
	if p.Work != nil {
		encoded.Base, encoded.Worktrees = p.Work.Base(), p.Work.Trees()
		encoded.Links = p.Work.Links()
	}
	if len(encoded.Worktrees) > 0 {
		encoded.Host = p.Host
	}
	moves := p.Commits.Moves()
	for i, stage := range stages {
		items := make([]wire.Item, min(len(stage.Stories), most))
		most -= len(items)
		encoded.Left += len(stage.Stories) - len(items)
		for j := range items {
			story := &stage.Stories[j]
			since, atLeast := sinceOf(story, stage.Name, moves)
			items[j] = wire.Item{
				StoryID: story.ID, StoryName: story.Name, Blocked: wire.OrNull(story.Blocked),
				MergeFailure: wire.OrNull(story.MergeFailure), SinceMS: since, SinceAtLeast: atLeast,
				Criteria: wire.OrNull(story.Criteria), DependsOn: wire.NewIDs(story.DependsOn),
				WaitsFor: wire.NewIDs(story.WaitsFor), Version: story.Version, Fault: wire.OrNull(story.Fault),
				Worktree: wire.OrNull(story.Worktree), Branch: p.branch(story),
			}
			if p.Work != nil {
				list, count := p.Work.Of(story.ID)
				items[j].Work = wire.SumUp(list, count)
			}
		}
		encoded.Stages[i] = wire.Stage{
			Name: stage.Name, Label: stage.Label, Fixed: stage.Fixed, Other: stage.Other, Items: items,
		}
	}
	return encoded
}

// branch returns the branch that a story is on, nil for none.
func (s *server) branch(story *board.Story) *string {
	if story.Worktree == "" && story.Branch == "" {
		return wire.OrNull(s.Commits.Branch())
	}
	return wire.OrNull(story.Branch)
}

// sinceOf returns since when a story has been in a stage, and whether it may have been there longer. For a story that
// git has not seen move, what git says counts before the times of files, which are those of a clone.
func sinceOf(story *board.Story, stage string, moves *gitlog.Moves) (ms int64, atLeast bool) {
	if at := moves.Since(story.ID, stage); !at.IsZero() {
		return unixMS(at), true
	}
	return unixMS(story.Since), false
}

func unixMS(t time.Time) int64 { return max(0, t.UnixMilli()) }
