package gitlog

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"switchyard/internal/board"
	"switchyard/internal/domain"
	"switchyard/internal/wire"
)

type boardCommit struct {
	hash, author string
	at           time.Time // the author's date
	files        []changedFile
}

type changedFile struct {
	path          string // below the board's directory
	before, after string // the ids of its blobs, "" where there is no regular file
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
	hashes, err := r.since(ctx, head, since)
	if err != nil || len(hashes) == 0 {
		return nil, err
	}
	args := []string{ // git prints each commit as it reads it: a time limit cuts the oldest
		"log", "-z", "--raw", "--no-abbrev", "--no-renames", "--relative", "--stdin", "--no-walk=unsorted",
		"--no-color", "--encoding=UTF-8", "--ignore-submodules=all", "--format=%x01%H%x00%an%x00%at", "--",
	}
	changes := 0
	err = r.stream(ctx, strings.NewReader(strings.Join(hashes, "\n")+"\n"), func(out *bufio.Reader) (err error) {
		token := func() string {
			record, failed := readRecord(out, 0)
			err = cmp.Or(err, failed)
			return strings.TrimPrefix(string(record), "\n")
		}
		for text := token(); text != "" && changes < maxChanges && err == nil; text = token() {
			if hash, begins := strings.CutPrefix(text, "\x01"); begins {
				author, date := token(), token()
				seconds, _ := strconv.ParseInt(date, 10, 64)
				if last := len(commits) - 1; last >= 0 && commits[last].files == nil { // it did not touch the board
					commits = commits[:last]
				}
				if len(commits) == maxBoardCommits {
					return errEnough
				}
				commits = append(commits, boardCommit{hash, limit([]byte(author)), time.Unix(seconds, 0), nil})
				continue
			}
			fields, path := strings.Fields(text), token() // :mode mode id id status
			if len(fields) < 5 || len(commits) == 0 {
				return err
			}
			changes += weight(path)
			if commit := &commits[len(commits)-1]; !shallow[commit.hash] {
				file := changedFile{path, blob(fields[0][1:], fields[2]), blob(fields[1], fields[3])}
				commit.files = append(commit.files, file)
			}
		}
		if changes >= maxChanges {
			return errEnough
		}
		return err
	}, append(args, paths...)...)
	if last := len(commits) - 1; last >= 0 && commits[last].files == nil {
		commits = commits[:last]
	}
	return commits, withoutExit(err, len(commits) > 0)
}

// since returns the commits since a time, newest first, without merges. One with an older date does not end them, as it
// would with git's --since, since a clock may have been wrong; maxOld of them in a row do.
func (r repository) since(ctx context.Context, head string, since time.Time) (hashes []string, err error) {
	old := 0
	err = r.records(ctx, nil, '\n', func(line []byte) error {
		date, hash, _ := strings.Cut(string(line), " ")
		if seconds, _ := strconv.ParseInt(date, 10, 64); seconds < since.Unix() {
			old++
		} else {
			hashes, old = append(hashes, hash), 0
		}
		if old == maxOld || len(hashes) == maxCommits {
			return errEnough
		}
		return nil
	}, "rev-list", "--timestamp", "--no-merges", head)
	return hashes, withoutExit(err, len(hashes) > 0)
}

// withoutExit forgives git's end after it has found something: the repository lacks what was before, as some clones do.
func withoutExit(err error, found bool) error {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && found {
		return nil
	}
	return err
}

// weight is what a path counts for: a long one as several, so that their number bounds the memory.
func weight(path string) int { return 1 + len(path)/256 }

// blob returns the id of a regular file, "" for anything else.
func blob(mode, id string) string {
	if !strings.HasPrefix(mode, "100") {
		return ""
	}
	return id
}

// files returns the ids of the blobs of a commit's regular files below paths.
func (r repository) files(ctx context.Context, head string, paths []string) (files map[string]string, err error) {
	files = map[string]string{}
	read := 0
	err = r.records(ctx, nil, 0, func(entry []byte) error {
		about, path, _ := strings.Cut(string(entry), "\t") // mode type id, a tab, path
		if fields := strings.Fields(about); len(fields) == 3 {
			files[path] = blob(fields[0], fields[2])
		}
		if read += weight(path); read >= maxChanges {
			return errEnough
		}
		return nil
	}, append([]string{"ls-tree", "-r", "-z", head, "--"}, paths...)...)
	return files, err
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
		use(func(id string) (content []byte) {
			if err == nil {
				content, err = readBlob(out, ask, id)
			}
			return content
		})
		return err
	}, "cat-file", "--batch")
}

func readBlob(out *bufio.Reader, ask io.Writer, id string) (content []byte, err error) {
	if _, err := fmt.Fprintln(ask, id); err != nil {
		return nil, err
	}
	header, err := readRecord(out, '\n')
	if header == nil {
		return nil, cmp.Or(err, io.ErrUnexpectedEOF)
	}
	fields := strings.Fields(string(header)) // id type size
	if len(fields) != 3 {                    // it is missing
		return nil, nil
	}
	size, _ := strconv.ParseInt(fields[2], 10, 64)
	if size <= maxBlob {
		content = make([]byte, size)
		_, err = io.ReadFull(out, content)
	} else {
		_, err = io.CopyN(io.Discard, out, size)
	}
	_, skipped := out.Discard(1)
	return content, cmp.Or(err, skipped)
}

func (r repository) moves(
	ctx context.Context, head string, since time.Time, past board.Past, progress func(read, of int),
) ([]wire.Move, error) {
	commits, err := r.boardCommits(ctx, head, since, past.Paths)
	if err != nil || len(commits) == 0 {
		return nil, err
	}
	files, err := r.files(ctx, head, past.Paths)
	if err != nil {
		return nil, err
	}
	did := make([][]move, len(commits))
	err = r.blobs(ctx, func(read func(id string) []byte) {
		t := tree{past: past, files: files, dirs: map[string]int{}, blob: read, known: map[string]map[string]string{}}
		for name, id := range files {
			if id != "" {
				t.dirs[path.Dir(name)]++
			}
		}
		total := 0
		for i := range commits { // the newest first, in case there is no time for all
			progress(i, len(commits))
			if ctx.Err() == nil && total < domain.MaxMoves {
				did[i] = t.undo(commits[i].files)
				total += len(did[i])
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return inOrder(commits, did, since), nil
}
