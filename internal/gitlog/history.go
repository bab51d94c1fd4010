package gitlog

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"switchyard/internal/domain"
)

const (
	// maxCommits is how many commits one pass reads, from the newest.
	maxCommits = 200_000
	// maxText is the limit of names and subjects, in bytes.
	maxText = 1000
)

// recordFormat makes git print a commit as hash, author, time and subject, one per line, and then the whole message.
const recordFormat = "--format=%H%n%an%n%ct%n%s%n%B"

// history reads the commits of a range, newest first, and returns for each id the commits whose messages contain it as
// a word, at most perStory each.
func (r repository) history(ctx context.Context, ids *words, revisions ...string) (
	found map[string][]*domain.Commit, err error,
) {
	found = map[string][]*domain.Commit{}
	args := append([]string{
		"log", "-z", "--max-count=" + strconv.Itoa(maxCommits), recordFormat,
	}, revisions...)
	err = r.Records(ctx, nil, 0, func(record []byte) error {
		commit, message := parseRecord(record)
		if commit == nil {
			return nil
		}
		for _, id := range ids.in(message) {
			if list := found[id]; len(list) < perStory {
				found[id] = append(list, commit)
			}
		}
		return nil
	}, append(args, "--")...)
	return found, err
}

// parseRecord parses a commit printed as recordFormat. It returns nil for a malformed one. The message shares the
// memory of the record; the commit does not.
func parseRecord(record []byte) (commit *domain.Commit, message []byte) {
	fields := bytes.SplitN(record, []byte("\n"), 5)
	if len(fields) == 4 { // its subject is cut off
		fields = append(fields, fields[3])
	}
	if len(fields) < 5 {
		return nil, nil
	}
	seconds, err := strconv.ParseInt(string(fields[2]), 10, 64)
	if err != nil {
		return nil, nil
	}
	return &domain.Commit{
		Hash: string(fields[0]), Author: limit(fields[1]), AtMS: max(0, seconds*1000), Subject: limit(fields[3]),
	}, fields[4]
}

// limit returns valid UTF-8 of at most maxText bytes.
func limit(text []byte) string {
	return strings.ToValidUTF8(domain.CutBytes(string(text), maxText), "\ufffd")
}

// count fills in the line counts of the commits found, for a merge against its first parent. They stay zero if git
// fails. Known ones are reused: git takes a hundred times as long to count.
func (r repository) count(ctx context.Context, known, found map[string][]*domain.Commit) error {
	counted, commits := map[string]*domain.Commit{}, map[string]*domain.Commit{}
	for _, list := range known {
		for _, commit := range list {
			counted[commit.Hash] = commit
		}
	}
	for _, list := range found {
		for _, commit := range list {
			if old := counted[commit.Hash]; old != nil && old.Files > 0 {
				*commit = *old
			} else {
				commits[commit.Hash] = commit
			}
		}
	}
	if len(commits) == 0 {
		return nil
	}
	input := strings.Join(slices.Collect(maps.Keys(commits)), "\n") + "\n"
	var current *domain.Commit
	return r.Records(ctx, strings.NewReader(input), '\n', func(line []byte) error {
		if hash, isHash := bytes.CutPrefix(line, []byte{0}); isHash {
			current = commits[string(hash)]
		} else if current != nil {
			addLines(current, line)
		}
		return nil
	}, "log", "--stdin", "--no-walk=unsorted", "-M", "--numstat", "--format=%x00%H")
}

// addLines counts a line of --numstat: lines added, lines removed, path. The first two are hyphens for a binary file.
func addLines(c *domain.Commit, line []byte) (path []byte) {
	fields := bytes.SplitN(line, []byte("\t"), 3)
	if len(fields) < 3 {
		return nil
	}
	c.Files++
	for i, sum := range []*int{&c.Added, &c.Removed} {
		if n, err := strconv.Atoi(string(fields[i])); err == nil {
			*sum += n
		}
	}
	return fields[2]
}
