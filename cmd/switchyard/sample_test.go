package main

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// TestAMovedSampleStoryIsAsOldInItsStageAsItsMove: otherwise, after a restart, pages would contradict each other about how long it
// has been there.
func TestAMovedSampleStoryIsAsOldInItsStageAsItsMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "board")
		if fresh, err := unpackSample(dir); err != nil || !fresh {
			t.Fatal(fresh, err)
		}
		began := time.Now()
		if err := playSample(t.Context(), dir, watchedAlready()); err != nil {
			t.Fatal(err)
		}
		for i, move := range sampleMoves {
			info, err := os.Stat(filepath.Join(dir, move.to, filepath.Base(move.from)))
			if err != nil {
				t.Error(err)
			} else if want := began.Add(time.Duration(1+i) * samplePause); !info.ModTime().Equal(want) {
				t.Errorf("%s was changed at %v, moved at %v", info.Name(), info.ModTime(), want)
			}
		}
	})
}

// TestSampleMovesThatPeopleMadeAreLeftOut: a story that somebody has moved stays where it is.
func TestSampleMovesThatPeopleMadeAreLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "board")
		if _, err := unpackSample(dir); err != nil {
			t.Fatal(err)
		}
		theirs := filepath.Join(dir, "6_archived", "13_story_photo_sizes.md")
		if err := os.Rename(filepath.Join(dir, sampleMoves[0].from), theirs); err != nil {
			t.Fatal(err)
		}
		if err := playSample(t.Context(), dir, watchedAlready()); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(theirs); err != nil {
			t.Error(err)
		}
	})
}

func watchedAlready() chan struct{} {
	watched := make(chan struct{})
	close(watched)
	return watched
}

// TestTheSampleWaitsForItsFirstViewer: even somebody who opens the console after an hour sees its moves.
func TestTheSampleWaitsForItsFirstViewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "board")
		if _, err := unpackSample(dir); err != nil {
			t.Fatal(err)
		}
		sample, watched := sampleSteps(dir), make(chan struct{})
		if _, err := os.Stat(filepath.Join(dir, sample.From, sample.Story+".md")); err != nil {
			t.Errorf("the story that is to be moved: %v", err)
		}
		played := make(chan error, 1)
		go func() { played <- playSample(t.Context(), dir, watched) }()
		time.Sleep(time.Hour)
		if _, err := os.Stat(filepath.Join(dir, sampleMoves[0].from)); err != nil {
			t.Errorf("before anybody looked: %v", err)
		}
		close(watched)
		if err := <-played; err != nil {
			t.Error(err)
		}
		last := sampleMoves[len(sampleMoves)-1]
		if _, err := os.Stat(filepath.Join(dir, last.to, filepath.Base(last.from))); err != nil {
			t.Error(err)
		}
	})
}
