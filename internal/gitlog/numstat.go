package gitlog

import (
	"bufio"
	"bytes"
	"context"
	"strconv"
	"strings"
)

// count fills in what each of the commits changes. The numbers stay zero when git fails.
func (r repository) count(ctx context.Context, commits []*Commit) error {
	byHash := make(map[string]*Commit, len(commits))
	var input strings.Builder
	for _, commit := range commits {
		byHash[commit.Hash] = commit
		input.WriteString(commit.Hash + "\n")
	}
	var current *Commit
	return r.stream(ctx, strings.NewReader(input.String()), func(out *bufio.Reader) error {
		for {
			line, err := readRecord(out, '\n')
			if line == nil || err != nil {
				return err
			}
			if hash, isHash := bytes.CutPrefix(line, []byte{0}); isHash {
				current = byHash[string(hash)]
			} else if current != nil {
				current.add(line)
			}
		}
	}, "log", "--stdin", "--no-walk=unsorted", "--first-parent", "-m", "--no-color", "--no-ext-diff", "--no-textconv",
		"-M",
		"--ignore-submodules=all", "--numstat", "--format=%x00%H")
}

// add counts a line of --numstat: lines added, lines removed, path. The first two are hyphens for a binary file.
func (c *Commit) add(line []byte) {
	fields := bytes.SplitN(line, []byte("\t"), 3)
	if len(fields) < 3 {
		return
	}
	c.Files++
	for i, sum := range []*int{&c.Added, &c.Removed} {
		if n, err := strconv.Atoi(string(fields[i])); err == nil {
			*sum += n
		}
	}
}
