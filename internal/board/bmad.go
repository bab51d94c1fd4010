package board

import (
	"bytes"
	"encoding/json"
	"errors"
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
	status, err := readBMADStatus(files.Read(f.status))
	place := strings.TrimPrefix(status.place, "{project-root}/")
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
	if err != nil {
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
	file, err := readBMADStatus(content)
	if err != nil {
		return nil, newFaultyFile(f.status, err)
	}
	for _, story := range file.stories {
		id, status := limit(story.id), story.status
		if id == "" || isNoStory(id) {
			continue
		}
		e := entry{id: id, stage: bmadStage(status), raw: []byte(status), text: path.Join(f.texts, id+".md")}
		e.record = func() *record {
			r := &record{path: f.status, status: f.status, version: []byte(status)}
			r.front, _ = json.Marshal(map[string]string{"status": status}) // texts can be encoded
			if path.Dir(e.text) == f.texts {
				own, err := contentOf(files, e.text)
				if err != nil {
					r.fault = newFaultyFile(e.text, err)
				}
				if own != nil {
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

// bmadFile is what a file with statuses says.
type bmadFile struct {
	place   string // where the stories' files are, "" for beside it
	stories []bmadStory
}

type bmadStory struct {
	id, status string
	line       int // that has its key
}

// readBMADStatus reads a file as the tool writes it by its lines, which take no more memory than they say, and another
// one, which must not be larger than front matter, as YAML. It is an error if there are no statuses.
func readBMADStatus(content []byte) (file bmadFile, err error) {
	if file, plain := readBMADLines(content); plain {
		return file, nil
	}
	if len(content) > maxFrontMatter {
		return file, errTooLong
	}
	document, err := parseMapping(content)
	if err != nil {
		return file, err
	}
	statuses := document.get(bmadKey)
	if statuses.Kind != yaml.MappingNode {
		return file, errors.New(bmadKey + " is no mapping")
	}
	file.place = text(document.get("story_location"))
	for pair := range slices.Chunk(statuses.Content, 2) {
		file.stories = append(file.stories, bmadStory{resolve(pair[0]).Value, text(resolve(pair[1])), pair[0].Line - 1})
	}
	return file, nil
}

// plainLine matches a line of a mapping that means the same without what is around it: blanks, a key, what separates
// them from the value, and that, each perhaps in quotes.
var plainLine = regexp.MustCompile(`^( *)("[\w. /{}-]+"|'[\w. /{}-]+'|\w[\w.-]*):` +
	`(?: +("[^"\\]*"|'[^']*'|\w[\w. :/+-]*))?(?: +#.*)?\r?$`)

// readBMADLines reads a file with one key on each line. What is not below the key of the statuses may be anything that
// is further in.
func readBMADLines(content []byte) (file bmadFile, plain bool) {
	section, indent, seen, number := "", "", map[string]bool{}, -1
	for text := range strings.Lines(string(content)) {
		number++
		line := strings.TrimSuffix(text, "\n")
		inside := strings.HasPrefix(line, " ")
		if trimmed := strings.TrimSpace(line); trimmed == "" || trimmed[0] == '#' ||
			inside && section != bmadKey || line == "---" && section == "" {
			continue
		}
		found := plainLine.FindStringSubmatch(line)
		if found == nil || strings.Contains(found[3]+" ", ": ") || slices.Contains(nullWords, found[3]) {
			return file, false
		}
		key, value := strings.Trim(found[2], `"'`), strings.TrimSpace(strings.Trim(found[3], `"'`))
		if !inside {
			if seen["\x00"+key] {
				return file, false
			}
			section, indent, seen["\x00"+key] = key, "", true
			if key == "story_location" {
				file.place = value
			}
			if key != bmadKey {
				continue
			}
			if found[3] != "" || file.stories != nil {
				return file, false
			}
			file.stories = []bmadStory{}
			continue
		}
		if indent == "" {
			indent = found[1]
		}
		if found[1] != indent || seen[key] || len(seen) == maxTasks {
			return file, false
		}
		seen[key] = true
		file.stories = append(file.stories, bmadStory{key, value, number})
	}
	return file, len(file.stories) > 0
}

var nullWords = []string{"null", "Null", "NULL", "~"}

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
