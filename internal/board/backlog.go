package board

import (
	"bytes"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

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

func openBacklog(files *tree) (*rules, error) {
	f := backlogRules{root: "backlog"}
	config := files.Read("backlog/config.yml")
	if config == nil {
		if config = files.Read(".backlog/config.yml"); config != nil {
			f.root = ".backlog"
		} else {
			config = files.Read("backlog.config.yml")
		}
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
	if len(statuses) > 0 {
		f.first = statuses[0]
	}
	const byTool = "drafts are promoted, and tasks completed and archived, by backlog itself"
	r := &rules{
		stages: slices.Concat([]stageRule{{"draft/", "Draft", byTool}}, plainStages(statuses...),
			[]stageRule{{"completed/", "Completed", byTool}, {"archived/", "Archived", byTool}}),
		config: f.root + "\x00" + strings.Join(statuses, "\x00"),
		unit:   f.unit, stories: f.stories, move: f.move,
		unique:  func(unit string) bool { return strings.HasPrefix(unit, "1 ") },
		lock:    func(id string) string { return path.Join(f.root, ".locks", "task-"+strings.ToLower(path.Base(id))) },
		descend: func(dir string) bool { return dir == path.Join(f.root, "archive") || f.unit(dir+"/x.md") != "" },
	}
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

func (f backlogRules) stories(unit string, files Files, _ []entry) ([]entry, error) {
	place, file, _ := strings.Cut(unit, " ")
	content, err := contentOf(files, file)
	if content == nil {
		return nil, err
	}
	d := splitDocument(content)
	front, err := parseFrontMatter(d)
	if err != nil {
		d.head = repairAssignees(d.head)
		front, err = parseFrontMatter(d)
	}
	switch {
	case err != nil:
		return nil, &faultyFile{file, limit(err.Error())}
	case bytes.HasPrefix(content, []byte("<<<<<<< ")):
		return nil, &faultyFile{file, "a merge has left its marks"}
	case len(bytes.TrimSpace(content)) == 0:
		return nil, errTorn
	}
	id := limit(text(front.get("id")))
	if id == "" {
		return nil, nil
	}
	e := entry{id: id, mark: limit(text(front.get("created_date"))), stage: backlogFolders[place[0]-'1'].key}
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
	assignee  = regexp.MustCompile(`(?m)^(\s*(?:assignee|reporter):[ \t]*)([^\s\['"-].*?)[ \t]*(\r?)$`)
	assignees = regexp.MustCompile(`(?m)^\s*(?:assignee|reporter):[ \t]*\[.*$`)
	handle    = regexp.MustCompile(`([\[,]\s*)(@[^,\]'"]*[^\s,\]'"])`)
)

// repairAssignees puts names that begin with "@" in quotes, without which they are no YAML, as Backlog.md does.
func repairAssignees(head []byte) []byte {
	head = assignee.ReplaceAllFunc(head, func(line []byte) []byte {
		found := assignee.FindSubmatch(line)
		return slices.Concat(found[1], []byte(strconv.Quote(string(found[2]))), found[3])
	})
	return assignees.ReplaceAllFunc(head, func(line []byte) []byte {
		return handle.ReplaceAll(line, []byte(`$1"$2"`))
	})
}

// partMark matches a line that begins or ends a part of a task.
var partMark = regexp.MustCompile(`^<!-- (SECTION:[A-Z][A-Z0-9_]*|COMMENTS?|AC|DOD):(BEGIN|END) -->[\t ]*$`)

// backlogCriteria returns the boxes between the marks around the acceptance criteria; without marks, those of the
// section. Like Backlog.md it returns none where a mark is missing, and takes no others for boxes than those that it
// writes.
func backlogCriteria(d document) []Task {
	var marked, section []Task
	marks, inMarks, inSection := 0, false, false
	until, open := "", map[string]bool{} // the end of another part, and parts that have none
	at, number := d.bodyAt, d.bodyLine
	for raw := range bytes.Lines(d.body) {
		start := at
		at, number = at+len(raw), number+1
		line := strings.TrimRight(string(raw), "\r\n")
		found := partMark.FindStringSubmatch(line)
		switch {
		case until != "":
			if strings.HasPrefix(line, until) {
				until = ""
			}
		case found != nil && found[1] == "AC":
			if inMarks = !inMarks; inMarks != (found[2] == "BEGIN") {
				return nil
			}
			marks++
		case found != nil && found[2] == "BEGIN" && !open[found[1]]:
			until = "<!-- " + found[1] + ":END -->"
			if !bytes.Contains(d.body[at-d.bodyAt:], []byte("\n"+until)) {
				until, open[found[1]] = "", true
			}
		case strings.HasPrefix(line, "## ") || strings.HasPrefix(line, "##\t"):
			inSection = strings.EqualFold(strings.Trim(line, "# \t"), "Acceptance Criteria")
		case (inMarks || inSection) && len(line) > len("- [ ] ") &&
			(strings.HasPrefix(line, "- [ ] ") || strings.HasPrefix(line, "- [x] ")):
			task := Task{domain.Task{Line: number, Text: limit(strings.TrimSpace(line[6:])), Done: line[3] == 'x'}, start + 3}
			if inMarks {
				marked = append(marked, task)
			} else {
				section = append(section, task)
			}
		}
	}
	switch {
	case inMarks:
		return nil
	case marks > 0:
		return marked
	}
	return section
}

// plainText matches texts that need no quotes in YAML unless they mean something else than a text.
var plainText = regexp.MustCompile(`^[^\s?:,\[\]{}#&*!|=>'"%@` + "`" + `-][^:,\[\]{}]*$`)

// backlogText returns text in YAML as Backlog.md writes it.
func backlogText(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return r > 0xffff || !unicode.IsPrint(r) && r != '\u00a0' }) {
		return escapedText(text)
	}
	if plainText.MatchString(text) && !strings.Contains(text, " #") && meansItself(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}

func escapedText(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\t':
			b.WriteString(`\t`)
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08X`, r)
		case !unicode.IsPrint(r) && r != '\u00a0':
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	return `"` + b.String() + `"`
}

// move changes the two lines that "backlog task edit --status" changes.
func (f backlogRules) move(_ string, _ *record, content []byte, to stageRule) ([]byte, error) {
	d := splitDocument(content)
	if !d.closed {
		return nil, errChanged
	}
	lines := bytes.SplitAfter(d.head, []byte("\n"))
	find := func(key string) int {
		return slices.IndexFunc(lines, func(line []byte) bool { return bytes.HasPrefix(line, []byte(key+":")) })
	}
	set := func(at int, key, value string) {
		end := lines[at][len(bytes.TrimRight(lines[at], "\r\n")):]
		lines[at] = append([]byte(key+": "+value), end...)
	}
	at := find("status")
	if at < 0 {
		return nil, domain.Errorf(domain.Conflict, "the front matter has no line with the status")
	}
	set(at, "status", backlogText(to.key))
	updated := "'" + time.Now().UTC().Format("2006-01-02 15:04") + "'"
	if at = find("updated_date"); at >= 0 {
		set(at, "updated_date", updated)
	} else {
		if at = find("created_date") + 1; at == 0 {
			at = len(lines) - 1
		}
		lines = slices.Insert(lines, at, []byte("updated_date: "+updated+lineEnd(content)))
	}
	head := bytes.Join(lines, nil)
	front, err := parseFrontMatter(document{head: repairAssignees(head), opened: true, closed: true})
	if err != nil || text(front.get("status")) != to.key {
		return nil, domain.Errorf(domain.Conflict, "the status is written in a way that can only be changed by hand")
	}
	return slices.Concat(content[:len(d.before)], head, content[len(d.before)+len(d.head):]), nil
}
