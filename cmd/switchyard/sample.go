package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"switchyard/handlers/console"
	"switchyard/internal/board"
	"switchyard/internal/domain"
	"switchyard/internal/files"
	"switchyard/internal/supervise"
)

// sampleName is the name of the sample project, and of its directory in the data directory.
const sampleName = "sample-board"

//go:embed sample
var sampleFiles embed.FS

// sampleAges is how long the first story of each stage has been there; the others are older.
var sampleAges = map[string]time.Duration{
	"1_backlog":  5 * 24 * time.Hour,
	"2_current":  3 * time.Hour,
	"3_qa":       70 * time.Minute,
	"4_merge":    14 * time.Minute,
	"5_done":     26 * time.Hour,
	"6_archived": 20 * 24 * time.Hour,
}

// sampleKey is the key in the state table that says that up has served the sample board.
const sampleKey = "sample"

// withSample adds the sample board to the boards of a start: if it is wanted, if it is registered, and if nothing else
// is registered nor served and nobody has removed it. A start whose directories were named removes it.
func (g *gateway) withSample(
	ctx context.Context, boards []workBoard, wanted, named bool, out io.Writer,
) ([]workBoard, error) {
	registry := g.service.Projects.Registry()
	_, registered := registry.Find(sampleName)
	before, err := g.state.State(ctx, sampleKey)
	switch {
	case err != nil:
		return nil, err
	case slices.ContainsFunc(boards, func(b workBoard) bool { return b.name == sampleName }):
		return boards, nil // somebody's own
	case registered && named:
		if _, err := g.service.Projects.Remove(ctx, sampleName); err != nil {
			return nil, err
		}
		fmt.Fprintln(out, "The sample board is removed; switchyard up --sample brings it back")
		return boards, g.state.SetState(ctx, sampleKey, "")
	case !wanted && !registered && (len(boards) > 0 || len(registry.Projects) > 0 || before != ""):
		return boards, nil
	}
	dir := filepath.Join(g.config.Data, sampleName)
	fresh, err := unpackSample(dir)
	if err != nil {
		return nil, err
	}
	g.handler.Sample = sampleSteps(dir)
	if fresh {
		watched := make(chan struct{})
		g.handler.Watched = sync.OnceFunc(func() { close(watched) })
		g.loops = append(g.loops, loop{sampleName, func(ctx context.Context) error {
			return playSample(ctx, dir, watched)
		}})
	}
	fmt.Fprintf(out, "The sample board is %s: move a story to another stage and watch\n", dir)
	boards = append(boards, workBoard{board.Found{Layout: domain.LayoutStages, Dir: dir}, sampleName, false})
	return boards, g.state.SetState(ctx, sampleKey, "served")
}

// unpackSample writes the sample board to dir. It returns false, and changes nothing, when dir exists.
func unpackSample(dir string) (fresh bool, err error) {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	unfinished := dir + ".unpacking"
	if err := os.RemoveAll(unfinished); err != nil {
		return false, err
	}
	now := time.Now()
	for stage, age := range sampleAges {
		if err := files.MakePrivateDir(filepath.Join(unfinished, stage)); err != nil {
			return false, err
		}
		stories, err := sampleFiles.ReadDir("sample/" + stage)
		if err != nil {
			return false, err
		}
		for i, story := range stories {
			text, err := sampleFiles.ReadFile("sample/" + stage + "/" + story.Name())
			if err != nil {
				return false, err
			}
			path := filepath.Join(unfinished, stage, story.Name())
			changed := now.Add(-age * time.Duration(3+i) / 3)
			if err := errors.Join(os.WriteFile(path, text, 0o600), os.Chtimes(path, changed, changed)); err != nil {
				return false, err
			}
		}
	}
	return true, os.Rename(unfinished, dir)
}

// sampleMoves are played on a new sample board, each after a samplePause.
var sampleMoves = []struct{ from, to string }{
	{"4_merge/13_story_photo_sizes.md", "5_done"},
	{"3_qa/14_story_login_by_link.md", "4_merge"},
	{"2_current/19_story_order_mail.md", "3_qa"},
	{"1_backlog/21_story_export_orders.md", "2_current"},
}

const samplePause = 2 * time.Second

func sampleSteps(dir string) console.Sample {
	return console.Sample{Project: sampleName, Dir: dir, Story: "17_story_search_typos", From: "2_current", To: "3_qa"}
}

// playSample waits until the board in dir is watched and then makes the moves, except of stories that somebody has
// moved in the meantime. It touches each moved file: a later start takes the file's time for when the story entered its
// stage.
func playSample(ctx context.Context, dir string, watched <-chan struct{}) error {
	select {
	case <-watched:
	case <-ctx.Done():
		return nil
	}
	for _, move := range sampleMoves {
		if !supervise.Sleep(ctx, samplePause) {
			return nil
		}
		now, story := time.Now(), filepath.Join(dir, move.from)
		err := os.Chtimes(story, now, now)
		if err == nil {
			err = os.Rename(story, filepath.Join(dir, move.to, filepath.Base(move.from)))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
