package board

import (
	"bytes"
	"path"
	"regexp"
	"strings"

	"switchyard/internal/domain"
)

// folderRules are what distinguishes the layouts in which a story is a folder with a checklist.
type folderRules struct {
	root    string // of the folders
	archive string // the folder in root for those that are done with, "" for none
	is      func(name string) bool
	needs   []string // one of these files makes it a story, nil for none
	text    string   // the file with its title and body
	plan    string   // the file that makes it planned, "" for boxes
	prefix  string   // of titles
	fences  bool     // boxes in code fences count
	stars   bool     // a star behind a box makes it optional, and a hyphen in it is work
	tool    string
}

var (
	openSpec = folderRules{
		root: "openspec/changes", archive: "archive", text: "proposal.md", prefix: "Change:", fences: true,
		is: func(string) bool { return true }, tool: "openspec",
	}
	specKit = folderRules{
		root: "specs", text: "spec.md", plan: "plan.md", prefix: "Feature Specification:", needs: []string{"spec.md"},
		is: func(name string) bool {
			return len(number(name)) >= 3 && strings.HasPrefix(name[len(number(name)):], "-")
		},
	}
	kiro = folderRules{
		root: ".kiro/specs", text: "requirements.md", plan: "design.md", stars: true,
		needs: []string{"requirements.md", "design.md", "tasks.md"}, is: func(string) bool { return true },
	}
)

// folderStages are derived from the boxes.
var folderStages = []stageRule{
	{key: "draft", label: "Draft"},
	{key: "planned", label: "Planned"},
	{key: "doing", label: "Doing"},
	{key: "done", label: "Done"},
}

var archiveDate = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}-(.+)`)

func (f folderRules) open(*tree) (*rules, error) {
	r := &rules{
		paths: []string{f.root}, stages: folderStages, unit: f.unit, stories: f.stories,
		descend: func(dir string) bool {
			return f.archive != "" && dir == path.Join(f.root, f.archive) || f.unit(dir+"/.") != ""
		},
		refusal: "the stage of a story follows from the boxes in its tasks.md; tick these",
	}
	if f.archive != "" {
		r.stages = append(r.stages[:len(r.stages):len(r.stages)], stageRule{
			key: "archived", label: "Archived", refusal: f.tool + " archives what is done: run " + f.tool + " archive",
		})
	}
	return r, nil
}

// unit returns the folder, marked so that those in the archive come last.
func (f folderRules) unit(file string) string {
	dir := path.Dir(file)
	if strings.HasSuffix(file, "/.") {
		dir = strings.TrimSuffix(file, "/.")
	}
	above, name := path.Dir(dir), path.Base(dir)
	switch {
	case name == f.archive && above == f.root || !f.is(name):
		return ""
	case above == f.root:
		return "1 " + dir
	case f.archive != "" && above == path.Join(f.root, f.archive):
		return "2 " + dir
	}
	return ""
}

func (f folderRules) stories(unit string, files Files, _ []entry) ([]entry, error) {
	place, dir, _ := strings.Cut(unit, " ")
	exists := f.needs == nil && files.Has(dir+"/.")
	for _, name := range append(f.needs, f.text, "tasks.md") {
		exists = exists || files.Has(path.Join(dir, name)) && (f.needs == nil || name != "tasks.md" || f.stars)
	}
	if !exists {
		return nil, nil
	}
	list := path.Join(dir, "tasks.md")
	content, err := contentOf(files, list)
	if err != nil {
		return nil, err
	}
	if content != nil && len(bytes.TrimSpace(content)) == 0 {
		err = errTorn
	}
	tasks, doing := f.boxes(content)
	e := entry{id: path.Base(dir), stage: f.stage(dir, files, content != nil, tasks, doing)}
	if place == "2" {
		e.stage = "archived"
		if dated := archiveDate.FindStringSubmatch(e.id); dated != nil {
			e.id = dated[1]
		}
	}
	e.record = func() *record {
		text, err := contentOf(files, path.Join(dir, f.text))
		r := &record{path: list, tasks: tasks, body: string(text), name: f.title(text)}
		r.version = append(append(append(r.version, text...), 0), content...)
		if err != nil {
			r.fault = newFaultyFile(dir, err)
		}
		if content == nil && text != nil {
			r.path = path.Join(dir, f.text)
		}
		return r
	}
	return []entry{e}, err
}

func (f folderRules) stage(dir string, files Files, listed bool, tasks []Task, doing bool) string {
	count := countTasks(tasks)
	switch {
	case count.Total > 0 && count.Done == count.Total:
		return "done"
	case count.Done > 0 || doing:
		return "doing"
	case f.plan == "" && count.Total > 0, f.plan != "" && (listed || files.Has(path.Join(dir, f.plan))):
		return "planned"
	}
	return "draft"
}

func (f folderRules) title(text []byte) string {
	title := heading(splitDocument(text).body, 1)
	if f.prefix != "" && len(title) >= len(f.prefix) && strings.EqualFold(title[:len(f.prefix)], f.prefix) {
		title = strings.TrimSpace(title[len(f.prefix):])
	}
	if f.stars && strings.EqualFold(title, "Requirements Document") {
		return ""
	}
	return title
}

// boxLine matches a list item with a box as openspec does, except for what may follow. The spaces are JavaScript's, and
// the mark is one of its characters.
var boxLine = regexp.MustCompile(strings.NewReplacer(
	"SPACE", `[\s\v\p{Z}\x{feff}]`, "MARK", `[^\]\s\v\p{Z}\x{feff}\x{10000}-\x{10ffff}]`,
).Replace(`^SPACE*(?:[-*+]|[0-9]{1,9}[.)])SPACE*\[(SPACE*)(MARK?)(SPACE*)\](.*)`))

// boxes returns the boxes of a checklist, and whether one of them says that it is being worked on.
func (f folderRules) boxes(content []byte) (tasks []Task, doing bool) {
	at, line := 0, 0
	var fence codeFence
	for raw := range bytes.Lines(content) {
		start := at
		at, line = at+len(raw), line+1
		text := strings.TrimRight(string(raw), "\r\n")
		if !f.fences && fence.has(strings.TrimSpace(text)) {
			continue
		}
		box := boxLine.FindStringSubmatchIndex(text)
		if box == nil {
			continue
		}
		mark, rest := text[box[4]:box[5]], text[box[8]:]
		isLink := strings.HasPrefix(rest, "(") || strings.HasPrefix(rest, "[")
		if isLink && (mark != "" || box[2] == box[7]) {
			continue
		}
		task := Task{Task: domain.Task{Line: line, Done: strings.EqualFold(mark, "x")}}
		switch {
		case len(mark) == 1:
			task.at = start + box[4]
		case mark == "" && box[3] > box[2] && text[box[2]] == ' ':
			task.at = start + box[2]
		}
		if f.stars {
			rest, task.Optional = strings.CutPrefix(rest, "*")
			doing = doing || mark == "-" && !task.Optional
		}
		task.Text = limit(strings.TrimSpace(rest))
		tasks = append(tasks, task)
	}
	return tasks, doing
}
