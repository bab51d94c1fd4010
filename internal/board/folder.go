package board

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"switchyard/internal/domain"
)

// folderRules are what distinguishes the layouts in which a story is a folder with a checklist.
type folderRules struct {
	roots   []string // the directories of the folders
	archive string   // the folder in the first root for finished stories, "" for none
	extra   string   // one more folder that is a story, "" for none
	is      func(name string) bool
	needs   []string // a story has one of these files; nil for no such condition
	texts   []string // the files with its title and body: the first that has one counts
	plan    string   // the file that makes it planned, "" for boxes
	prefix  string   // of titles
	schemas *openSpecSchemas
	stars   bool // a star after a box makes it optional, and a hyphen in it means in progress
	tool    string
}

var (
	openSpec = folderRules{
		roots: []string{"openspec/changes"}, archive: "archive", texts: []string{"proposal.md"}, prefix: "Change:",
		is: func(string) bool { return true }, tool: "openspec",
	}
	specKit = folderRules{
		roots: []string{"specs", ".specify/specs"}, texts: []string{"spec.md"}, plan: "plan.md",
		prefix: "Feature Specification:", needs: []string{"spec.md"},
		is: func(name string) bool {
			return len(number(name)) >= 3 && strings.HasPrefix(name[len(number(name)):], "-")
		},
	}
	kiro = folderRules{
		roots: []string{".kiro/specs"}, texts: []string{"requirements.md", "bugfix.md"}, plan: "design.md", stars: true,
		needs: []string{"requirements.md", "bugfix.md", "design.md", "tasks.md"}, is: func(string) bool { return true },
	}
)

// folderStages follow from the boxes.
var folderStages = []stageRule{
	{key: "draft", label: "Draft"},
	{key: "planned", label: "Planned"},
	{key: "doing", label: "Doing"},
	{key: "done", label: "Done"},
}

var archiveDate = regexp.MustCompile(`^([0-9]{4}-[0-9]{2}-[0-9]{2})-(.+)`)

// latestFirst makes a sorting mark of a date, so that the latest comes first.
func latestFirst(date string) string {
	return strings.Map(func(digit rune) rune { return '0' + '9' - digit }, date)
}

func openOpenSpec(files *tree) (*rules, error) {
	f := openSpec
	f.schemas = readSchemas(files)
	return f.open(files)
}

