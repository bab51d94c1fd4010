package gitlog

import (
	"context"
	"path/filepath"
	"strings"
)

// maxCarried is how many of our commits in a row are followed.
const maxCarried = 20

// readCarried finds for each head the commits after which there are only commits of ours, which move a story and do
// nothing else.
func (w *Work) readCarried(ctx context.Context, r repository, f *facts) error {
	each := func(p *place, do func(commit, parent string) bool) {
		commit := p.head
		for range maxCarried {
			parents := f.graph.parents[commit]
			if !f.graph.ours[commit] || len(parents) != 1 || !do(commit, parents[0]) {
				return
			}
			commit = parents[0]
		}
	}
	others := map[string]bool{} // whether commits do anything else
	for _, p := range f.places {
		each(p, func(commit, _ string) bool { others[commit] = false; return true })
	}
	if len(others) == 0 {
		return nil
	}
	prefix, unit, input, current := "", w.log.Board.Past().Unit, "", ""
	if f.below != "." {
		prefix = filepath.ToSlash(f.below) + "/"
	}
	for commit := range others {
		input += commit + "\n"
	}
	err := r.Records(ctx, strings.NewReader(input), 0, func(record []byte) error {
		path, isOfBoard := strings.CutPrefix(string(record), prefix)
		if _, isCommit := others[string(record)]; isCommit {
			current = string(record)
		} else if !isOfBoard || unit(path) == "" {
			others[current] = true
		}
		return nil
	}, "diff-tree", "--stdin", "-r", "-z", "--name-only", "--no-renames")
	for _, p := range f.places {
		each(p, func(commit, parent string) bool {
			if !others[commit] {
				p.carries = append(p.carries, parent)
			}
			return !others[commit]
		})
	}
	return err
}
