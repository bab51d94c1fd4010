package gitlog

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/git"
)

// numbers are a diff's line counts and its paths.
type numbers struct {
	files, added, removed int
	paths                 paths
	names                 int // names of a renamed file still to come
}

// paths are paths, each followed by a zero byte: at most maxPathspec bytes, otherwise too many to list.
type paths string

// maxPathspec stays below Windows' limit for arguments.
const maxPathspec = 8 << 10

func (p *paths) add(path []byte) {
	if len(*p) <= maxPathspec {
		*p += paths(path) + "\x00"
	}
}

// list returns the paths for git, none for all files.
func (p paths) list() []string {
	if len(p) > maxPathspec {
		return nil
	}
	return strings.FieldsFunc(string(p), func(r rune) bool { return r == 0 })
}

// readTips reads who made the heads, and when, and the base's tree.
func (w *Work) readTips(ctx context.Context, r repository, f *facts) error {
	base := &place{head: f.head}
	heads := map[string][]*place{base.head: {base}}
	for _, p := range f.places {
		heads[p.head] = append(heads[p.head], p)
	}
	input := ""
	for head := range heads {
		input += head + "\n"
	}
	err := r.Records(ctx, strings.NewReader(input), 0, func(record []byte) error {
		fields := bytes.SplitN(record, []byte("\n"), 4)
		if len(fields) < 4 {
			return nil
		}
		seconds, _ := strconv.ParseInt(string(fields[2]), 10, 64)
		for _, p := range heads[string(fields[0])] {
			p.at, p.author = time.Unix(seconds, 0), limit(fields[3])
		}
		if string(fields[0]) == f.head {
			f.baseTree = string(fields[1])
		}
		return nil
	}, "log", "-z", "--stdin", "--no-walk=unsorted", "--format=%H%n%T%n%ct%n%an")
	f.baseAt = base.at
	return err
}

// readNumbers counts how heads differ from their merge bases.
func (w *Work) readNumbers(ctx context.Context, r repository, f *facts) error {
	next, keys, input := map[string]numbers{}, map[string]string{}, "" // keys by head
	for _, p := range f.places {
		key := p.head + " " + p.mergeBase
		if known, is := w.numbers[key]; is {
			next[key] = known
		} else if p.mergeBase != "" && p.mergeBase != p.head && keys[p.head] == "" {
			keys[p.head] = key
			input += key + "\n"
		}
	}
	var err error
	if input != "" {
		current := ""
		err = r.Records(ctx, strings.NewReader(input), 0, func(record []byte) error {
			n := next[current]
			if n.add(record) {
				next[current] = n
			} else {
				current = keys[string(record)]
			}
			return nil
		}, "diff-tree", "--stdin", "-r", "-z", "-M", "--numstat",
			"--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty")
	}
	for _, p := range f.places {
		p.numbers = next[p.head+" "+p.mergeBase]
	}
	w.numbers = next
	return err
}

// add counts a record of --numstat -z. It returns false for any other.
func (n *numbers) add(record []byte) bool {
	if n.names > 0 {
		n.paths.add(record)
		n.names--
		return true
	}
	var c domain.Commit
	path := addLines(&c, record)
	n.files, n.added, n.removed = n.files+c.Files, n.added+c.Added, n.removed+c.Removed
	if c.Files > 0 && len(path) == 0 {
		n.names = 2
	} else if c.Files > 0 {
		n.paths.add(path)
	}
	return c.Files > 0
}

// readMerges finds out what merging the places would give.
func (w *Work) readMerges(ctx context.Context, r repository, f *facts) error {
	next := map[string]git.Merged{}
	var ask []string
	for _, p := range f.places {
		key := f.head + " " + p.head
		if known, is := w.merges[key]; is {
			next[key] = known
		} else if p.mergeBase != "" && p.mergeBase != p.head && !slices.Contains(ask, p.head) {
			ask = append(ask, p.head)
		}
	}
	if len(ask) > 0 {
		merges, err := r.Merges(ctx, r.tree, f.head, ask)
		if err != nil {
			w.log.Log.Debug("gitlog: git cannot say what conflicts", "error", err)
		}
		for i, m := range merges[:min(len(merges), len(ask))] {
			next[f.head+" "+ask[i]] = m
		}
	}
	for _, p := range f.places {
		if m, is := next[f.head+" "+p.head]; is {
			p.merge = &m
		} else if p.mergeBase == p.head && p.head != "" {
			p.merge = &git.Merged{Conflicts: []string{}, Tree: f.baseTree}
		}
	}
	w.merges = next
	w.noteClashes(f)
	return nil
}

// noteClashes records since when places conflict: for those that did at the start, since their commit or the base's was
// made, the later one, as far as anybody knows.
func (w *Work) noteClashes(f *facts) {
	now, next := time.Now(), map[string]time.Time{}
	for _, p := range f.places {
		if p.merge == nil || len(p.merge.Conflicts) == 0 {
			continue
		}
		since, known := w.clashes[p.key()]
		if !known {
			since = now
			if made := slices.MaxFunc([]time.Time{p.at, f.baseAt}, time.Time.Compare); w.clashes == nil && made.Before(now) {
				since = made
			}
		}
		p.clashed, next[p.key()] = since, since
	}
	w.clashes = next
}
