package board

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"switchyard/internal/domain"
)

// backlogRules are the rules of Backlog.md, whose tasks have their status in the front matter.
type backlogRules struct {
	root     string // the directory with its folders
	statuses []string
	status   string // of a task without one
	prefix   string // of the ids
}

const completedKey = "completed/"

// backlogFolders are the folders with tasks, in order of precedence; key is their stage, "" for the task's status.
var backlogFolders = []struct{ name, key string }{
	{"tasks", ""}, {"drafts", "draft/"}, {"completed", completedKey}, {"archive/tasks", "archived/"},
}

// unit returns a task's file, marked so that tasks sort first.
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
	blocked := ""
	if e.stage == "" {
		e.stage = cmp.Or(limit(text(front.get("status"))), f.status)
		if isBlocked(e.stage, f.statuses) {
			e.stage, blocked = "", "The status of the task is blocked."
		}
	}
	e.record = func() *record {
		r := &record{
			name: text(front.get("title")), path: file, tasks: backlogCriteria(d), version: content, body: string(d.body),
			front: appendJSON(nil, &front.Node), blocked: blocked,
		}
		for _, node := range front.get("dependencies").Content {
			if other := limit(text(resolve(node))); other != "" && len(r.depends) < maxDepends {
				r.depends = append(r.depends, f.whole(other))
			}
		}
		return r
	}
	return []entry{e}, nil
}

var (
	assignee  = regexp.MustCompile(`(?m)^(\s*(?:assignee|reporter):[ \t]*)([^\s\['"-].*?)[ \t]*(\r?)$`)
	assignees = regexp.MustCompile(`(?m)^\s*(?:assignee|reporter):[ \t]*\[.*$`)
	handle    = regexp.MustCompile(`([\[,]\s*)(@[^,\]'"]*[^\s,\]'"])`)
)

// repairAssignees quotes names that begin with "@", which would be invalid YAML, as Backlog.md does.
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
// section. Like Backlog.md, it returns none if a mark is missing, and recognizes only boxes as it writes them itself.
func backlogCriteria(d document) []Task {
	var marked, section []Task
	marks, inMarks, inSection := 0, false, false
	until, open := "", map[string]bool{} // the end of the current part; parts without an end
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
		case (inMarks || inSection) && isBacklogBox(line):
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

// isBacklogBox reports whether a line is a box with a text.
func isBacklogBox(line string) bool {
	box := line[:min(len(line), len("- [ ] "))]
	return (box == "- [ ] " || box == "- [x] ") && len(line) > len(box)
}

// plainText matches text that needs no quotes in YAML unless it would mean something other than text.
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
