package gitlog

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"switchyard/internal/board"
	"switchyard/internal/domain"
	"switchyard/internal/git"
)

// maxGraph is how many commits are read that the base lacks, and how many that only the base has.
const maxGraph = 50_000

// graph is what branches have beyond the base, and the base beyond them.
type graph struct {
	base    string
	parents map[string][]string // of commits that the base lacks
	named   map[string][]string // the stories that these name
	ours    map[string]bool     // those made for the board
	commits map[string][]*domain.Commit
	own     map[string][]string // the parents of the base's commits that not all branches have
	cut     bool
}

// relation is how a commit and the base are related.
type relation struct {
	mergeBase     string // "" for none
	ahead, behind int
}

// graph reads the commits that heads have and the base lacks, and which stories their messages name.
func (r repository) graph(ctx context.Context, base string, heads []string, names *namer) (*graph, error) {
	g := &graph{
		base: base, parents: map[string][]string{}, named: map[string][]string{}, own: map[string][]string{},
		commits: map[string][]*domain.Commit{}, ours: map[string]bool{},
	}
	input := strings.Join(heads, "\n") + "\n^" + base + "\n"
	err := r.Records(ctx, strings.NewReader(input), 0, func(record []byte) error {
		first, rest, _ := bytes.Cut(record, []byte("\n"))
		about, email, _ := strings.Cut(string(first), "\t")
		hash, parents, _ := strings.Cut(about, " ")
		g.ours[hash] = email == git.Email
		g.parents[hash] = strings.Fields(parents)
		commit, message := parseRecord(slices.Concat([]byte(hash+"\n"), rest))
		if commit == nil {
			return nil
		}
		for _, id := range names.inMessage(message) {
			g.named[hash] = append(g.named[hash], id)
			if list := g.commits[id]; len(list) < perStory {
				g.commits[id] = append(list, commit)
			}
		}
		return nil
	}, "log", "-z", "--stdin", "--max-count="+strconv.Itoa(maxGraph), "--format=%H %P%x09%ce%n%an%n%ct%n%s%n%B")
	g.cut = len(g.parents) >= maxGraph
	return g, err
}

// walk returns the commits that a head has and the base lacks, and the base's commits that they build on.
func (g *graph) walk(head string) (commits []string, ends map[string]bool) {
	ends = map[string]bool{}
	seen := map[string]bool{head: true}
	for next := []string{head}; len(next) > 0; {
		commit := next[len(next)-1]
		next = next[:len(next)-1]
		parents, lacks := g.parents[commit]
		if !lacks {
			ends[commit] = true
			continue
		}
		commits = append(commits, commit)
		for _, parent := range parents {
			if !seen[parent] {
				seen[parent] = true
				next = append(next, parent)
			}
		}
	}
	return commits, ends
}

// relate finds out how heads are related to the base.
func (r repository) relate(ctx context.Context, g *graph, heads []string) (map[string]relation, error) {
	found := map[string]relation{}
	bases := map[string]bool{}
	for _, head := range heads {
		commits, ends := g.walk(head)
		switch rel := (relation{ahead: len(commits)}); {
		case g.cut || len(ends) > 1:
			exact, err := r.relateOne(ctx, g.base, head)
			if err != nil {
				return nil, err
			}
			found[head] = exact
		case len(ends) == 0:
			found[head] = rel
		default:
			rel.mergeBase, rel.behind = slices.Collect(maps.Keys(ends))[0], -1
			found[head] = rel
		}
		if base := found[head].mergeBase; base != "" && base != g.base {
			bases[base] = true
		}
	}
	if err := r.readOwn(ctx, g, slices.Sorted(maps.Keys(bases))); err != nil {
		return nil, err
	}
	behind := map[string]int{}
	for head, rel := range found {
		switch {
		case rel.mergeBase == "" && rel.ahead > 0 && !g.cut:
			exact, err := r.relateOne(ctx, g.base, head)
			if err != nil {
				return nil, err
			}
			rel = exact
		case rel.behind < 0:
			if _, known := behind[rel.mergeBase]; !known {
				behind[rel.mergeBase] = len(g.own) - len(g.since(rel.mergeBase))
			}
			rel.behind = behind[rel.mergeBase]
		}
		found[head] = rel
	}
	return found, nil
}

