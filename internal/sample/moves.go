package sample

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchyard/internal/files"
)

const (
	// watched is how long somebody counts as looking after a page was asked for.
	watched = 30 * time.Second
	// A move follows the one before after minPause to maxPause.
	minPause, maxPause = 5 * time.Second, 15 * time.Second
	// maxArchived is how many archived stories of a project are kept.
	maxArchived = 40
)

// keeps is how many stories that may move a stage keeps.
var keeps = [...]int{backlog: 2, current: 1, qa: 1, merge: 0, done: 4}

// Look is called when somebody asks for a page.
func (s *Sample) Look() {
	now := time.Now()
	if now.Sub(time.Unix(0, s.seen.Swap(now.UnixNano()))) > watched {
		select {
		case s.looks <- struct{}{}:
		default:
		}
	}
}

// Run moves stories as long as somebody looks, until ctx ends or the sample is removed. While nobody looks it waits,
// and its agents have stopped. What cannot be done is logged once and tried again with the next move.
func (s *Sample) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.Ended, cancel)()
	s.do(ctx, s.rest) // a process that was killed has left them running
	var next <-chan time.Time
	for {
		questions := s.service.Questions.Changed()
		s.do(ctx, s.goOn)
		select {
		case <-s.looks:
			s.failed = false
			s.do(ctx, s.work)
			next = time.After(pause())
		case <-next:
			if next = nil; time.Since(time.Unix(0, s.seen.Load())) > watched {
				s.do(ctx, s.rest)
				continue
			}
			s.do(ctx, s.move)
			s.do(ctx, s.work)
			next = time.After(pause())
		case <-questions:
		case <-ctx.Done():
			return nil
		}
	}
}

func pause() time.Duration { return minPause + rand.N(maxPause-minPause) }

// do changes something of the sample, unless it is being removed.
func (s *Sample) do(ctx context.Context, change func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	err := change(ctx)
	if err != nil && ctx.Err() == nil && !s.failed {
		s.failed = true
		s.log.WarnContext(ctx, "the sample cannot move on", "error", err)
	}
}

// yard is the directory of the projects' directories.
type yard string

// board returns the paths of a project's stories by stage, and their highest number.
func (y yard) board(project string) (board [6][]string, highest int, err error) {
	for i, stage := range stages {
		dir := filepath.Join(string(y), project, stage)
		entries, err := os.ReadDir(dir)
		if err != nil {
			return board, 0, err
		}
		for _, e := range entries {
			number, _, _ := strings.Cut(e.Name(), "_")
			n, err := strconv.Atoi(number)
			if err != nil || filepath.Ext(e.Name()) != ".md" {
				continue // somebody's own
			}
			highest = max(highest, n)
			board[i] = append(board[i], filepath.Join(dir, e.Name()))
		}
	}
	return board, highest, nil
}

// move moves a story of some project by one stage.
func (c crew) move(context.Context) error {
	names := c.registered()
	for _, i := range rand.Perm(len(names)) {
		if moved, err := c.moveIn(names[i]); moved || err != nil {
			return err
		}
	}
	return nil
}

// moveIn moves a story of a project, one in the last stages first, so that nothing piles up. Where there is none it
// writes a new one, for another time.
func (y yard) moveIn(name string) (moved bool, err error) {
	board, highest, err := y.board(name)
	if err != nil {
		return false, err
	}
	if old := board[archived]; len(old) > maxArchived {
		if err := os.Remove(slices.MinFunc(old, older)); err != nil {
			return false, err
		}
	}
	now := time.Now()
	for stage := done; stage >= backlog; stage-- {
		free := slices.DeleteFunc(board[stage], isHeld)
		if len(free) <= keeps[stage] {
			continue
		}
		path := slices.MinFunc(free, older)
		if err := os.Chtimes(path, now, now); err != nil { // a later start takes it for when the story came to its stage
			return false, err
		}
		return true, os.Rename(path, filepath.Join(string(y), name, stages[stage+1], filepath.Base(path)))
	}
	p := find(name)
	written := story{name: p.stories[highest%len(p.stories)].name}
	path := filepath.Join(string(y), name, stages[backlog], p.id(highest+1)+".md")
	return false, os.WriteFile(path, written.file(), 0o600)
}

func find(name string) project {
	return projects[slices.IndexFunc(projects, func(p project) bool { return p.name == name })]
}

// held are files that stay where they are: of the story that the reader is to move, and of the one that is stuck.
var held = []string{
	filepath.Join(projects[0].name, stages[current], projects[0].idOf(first)+".md"),
	filepath.Join(projects[1].name, stages[qa], projects[1].idOf(stuck)+".md"),
}

// isHeld reports whether a story stays where it is: one of these, or one in trouble.
func isHeld(path string) bool {
	text, err := files.Read(path, files.Large)
	return err != nil || strings.Contains(string(text), "\nblocked: true") ||
		strings.Contains(string(text), "\nmerge_failure: ") ||
		slices.ContainsFunc(held, func(end string) bool { return strings.HasSuffix(path, end) })
}

// older orders files by their times.
func older(a, b string) int { return modified(a).Compare(modified(b)) }

func modified(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// First returns the story that the reader is invited to move, with the stages from and to which.
func (y yard) First() (dir, story, from, to string) {
	return filepath.Join(string(y), projects[0].name), projects[0].idOf(first), stages[current], stages[qa]
}

// isBlocked reports whether the story that asks is blocked, by its file.
func (y yard) isBlocked() (bool, error) {
	for _, stage := range stages {
		path := filepath.Join(string(y), projects[0].name, stage, projects[0].idOf(asking)+".md")
		text, err := files.Read(path, files.Large)
		if !errors.Is(err, fs.ErrNotExist) {
			return strings.Contains(string(text), "\nblocked: true"), err
		}
	}
	return false, nil
}
