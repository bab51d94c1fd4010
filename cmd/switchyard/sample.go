package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"switchyard/handlers/console"
	"switchyard/internal/board"
	"switchyard/internal/domain"
	"switchyard/internal/sample"
)

// withSample adds the sample to the boards of a start if it is wanted, if it is registered, or if nothing else is
// registered or served and nobody has removed it. A start with named directories removes it.
func (u *up) withSample(ctx context.Context, boards []workBoard, named bool, out io.Writer) ([]workBoard, error) {
	dir := filepath.Join(u.config.Data, "sample")
	s, err := sample.Open(ctx, dir, u.service, u.state, u.log)
	if err != nil {
		return nil, err
	}
	if s.Exists() && (named || s.Removed()) {
		if !s.Removed() {
			fmt.Fprintln(out, "The sample is removed; switchyard up --sample brings it back")
		}
		if err := s.Remove(ctx); err != nil || !u.sample {
			return boards, err
		}
		if s, err = sample.Open(ctx, dir, u.service, u.state, u.log); err != nil {
			return nil, err
		}
	}
	others := len(boards) > 0 || len(u.service.Projects.Registry().Projects) > 0
	if !u.sample && !s.Exists() && (others || s.Removed()) {
		return boards, nil
	}
	names, err := s.Make(ctx)
	if domain.CodeOf(err) == domain.Conflict {
		fmt.Fprintf(out, "The sample is not served: %s\n", domain.MessageOf(err))
		return boards, nil
	}
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		found := board.Found{Layout: domain.LayoutStages, Dir: filepath.Join(dir, name)}
		boards = append(boards, workBoard{Found: found, name: name, ends: s.Ended})
	}
	first, story, from, to := s.First()
	u.handler.Sample = console.Sample{
		Projects: sample.Names(), Dir: first, Story: story, From: from, To: to, Remove: s.Remove,
	}
	u.handler.Looked, u.registered = s.Look, s.Registered
	u.loops = append(u.loops, loop{"sample", s.Run})
	fmt.Fprintf(out, "The sample is in %s: move a story to another stage and watch\n", dir)
	return boards, nil
}
