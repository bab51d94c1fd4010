package board

import (
	"bytes"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"switchyard/internal/domain"
)

// backlogRules are those of Backlog.md, whose tasks have their status in the front matter.
type backlogRules struct {
	root  string // of its folders
	first string // the first of the configured statuses
}

// backlogFolders are where tasks are, in the order in which they count, with the key of their stage, "" for the status.
var backlogFolders = []struct{ name, key string }{
	{"tasks", ""}, {"drafts", "draft/"}, {"completed", "completed/"}, {"archive/tasks", "archived/"},
}

func openBacklog(files Files) (*rules, error) {
	f := backlogRules{root: "backlog"}
	config := files.Read("backlog/config.yml")
	if config == nil {
		if config = files.Read(".backlog/config.yml"); config != nil {
			f.root = ".backlog"
		}
	}
	if config == nil {
		config = files.Read("backlog.config.yml")
	}
	front, err := parseFrontMatter(document{head: config, opened: true, closed: true})
	if err != nil {
		return nil, domain.Errorf(domain.Invalid, "the configuration of Backlog.md cannot be read: %s", err)
	}
	if dir := text(front.get("backlog_directory")); dir != "" && filepath.IsLocal(dir) {
		f.root = path.Clean(filepath.ToSlash(dir))
	}
	statuses := []string{"To Do", "In Progress", "Done"}
	if list := front.get("statuses"); list.Kind == yaml.SequenceNode && len(list.Content) > 0 {
		statuses = nil
		for _, node := range list.Content {
			if status := text(resolve(node)); status != "" && len(statuses) < 100 {
				statuses = append(statuses, status)
			}
		}
	}
	const byTool = "drafts are promoted, and tasks completed and archived, by backlog itself"
	r := &rules{
		stages: []stageRule{{"draft/", "Draft", byTool}}, config: f.root + "\x00" + strings.Join(statuses, "\x00"),
		unit: f.unit, stories: f.stories, move: f.move,
		lock:    func(id string) string { return path.Join(f.root, ".locks", "task-"+strings.ToLower(path.Base(id))) },
		descend: func(dir string) bool { return dir == path.Join(f.root, "archive") || f.unit(dir+"/x.md") != "" },
	}
	for _, status := range statuses {
		r.stages = append(r.stages, stageRule{key: status})
		f.first = statuses[0]
	}
	r.stories = f.stories
	r.stages = append(r.stages, stageRule{"completed/", "Completed", byTool}, stageRule{"archived/", "Archived", byTool})
	for _, folder := range backlogFolders {
		r.paths = append(r.paths, path.Join(f.root, folder.name))
	}
	return r, nil
}

// unit returns a task's file, marked so that those of tasks come first.
func (f backlogRules) unit(file string) string {
	name := path.Base(file)
	if !strings.HasSuffix(name, ".md") || strings.HasPrefix(name, ".") || strings.EqualFold(name, "readme.md") {
		return ""
	}
	for i, folder := range backlogFolders {
		if path.Dir(file) == path.Join(f.root, folder.name) {
			return string(rune('1'+i)) + " " + file
		}
	}
	return ""
}

func (f backlogRules) stories(unit string, files Files) ([]entry, error) {
	place, file, _ := strings.Cut(unit, " ")
	content := files.Read(file)
	if content == nil {
		return nil, nil
	}
	d := splitDocument(content)
	front, err := parseFrontMatter(d)
	if err != nil {
		d.head = repairAssignees(d.head)
		front, err = parseFrontMatter(d)
	}
	if err != nil || len(bytes.TrimSpace(content)) == 0 {
		return nil, errTorn
	}
	id := limit(text(front.get("id")))
	if id == "" {
		return nil, nil
	}
	e := entry{id: id, stage: backlogFolders[place[0]-'1'].key}
	if e.stage == "" {
		if e.stage = limit(text(front.get("status"))); e.stage == "" {
			e.stage = f.first
		}
	}
	e.record = func() *record {
		return &record{
			name: text(front.get("title")), path: file, tasks: backlogCriteria(d), version: content, body: string(d.body),
			front: appendJSON(nil, &front.Node),
		}
	}
	return []entry{e}, nil
}

var (
	assignee = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^((?:assignee|reporter)\s*:|\s*-)([ \t]+)(@[^\s'"#]+)[ \t]*\r?$`)
	})
	assignees = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^assignee\s*:[ \t]*\[.*$`) })
	handle    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`([\[,]\s*)(@[^\s,\]'"]+)`) })
)

// repairAssignees puts names that begin with "@" in quotes, without which they are no YAML, as Backlog.md does.
func repairAssignees(head []byte) []byte {
	head = assignee().ReplaceAll(head, []byte("$1$2'$3'"))
	return assignees().ReplaceAllFunc(head, func(line []byte) []byte {
		return handle().ReplaceAll(line, []byte("$1'$2'"))
	})
}

var criteriaHeading = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^##\s+acceptance criteria(?:\s*\(optional\))?\s*$`)
})

// backlogCriteria returns the boxes between the marks around the acceptance criteria; without marks, those of the
// section.
func backlogCriteria(d document) (tasks []Task) {
	from, to := bytes.Index(d.body, []byte("<!-- AC:BEGIN -->")), bytes.Index(d.body, []byte("<!-- AC:END -->"))
	if from < 0 || to < from {
		from, to = -1, len(d.body)
		at := 0
		for line := range bytes.Lines(d.body) {
			if from < 0 && criteriaHeading().Match(bytes.TrimRight(line, "\r\n")) {
				from = at
			} else if from >= 0 && bytes.HasPrefix(line, []byte("## ")) {
				to = at
				break
			}
			at += len(line)
		}
	}
	if from < 0 {
		return nil
	}
	for _, task := range (folderRules{fences: true}).lines(d.body[from:to]) {
		task.Line += d.bodyLine + bytes.Count(d.body[:from], []byte("\n"))
		if task.at > 0 {
			task.at += d.bodyAt + from
		}
		tasks = append(tasks, task)
	}
	return tasks
}

var plainYAML = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\pL][\pL\pN ./_-]*[\pL\pN]$`) })

// move changes the two lines that "backlog task edit --status" changes.
func (f backlogRules) move(_ string, _ *record, content []byte, to stageRule) ([]byte, error) {
	d := splitDocument(content)
	if !d.closed {
		return nil, errChanged
	}
	quote := func(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
	status := to.key
	var value any
	err := yaml.Unmarshal([]byte(status), &value)
	if err != nil || value != any(status) || !plainYAML().MatchString(status) {
		status = quote(status)
	}
	lines := bytes.SplitAfter(d.head, []byte("\n"))
	set := func(key, value string) bool {
		for i, line := range lines {
			if !bytes.HasPrefix(line, []byte(key+":")) {
				continue
			}
			end := line[len(bytes.TrimRight(line, "\r\n")):]
			lines[i] = append([]byte(key+": "+value), end...)
			return true
		}
		return false
	}
	if !set("status", status) {
		return nil, domain.Errorf(domain.Conflict, "the front matter has no line with the status")
	}
	updated := quote(time.Now().UTC().Format("2006-01-02 15:04"))
	if !set("updated_date", updated) {
		lines = append(lines[:len(lines)-1], []byte("updated_date: "+updated+lineEnd(content)), lines[len(lines)-1])
	}
	head := bytes.Join(lines, nil)
	return bytes.Join([][]byte{content[:len(d.before)], head, content[len(d.before)+len(d.head):]}, nil), nil
}
