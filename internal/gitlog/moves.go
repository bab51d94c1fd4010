package gitlog

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchyard/internal/board"
	"switchyard/internal/domain"
	"switchyard/internal/wire"
)

const (
	// maxBoardCommits is how many commits, the newest that touch the board, are read, and maxChanges how many files they
	// may change in all.
	maxBoardCommits, maxChanges = 5000, 200_000
	// movesLimit is how long reading them may take, and movesFactor how many times longer the pause after it is.
	movesLimit  = 20 * time.Second
	movesFactor = 20
	// maxBlob is the largest file that is read of a commit, in bytes.
	maxBlob = 16 << 20
)

// Moves are what commits did to a board's stories, oldest first. They are immutable.
type Moves struct {
	ID       string // changes with the moves
	Complete bool   // git has been read
	List     []wire.Move
}

// Moves returns what the commits of the last 180 days did to the stories.
func (l *Log) Moves() *Moves { return l.moves.Load() }

// updateMoves reads the moves again if HEAD or what the board makes of commits has changed.
func (l *Log) updateMoves(ctx context.Context) error {
	past := l.Board.Past()
	of := l.head + " " + past.Config
	if l.gitDir == "" {
		l.movesOf, of = "", ""
		l.publishMoves(nil)
	}
	if of == l.movesOf || time.Now().Before(l.movesDue) {
		return nil
	}
	began := time.Now()
	var moves []wire.Move
	if l.head != "" {
		limited, cancel := context.WithTimeout(ctx, movesLimit)
		defer cancel()
		var err error
		if moves, err = l.repository.moves(limited, l.head, began.AddDate(0, 0, -l.days), past); err != nil {
			return err
		}
	}
	l.movesOf, l.movesDue = of, time.Now().Add(movesFactor*time.Since(began))
	l.publishMoves(moves)
	return nil
}

func (l *Log) publishMoves(moves []wire.Move) {
	text, _ := json.Marshal(moves) // texts and numbers always encode
	sum := sha256.Sum256(text)
	l.moves.Store(&Moves{ID: hex.EncodeToString(sum[:12]), Complete: true, List: moves})
}

// boardCommit is a commit and what it changed.
type boardCommit struct {
	hash, author string
	at           time.Time // the author's date
	files        []board.Changed
}

func (r repository) moves(ctx context.Context, head string, since time.Time, past board.Past) ([]wire.Move, error) {
	commits, err := r.boardCommits(ctx, head, since, past.Paths)
	if err != nil {
		return nil, err
	}
	did := make([][]board.Move, len(commits))
	err = r.blobs(ctx, func(read func(id string) []byte) {
		for i := range commits { // the newest first, in case there is no time for all
			if ctx.Err() == nil {
				did[i] = past.Moves(commits[i].files, read)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	var moves []wire.Move
	type place struct {
		stage string
		atMS  int64
	}
	places := map[string]place{}
	for i, commit := range slices.Backward(commits) {
		for _, m := range did[i] {
			last := places[m.StoryID]
			if m.From == "" {
				m.From = last.stage // it was deleted, or copied
			}
			if m.From == m.To {
				continue
			}
			now := place{m.To, max(commit.at.UnixMilli(), last.atMS)}
			places[m.StoryID] = now
			moves = append(moves, wire.Move{
				StoryID: m.StoryID, FromStage: wire.OrNull(m.From), ToStage: m.To, AtMS: now.atMS,
				Author: commit.author, Commit: commit.hash,
			})
		}
	}
	slices.SortStableFunc(moves, func(a, b wire.Move) int { return int(a.AtMS - b.AtMS) })
	return moves[max(0, len(moves)-domain.MaxMoves):], nil
}

// boardCommits returns the commits since a time that change files below paths, newest first, without merges. Those that
// a shallow clone has without their parents change nothing.
func (r repository) boardCommits(
	ctx context.Context, head string, since time.Time, paths []string,
) (commits []boardCommit, err error) {
	shallow, err := r.shallow(ctx)
	if err != nil {
		return nil, err
	}
	args := []string{
		"log", "-z", "--raw", "--no-abbrev", "--no-renames", "--relative", "--no-merges", "--full-history", "--date-order",
		"--no-color", "--encoding=UTF-8", "--ignore-submodules=all",
		"--since=" + since.Format(time.RFC3339), "--max-count=" + strconv.Itoa(maxBoardCommits),
		"--format=%x01%H%x00%an%x00%at", head, "--",
	}
	changes := 0
	err = r.stream(ctx, nil, func(out *bufio.Reader) error {
		for {
			token, err := readRecord(out, 0)
			if token == nil || err != nil {
				return err
			}
			token = bytes.TrimPrefix(token, []byte("\n"))
			if hash, begins := bytes.CutPrefix(token, []byte{1}); begins {
				commit := boardCommit{hash: string(hash)}
				author, err := readRecord(out, 0)
				if err != nil {
					return err
				}
				commit.author = limit(author)
				seconds, err := readRecord(out, 0)
				if err != nil {
					return err
				}
				n, _ := strconv.ParseInt(string(seconds), 10, 64)
				commit.at = time.Unix(n, 0)
				commits = append(commits, commit)
				continue
			}
			// :mode mode id id status
			fields := strings.Fields(string(token))
			path, err := readRecord(out, 0)
			if err != nil || len(fields) < 5 || len(commits) == 0 {
				return err
			}
			if changes++; changes > maxChanges {
				return nil
			}
			commit := &commits[len(commits)-1]
			if !shallow[commit.hash] {
				commit.files = append(commit.files, board.Changed{
					Path: string(path), Before: blob(fields[0][1:], fields[2]), After: blob(fields[1], fields[3]),
				})
			}
		}
	}, append(args, paths...)...)
	return commits, err
}

// blob returns the id of a regular file, "" for anything else.
func blob(mode, id string) string {
	if !strings.HasPrefix(mode, "100") {
		return ""
	}
	return id
}

// shallow returns the commits that a shallow clone has without their parents.
func (r repository) shallow(ctx context.Context) (commits map[string]bool, err error) {
	path, err := r.output(ctx, "rev-parse", "--git-path", "shallow")
	if err != nil {
		return nil, err
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.dir, path)
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	commits = map[string]bool{}
	for hash := range strings.FieldsSeq(string(text)) {
		commits[hash] = true
	}
	return commits, err
}

// blobs calls use with a function that reads blobs. It returns nil for one that is missing or too large.
func (r repository) blobs(ctx context.Context, use func(read func(id string) []byte)) error {
	input, ask := io.Pipe()
	defer input.Close()
	return r.stream(ctx, input, func(out *bufio.Reader) (err error) {
		defer ask.Close()
		use(func(id string) []byte {
			if err != nil {
				return nil
			}
			if _, err = fmt.Fprintln(ask, id); err != nil {
				return nil
			}
			var header, content []byte
			if header, err = readRecord(out, '\n'); header == nil {
				err = cmp.Or(err, io.ErrUnexpectedEOF)
				return nil
			}
			fields := strings.Fields(string(header))
			if len(fields) != 3 { // missing
				return nil
			}
			size, _ := strconv.ParseInt(fields[2], 10, 64)
			if size <= maxBlob {
				content = make([]byte, size)
				_, err = io.ReadFull(out, content)
			} else {
				_, err = io.CopyN(io.Discard, out, size)
			}
			if err == nil {
				_, err = out.Discard(1)
			}
			return content
		})
		return err
	}, "cat-file", "--batch")
}
