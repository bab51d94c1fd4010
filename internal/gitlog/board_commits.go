package gitlog

import (
	"bufio"
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"switchyard/internal/board"
	"switchyard/internal/domain"
	"switchyard/internal/git"
	"switchyard/internal/wire"
)

// repository is the one that contains the board.
type repository struct {
	git.Repository
	tree git.Tree
}

type boardCommit struct {
	hash, author string
	at           time.Time // the author's date
	files        []changedFile
}

type changedFile struct {
	path          string // below the board's directory
	before, after string // the ids of its blobs, "" if it is not a regular file
}

// newChangedFile parses a --raw record: :mode mode id id status.
func newChangedFile(path string, about []string) changedFile {
	return changedFile{path, blob(about[0][1:], about[2]), blob(about[1], about[3])}
}

// boardCommits returns the commits since a time that change files below paths, newest first, without merges, and the
// time from which they are complete. Commits whose parents a shallow clone lacks change nothing.
func (r repository) boardCommits(
	ctx context.Context, head string, since time.Time, paths []string,
) (commits []boardCommit, from time.Time, err error) {
	shallow, err := r.tree.Shallow()
	if err != nil {
		return nil, since, err
	}
	hashes, from, err := r.since(ctx, head, since, shallow)
	if err != nil || len(hashes) == 0 {
		return nil, from, err
	}
	args := []string{
		"log", "-z", "--raw", "--no-abbrev", "--no-renames", "--relative", "--stdin", "--no-walk=unsorted",
		"--format=%x01%H%x00%an%x00%at", "--",
	}
	changes := 0
	err = r.Stream(ctx, strings.NewReader(strings.Join(hashes, "\n")+"\n"), func(out *bufio.Reader) (err error) {
		token := func() string {
			record, failed := git.ReadRecord(out, 0)
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
					from = commits[len(commits)-1].at
					return git.ErrEnough
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
				commit.files = append(commit.files, newChangedFile(path, fields))
			}
		}
		if changes >= maxChanges {
			from = commits[len(commits)-1].at
			return git.ErrEnough
		}
		return err
	}, append(args, paths...)...)
	if last := len(commits) - 1; last >= 0 && commits[last].files == nil {
		commits = commits[:last]
	}
	return commits, from, withoutExit(err, len(commits) > 0)
}

// since returns the commits since a time, newest first, without merges, and from when they are complete: HEAD's time if
// older, or else since, or the time of the newest commit without its parents. An older date does not end the search, as
// it would with git's --since, since a clock may have been wrong; maxOld in a row do.
func (r repository) since(
	ctx context.Context, head string, since time.Time, shallow map[string]bool,
) (hashes []string, from time.Time, err error) {
	newest, err := r.Output(ctx, "log", "-1", "--format=%ct", head)
	if err != nil {
		return nil, since, err
	}
	seconds, _ := strconv.ParseInt(newest, 10, 64)
	if from = time.Unix(seconds, 0); from.After(since) {
		from = since
	}
	old := 0
	err = r.Records(ctx, nil, '\n', func(line []byte) error {
		date, hash, _ := strings.Cut(string(line), " ")
		seconds, _ := strconv.ParseInt(date, 10, 64)
		if seconds < since.Unix() {
			old++
		} else {
			hashes, old = append(hashes, hash), 0
		}
		if at := time.Unix(seconds, 0); at.After(from) && (shallow[hash] || len(hashes) == maxCommits) {
			from = at
		}
		if old == maxOld || len(hashes) == maxCommits {
			return git.ErrEnough
		}
		return nil
	}, "rev-list", "--timestamp", "--no-merges", head)
	return hashes, from, withoutExit(err, len(hashes) > 0)
}

// withoutExit ignores git's failure if anything was found: some clones lack older commits.
func withoutExit(err error, found bool) error {
	if git.Exit(err) != 0 && found {
		return nil
	}
	return err
}

// weight is what a path counts for: a long one as several, so that their total limits the memory.
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
	err = r.Records(ctx, nil, 0, func(entry []byte) error {
		about, path, _ := strings.Cut(string(entry), "\t") // mode type id, a tab, path
		if fields := strings.Fields(about); len(fields) == 3 {
			files[path] = blob(fields[0], fields[2])
		}
		if read += weight(path); read >= maxChanges {
			return git.ErrEnough
		}
		return nil
	}, append([]string{"ls-tree", "-r", "-z", head, "--"}, paths...)...)
	return files, err
}

// moves returns what the commits since a time did to the stories, and the stages of stories that none of them moved to
// where HEAD has them: those have been there at least since that time.
func (r repository) moves(
	ctx context.Context, head string, since time.Time, past board.Past, progress func(read, of int),
) (moves []wire.Move, still map[string]string, from time.Time, err error) {
	commits, from, err := r.boardCommits(ctx, head, since, past.Paths)
	if err != nil {
		return nil, nil, from, err
	}
	files, err := r.files(ctx, head, past.Paths)
	if err != nil {
		return nil, nil, from, err
	}
	did := make([][]move, len(commits))
	err = r.Blobs(ctx, func(read func(id string) []byte) {
		t := newTree(past, files, read)
		still = t.all()
		total := 0
		for i := range commits { // newest first, in case there is not time for all
			progress(i, len(commits))
			if ctx.Err() == nil && total < domain.MaxMoves {
				did[i] = t.undo(commits[i].files)
				total += len(did[i])
				if total >= domain.MaxMoves && commits[i].at.After(from) {
					from = commits[i].at
				}
			}
		}
	})
	if ctx.Err() != nil {
		err = git.ErrCutOff
	}
	if err != nil {
		return nil, nil, from, err
	}
	moves = inOrder(commits, did, since)
	for _, m := range moves {
		if still[m.StoryID] == m.ToStage {
			delete(still, m.StoryID)
		}
	}
	return moves, still, from, nil
}
