package board

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"switchyard/internal/domain"
)

// bmadRules are the rules of BMAD, which keeps the status of all stories of a sprint in one file, and each story's text
// beside it.
type bmadRules struct{ sprints []bmadSprint }

type bmadSprint struct {
	status string // the file with the statuses
	texts  string // the directory with the stories' files
	prefix string // of the ids, "" for none
}

var (
	// bmadTops are where the status files may be, besides what its configuration names.
	bmadTops   = []string{"_bmad-output", "docs"}
	bmadFiles  = sprintPatterns(bmadTops)
	bmadStages = []string{"backlog", "ready-for-dev", "in-progress", "review", "done"}
)

func sprintPatterns(tops []string) (patterns []string) {
	for _, top := range tops {
		for _, below := range []string{"", "*/", "*/*/", "*/*/*/"} {
			patterns = append(patterns, top+"/"+below+"sprint-status.yaml")
		}
	}
	return patterns
}

const projectRoot = "{project-root}/"

// findSprints returns the sprints of a directory. Its error is errTorn if one of their files cannot be read.
func findSprints(files *tree) (sprints []bmadSprint, err error) {
	tops := slices.Clone(bmadTops)
	config, _ := parseMapping(files.Read("_bmad/bmm/config.yaml"))
	for _, key := range []string{"implementation_artifacts", "output_folder"} {
		dir := path.Clean(strings.TrimPrefix(text(config.get(key)), projectRoot))
		if dir != "." && filepath.IsLocal(filepath.FromSlash(dir)) {
			tops = append(tops, dir)
		}
	}
	var found []string
	for _, pattern := range sprintPatterns(tops) {
		found = append(found, matches(files.root, pattern)...)
	}
	slices.Sort(found)
	found = slices.Compact(found)
	if slices.ContainsFunc(found, func(file string) bool { return !oldSprint.MatchString(file) }) {
		found = slices.DeleteFunc(found, oldSprint.MatchString)
	}
	for _, status := range found {
		s := bmadSprint{status: status, texts: path.Dir(status)}
		file, notRead := readBMADStatus(files.Read(status))
		if notRead != nil {
			err = errTorn
		}
		parts := strings.FieldsFunc(strings.TrimPrefix(file.place, projectRoot),
			func(r rune) bool { return r == '/' || r == '\\' })
		for i := range parts {
			dir := path.Join(parts[i:]...)
			if _, missing := files.open(dir); missing == nil && filepath.IsLocal(filepath.FromSlash(dir)) {
				s.texts = dir
				break
			}
		}
		if len(found) > 1 {
			s.prefix = scopeOf(path.Dir(status), tops)
		}
		sprints = append(sprints, s)
	}
	return sprints, err
}

// oldSprint matches the files of sprints that are over.
var oldSprint = regexp.MustCompile(`(?i)/(?:archives?|archived|old)/`)

// scopeOf returns the prefix of the story ids of a sprint whose file is in a subdirectory of one of tops.
func scopeOf(dir string, tops []string) string {
	scope := dir
	for _, top := range tops {
		if below, is := strings.CutPrefix(dir+"/", top+"/"); is && len(below) <= len(scope) {
			scope = strings.TrimSuffix(below, "/")
		}
	}
	if last := path.Base(scope); last == "implementation-artifacts" || last == "sprint-artifacts" {
		scope = path.Dir(scope)
	}
	if scope == "." || scope == "" {
		return ""
	}
	return scope + "/"
}

func hasSprints(files *tree) bool {
	sprints, _ := findSprints(files)
	return len(sprints) > 0
}

func openBMAD(files *tree) (*rules, error) {
	sprints, err := findSprints(files)
	if len(sprints) == 0 {
		return nil, fs.ErrNotExist
	}
	f := bmadRules{sprints}
	r := &rules{unit: f.unit, stories: f.stories, move: f.move, stages: plainStages(bmadStages...)}
	r.unseen = r.firstOfWork(domain.LayoutBMAD)
	for _, s := range sprints {
		r.config += s.status + "\x00" + s.texts + "\x00" + s.prefix + "\x00"
		for _, dir := range []string{path.Dir(s.status), s.texts} {
			if !slices.Contains(r.paths, dir) {
				r.paths = append(r.paths, dir)
			}
		}
	}
	return r, err
}

// unit returns the status file. What several sprints share belongs to the first.
func (f bmadRules) unit(file string) string {
	for _, s := range f.sprints {
		if file == s.status {
			return s.status
		}
	}
	for _, s := range f.sprints {
		if path.Dir(file) == s.texts && path.Ext(file) == ".md" {
			return s.status
		}
	}
	return ""
}