// openSpecKit also takes folders without a number where spec-kit has been set up, and the one it is working on.
func openSpecKit(files *tree) (*rules, error) {
	f := specKit
	if files.Has(".specify/.") {
		f.is = func(string) bool { return true }
		var feature struct {
			Dir string `json:"feature_directory"`
		}
		_ = json.Unmarshal(files.Read(".specify/feature.json"), &feature) // another program writes it
		dir := path.Clean(strings.ReplaceAll(feature.Dir, `\`, "/"))
		if dir != "." && filepath.IsLocal(filepath.FromSlash(dir)) && !slices.Contains(f.roots, path.Dir(dir)) {
			f.extra = dir
		}
	}
	return f.open(files)
}

// hasSpecs reports whether spec-kit has been set up and has a story.
func hasSpecs(files *tree) bool {
	r, err := openSpecKit(files)
	if err != nil || !files.Has(".specify/.") {
		return false
	}
	found, err := files.walk(r, func(string) {})
	return err == nil && slices.ContainsFunc(slices.Collect(maps.Keys(found)), func(file string) bool {
		return path.Base(file) == "spec.md"
	})
}

func (f folderRules) open(*tree) (*rules, error) {
	r := &rules{
		paths: slices.Clone(f.roots), stages: folderStages, unit: f.unit, stories: f.stories, titles: f.stars,
		descend: func(dir string) bool {
			return f.archive != "" && dir == path.Join(f.roots[0], f.archive) || f.unit(dir+"/.") != ""
		},
		config:  f.extra + "\x00" + f.schemas.config() + strconv.FormatBool(f.is("x")),
		refusal: "the stage of a story follows from the boxes in its tasks.md; tick these",
	}
	if f.extra != "" {
		r.paths = append(r.paths, f.extra)
	}
	if f.archive != "" {
		r.stages = append(r.stages[:len(r.stages):len(r.stages)], stageRule{
			key: "archived", label: "Archived", refusal: f.tool + " archives what is done: run " + f.tool + " archive",
		})
	}
	return r, nil
}

// unit returns the folder, marked so that archived ones sort last.
func (f folderRules) unit(file string) string {
	if dir := path.Dir(file); dir == f.extra {
		return "1 " + dir
	}
	for _, root := range f.roots {
		below, is := strings.CutPrefix(file, root+"/")
		if !is {
			continue
		}
		name, rest, _ := strings.Cut(below, "/")
		place := "1 "
		if name == f.archive && name != "" {
			place, root = "2 ", path.Join(root, name)
			name, rest, _ = strings.Cut(rest, "/")
		}
		if rest == "" || !f.is(name) || strings.Contains(rest, "/") && !f.schemas.isDeep() {
			return ""
		}
		return place + path.Join(root, name)
	}
	return ""
}

func (f folderRules) stories(unit string, files Files, _ []entry) (entries []entry, err error) {
	place, dir, _ := strings.Cut(unit, " ")
	exists := f.needs == nil && files.Has(dir+"/.")
	for _, name := range f.needs {
		exists = exists || files.Has(path.Join(dir, name))
	}
	if !exists {
		return nil, nil
	}
	lists := f.schemas.lists(dir, files)
	var tasks []Task
	var version []byte
	listed, doing := "", false
	for _, list := range lists {
		content, notRead := contentOf(files, list)
		if notRead != nil {
			return nil, notRead
		}
		if content == nil {
			continue
		}
		if len(bytes.TrimSpace(content)) == 0 {
			err = errTorn
		}
		found, works := f.boxes(content)
		for i := range found {
			if len(lists) > 1 {
				found[i].Path = list
			}
		}
		tasks, doing, listed = append(tasks, found...), doing || works, cmp.Or(listed, list)
		version = append(append(version, 0), content...)
	}
	e := entry{id: path.Base(dir), stage: f.stage(dir, files, listed != "", tasks, doing)}
	if place == "2" {
		e.stage = "archived"
		if dated := archiveDate.FindStringSubmatch(e.id); dated != nil {
			e.id, e.mark = dated[2], latestFirst(dated[1])
		}
	}
	e.record = func() *record {
		r := &record{path: cmp.Or(listed, lists[0]), tasks: tasks}
		for _, name := range f.texts {
			text, err := contentOf(files, path.Join(dir, name))
			if err != nil {
				r.fault = newFaultyFile(dir, err)
			}
			r.name = cmp.Or(r.name, f.title(text))
			if text != nil && r.body == "" {
				r.body = string(text)
				if listed == "" {
					r.path = path.Join(dir, name)
				}
			}
			r.version = append(append(r.version, text...), 0)
		}
		r.version = append(r.version, version...)
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
	if f.stars {
		title = withoutKind(title)
	}
	return title
}

// boxLine matches a list item with a box as openspec does, except for what may follow. Spaces are as in JavaScript, and
// the mark is one JavaScript character.
var boxLine = regexp.MustCompile(strings.NewReplacer(
	"SPACE", `[\s\v\p{Z}\x{feff}]`, "MARK", `[^\]\s\v\p{Z}\x{feff}\x{10000}-\x{10ffff}]`,
).Replace(`^SPACE*(?:[-*+]|[0-9]{1,9}[.)])SPACE*\[(SPACE*)(MARK?)(SPACE*)\](.*)`))

// boxes returns the boxes of a checklist, and whether one of them is marked as in progress.
func (f folderRules) boxes(content []byte) (tasks []Task, doing bool) {
	at, line := 0, 0
	var code codeBlocks
	for raw := range bytes.Lines(content) {
		start := at
		at, line = at+len(raw), line+1
		text := strings.TrimRight(string(raw), "\r\n")
		if f.plan != "" && code.has(text) { // openspec counts boxes in code, too
			continue
		}
		box := boxLine.FindStringSubmatchIndex(text)
		if box == nil {
			continue
		}
		mark, rest := text[box[4]:box[5]], text[box[8]:]
		isLetter := strings.ContainsFunc(mark, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
		if f.plan != "" && isLetter && !strings.EqualFold(mark, "x") { // a note
			continue
		}
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
