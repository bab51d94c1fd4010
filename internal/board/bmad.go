package board

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"switchyard/internal/domain"
)

// bmadRules are those of BMAD, which keeps the status of all stories in one file and the text of each beside it.
type bmadRules struct {
	status string // the file with the statuses
	texts  string // the directory with the stories' files
}

// bmadFiles are where the file with the statuses may be.
var bmadFiles = func() (patterns []string) {
	for _, top := range []string{"_bmad-output", "docs"} {
		for _, below := range []string{"", "*/", "*/*/", "*/*/*/"} {
			patterns = append(patterns, top+"/"+below+"sprint-status.yaml")
		}
	}
	return patterns
}()

func openBMAD(files *tree) (*rules, error) {
	f := bmadRules{}
	for _, pattern := range bmadFiles {
		if f.status = firstMatch(files.root, pattern); f.status != "" {
			break
		}
	}
	if f.status == "" {
		return nil, fs.ErrNotExist
	}
	f.texts = path.Dir(f.status)
	document, err := parseMapping(files.Read(f.status))
	place := strings.TrimPrefix(text(document.get("story_location")), "{project-root}/")
	if err == nil && place != "" && filepath.IsLocal(filepath.FromSlash(place)) {
		f.texts = path.Clean(filepath.ToSlash(place))
	}
	r := &rules{
		paths: []string{path.Dir(f.status)}, config: f.status + "\x00" + f.texts, unit: f.unit, stories: f.stories,
		move: f.move, stages: plainStages("backlog", "ready-for-dev", "in-progress", "review", "done"),
	}
	if _, err := files.open(f.texts); err == nil && f.texts != r.paths[0] {
		r.paths = append(r.paths, f.texts)
	}
	if document.get(bmadKey).Kind != yaml.MappingNode {
		err = errTorn
	}
	return r, err
}

// unit returns the same one for all files: the stories are in one of them.
func (f bmadRules) unit(file string) string {
	if file == f.status || path.Dir(file) == f.texts && path.Ext(file) == ".md" {
		return f.status
	}
	return ""
}

func (f bmadRules) stories(_ string, files Files, _ []entry) (entries []entry, err error) {
	content, err := contentOf(files, f.status)
	if content == nil {
		return nil, err
	}
	statuses, err := f.statuses(content)
	if err != nil {
		return nil, errTorn
	}
	for pair := range slices.Chunk(statuses.Content, 2) {
		id, status := limit(resolve(pair[0]).Value), text(resolve(pair[1]))
		if id == "" || isNoStory(id) {
			continue
		}
		e := entry{id: id, stage: bmadStage(status), raw: []byte(status), text: path.Join(f.texts, id+".md")}
		e.record = func() *record {
			r := &record{path: f.status, status: f.status, version: []byte(status)}
			r.front, _ = json.Marshal(map[string]string{"status": status}) // texts can be encoded
			if path.Dir(e.text) == f.texts {
				if own := files.Read(e.text); own != nil {
					d := splitDocument(own)
					r.path, r.name, r.tasks, r.body = e.text, heading(d.body, 1), d.tasks(), string(d.body)
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

// isNoStory reports whether a key is of an epic, or of looking back at one.
func isNoStory(key string) bool {
	epic, is := strings.CutPrefix(key, "epic-")
	return strings.HasSuffix(key, "-retrospective") || is && epic != "" && number(epic) == epic
}

// statuses returns the mapping with the status of each key. It is an error if there is none: the file is half written.
func (f bmadRules) statuses(content []byte) (*yaml.Node, error) {
	document, err := parseMapping(content)
	if err != nil {
		return nil, err
	}
	if statuses := document.get(bmadKey); statuses.Kind == yaml.MappingNode {
		return statuses, nil
	}
	return nil, errTorn
}

// keyLine matches a line with a key and its value: before the value, the value, after it.
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

// move changes a story's value on its line, and when the file says that it was changed.
func (f bmadRules) move(id string, _ *record, content []byte, to stageRule) ([]byte, error) {
	byHand := domain.Errorf(domain.Conflict, "the status is written in a way that can only be changed by hand")
	statuses, err := f.statuses(content)
	if err != nil {
		return nil, errChanged
	}
	at := slices.IndexFunc(statuses.Content, func(n *yaml.Node) bool { return resolve(n).Value == id })
	lines := bytes.SplitAfter(content, []byte("\n"))
	if at < 0 || at%2 != 0 || statuses.Content[at].Line > len(lines) {
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
	if !set(statuses.Content[at].Line-1, to.key, false) {
		return nil, byHand
	}
	updated := slices.IndexFunc(lines, func(line []byte) bool { return bytes.HasPrefix(line, []byte("last_updated:")) })
	if updated >= 0 {
		set(updated, time.Now().Format("01-02-2006 15:04"), true)
	}
	changed := bytes.Join(lines, nil)
	after, err := f.statuses(changed)
	if err != nil || len(after.Content) != len(statuses.Content) {
		return nil, byHand
	}
	for i, node := range after.Content {
		if want := statuses.Content[i]; i == at+1 && text(resolve(node)) != to.key ||
			i != at+1 && !sameValue(node, want) {
			return nil, byHand
		}
	}
	return changed, nil
}