// readOwn reads the base's commits that not all merge bases have.
func (r repository) readOwn(ctx context.Context, g *graph, bases []string) error {
	if len(bases) == 0 {
		return nil
	}
	args := []string{"rev-list", "--parents", "--max-count=" + strconv.Itoa(maxGraph), g.base}
	oldest, err := r.Output(ctx, append([]string{"merge-base", "--octopus"}, bases...)...)
	if err == nil {
		args = append(args, "^"+oldest)
	} else if git.Exit(err) != 1 {
		return err
	}
	return r.Records(ctx, nil, '\n', func(line []byte) error {
		fields := strings.Fields(string(line))
		g.own[fields[0]] = fields[1:]
		return nil
	}, args...)
}

// since returns the commits in own that a commit of the base contains.
func (g *graph) since(commit string) map[string]bool {
	has := map[string]bool{}
	for next := []string{commit}; len(next) > 0; {
		commit := next[len(next)-1]
		next = next[:len(next)-1]
		if parents, is := g.own[commit]; is && !has[commit] {
			has[commit] = true
			next = append(next, parents...)
		}
	}
	return has
}

func (r repository) relateOne(ctx context.Context, base, head string) (rel relation, err error) {
	rel.mergeBase, err = r.Output(ctx, "merge-base", base, head)
	if err != nil && git.Exit(err) != 1 {
		return rel, err
	}
	counts, err := r.Output(ctx, "rev-list", "--left-right", "--count", base+"..."+head)
	if fields := strings.Fields(counts); len(fields) == 2 {
		rel.behind, _ = strconv.Atoi(fields[0])
		rel.ahead, _ = strconv.Atoi(fields[1])
	}
	return rel, err
}

// stages are those of stories in commits, where they differ from the base's.
type stages struct {
	base  map[string]string
	other map[string]map[string]string // by commit; "" for a story that does not exist there
	files map[string][]changedFile     // likewise
}

func (s *stages) of(commit, story string) string {
	if stage, differs := s.other[commit][story]; differs {
		return stage
	}
	return s.base[story]
}

// differ reports whether a story, or one of several with its id, is in different stages in two commits.
func (s *stages) differ(a, b, story string) bool {
	for _, commit := range []string{a, b} {
		for key := range s.other[commit] {
			if id, _, _ := strings.Cut(key, "\x00"); id == story && s.of(a, key) != s.of(b, key) {
				return true
			}
		}
	}
	return false
}

// file returns the blob of a file in a commit if it differs from the base's, "" otherwise.
func (s *stages) file(commit, path string) string {
	for _, f := range s.files[commit] {
		if f.path == path {
			return f.after
		}
	}
	return ""
}

// stages reads the stories' stages in the base and other commits.
func (r repository) stages(ctx context.Context, base string, commits []string, known board.Past) (*stages, error) {
	files, err := r.files(ctx, base, known.Paths)
	if err != nil {
		return nil, err
	}
	changed, err := r.changedFiles(ctx, base, commits, known.Paths)
	if err != nil {
		return nil, err
	}
	s := &stages{other: map[string]map[string]string{}, files: changed}
	err = r.Blobs(ctx, func(read func(id string) []byte) {
		t := newTree(known, files, read)
		s.base = t.all()
		for commit, files := range changed {
			if ctx.Err() != nil {
				return
			}
			before, after := t.between(files)
			differs := map[string]string{}
			for story := range before {
				differs[story] = after[story]
			}
			maps.Copy(differs, after)
			s.other[commit] = differs
		}
	})
	return s, err
}

// changedFiles returns how the board's files in commits differ from the base's.
func (r repository) changedFiles(
	ctx context.Context, base string, commits, paths []string,
) (changed map[string][]changedFile, err error) {
	changed = map[string][]changedFile{}
	if len(commits) == 0 {
		return changed, nil
	}
	var input strings.Builder
	for _, commit := range commits {
		input.WriteString(commit + " " + base + "\n")
	}
	commit, about, count := "", []string(nil), 0
	err = r.Records(ctx, strings.NewReader(input.String()), 0, func(record []byte) error {
		switch text := string(record); {
		case strings.HasPrefix(text, ":"): // mode mode id id status
			about = strings.Fields(text)
		case len(about) >= 5:
			changed[commit] = append(changed[commit], newChangedFile(text, about))
			about = nil
			if count += weight(text); count > maxChanges {
				return git.ErrEnough
			}
		default:
			commit = text
		}
		return nil
	}, append([]string{
		"diff-tree", "--stdin", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--relative", "--",
	}, paths...)...)
	return changed, err
}