// sprint returns the sprint with that status file.
func (f bmadRules) sprint(status string) bmadSprint {
	return f.sprints[max(0, slices.IndexFunc(f.sprints, func(s bmadSprint) bool { return s.status == status }))]
}

func (f bmadRules) stories(unit string, files Files, _ []entry) (entries []entry, err error) {
	content, err := contentOf(files, unit)
	if content == nil {
		return nil, err
	}
	file, err := readBMADStatus(content)
	if err != nil {
		return nil, newFaultyFile(unit, err)
	}
	sprint := f.sprint(unit)
	for _, story := range file.stories {
		key, status := limit(story.id), story.status
		if key == "" || isNoStory(key) {
			continue
		}
		e := entry{
			id: limit(sprint.prefix + key), stage: bmadStage(status), raw: []byte(status),
			text: path.Join(sprint.texts, key+".md"),
		}
		blocked := ""
		if isBlocked(e.stage, bmadStages) {
			e.stage, blocked = "", "The status of the story is blocked."
		}
		e.record = func() *record {
			r := &record{path: unit, status: unit, version: []byte(status), blocked: blocked, name: words(key)}
			r.front, _ = json.Marshal(map[string]string{"status": status}) // strings always encode
			if path.Dir(e.text) == sprint.texts {
				own, err := contentOf(files, e.text)
				if err != nil {
					r.fault = newFaultyFile(e.text, err)
				}
				if own != nil {
					d := splitDocument(own)
					r.path, r.tasks, r.body = e.text, d.tasks(), string(d.body)
					r.name = cmp.Or(heading(d.body, 1), r.name)
					r.version = append(append(r.version, 0), own...)
				}
			}
			return r
		}
		entries = append(entries, e)
	}
	return entries, nil
}

const bmadKey = "development_status"

// isNoStory reports whether a key is that of an epic, such as epic-2 and epic-1a, or of its retrospective.
func isNoStory(key string) bool {
	epic, is := strings.CutPrefix(key, "epic-")
	return strings.HasSuffix(key, "-retrospective") || is && number(epic) != "" && !strings.Contains(epic, "-")
}

// keyLine matches a line with a key and its value, as what precedes the value, the value, and what follows it.
var keyLine = regexp.MustCompile(`^(\s*(?:"[^"]*"|'[^']*'|[^\s"'#:][^:]*?)\s*:[ \t]+)` +
	`("[^"]*"|'[^']*'|[^\s#"'][^#\r\n]*?)((?:[ \t]+#.*)?[ \t]*\r?\n?)$`)

// bmadStage returns the stage for a status; earlier versions of the tool had other words.
func bmadStage(status string) string {
	switch status = strings.TrimSpace(status); strings.ToLower(status) {
	case "drafted", "contexted":
		return "ready-for-dev"
	case "":
		return "backlog"
	}
	return limit(status)
}

// move changes a story's value on its line, and the file's last_updated.
func (f bmadRules) move(id string, r *record, content []byte, to stageRule) ([]byte, error) {
	id = strings.TrimPrefix(id, f.sprint(r.status).prefix)
	byHand := domain.Errorf(domain.Conflict, "the status is written in a way that can only be changed by hand")
	before, err := readBMADStatus(content)
	if err != nil {
		return nil, errChanged
	}
	at := slices.IndexFunc(before.stories, func(s bmadStory) bool { return s.id == id })
	lines := bytes.SplitAfter(content, []byte("\n"))
	if at < 0 || before.stories[at].line >= len(lines) {
		return nil, errChanged
	}
	set := func(line int, value string, quoted bool) bool {
		found := keyLine.FindSubmatch(lines[line])
		if found == nil {
			return false
		}
		if mark := found[2][:1]; quoted && bytes.ContainsAny(mark, `"'`) {
			value = string(mark) + value + string(mark)
		}
		lines[line] = slices.Concat(found[1], []byte(value), found[3])
		return true
	}
	if !set(before.stories[at].line, to.key, false) {
		return nil, byHand
	}
	updated := slices.IndexFunc(lines, func(line []byte) bool { return bytes.HasPrefix(line, []byte("last_updated:")) })
	if updated >= 0 {
		set(updated, time.Now().Format("01-02-2006 15:04"), true)
	}
	changed := bytes.Join(lines, nil)
	before.stories[at].status = to.key
	if after, err := readBMADStatus(changed); err != nil || !slices.Equal(after.stories, before.stories) {
		return nil, byHand
	}
	return changed, nil
}
