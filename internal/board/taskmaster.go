package board

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/jsonscan"
)

const taskMasterFile = ".taskmaster/tasks/tasks.json"

// taskMasterRules are the rules of Task Master, which has all tasks in one file, in named lists: tags.
type taskMasterRules struct {
	several bool   // there are several tags: each task's id begins with its tag
	content []byte // the file, and the lists in it
	tags    []taskMasterTag
}

// taskMasterTag is a list of tasks. In earlier versions the file is one.
type taskMasterTag struct {
	name     string
	tasks    []span // in the file; nil if it is not a list of tasks
	metadata int    // where it begins, 0 if there is none
}

type span struct{ start, end int }

func openTaskMaster(files *tree) (*rules, error) {
	content := files.Read(taskMasterFile)
	tags, err := taskMasterTags(content)
	f := taskMasterRules{len(tags) > 1, content, tags}
	r := &rules{
		paths: []string{path.Dir(taskMasterFile)}, stories: f.stories, move: f.move, whole: true,
		unit: func(file string) string {
			if file != taskMasterFile {
				return ""
			}
			return file
		},
		lock:   func(string) string { return taskMasterFile + ".lock" },
		unique: func(string) bool { return true },
		stages: plainStages("pending", "in-progress", "review", "done", "deferred", "cancelled"),
	}
	for _, tag := range tags {
		r.config += tag.name + "\x00"
	}
	if err != nil {
		err = errTorn
	}
	return r, err
}

// taskMasterTags returns the lists of a file, ordered by their names.
func taskMasterTags(content []byte) (tags []taskMasterTag, err error) {
	r := jsonscan.NewReader(content)
	if r.Kind() != '{' {
		return nil, errJSON
	}
	lists, left := map[string]taskMasterTag{}, maxTasks
	master := taskMasterTag{name: "master"}
	master.read(r, &left, func(name jsonscan.Name) {
		tag := taskMasterTag{name: string(name)}
		if tag.read(r, &left, nil); tag.tasks != nil || lists[tag.name].tasks != nil {
			lists[tag.name] = tag
		}
	})
	if r.End() != nil || left < 0 {
		return nil, errJSON
	}
	for _, name := range slices.SortedFunc(maps.Keys(lists), compareNatural) {
		if lists[name].tasks != nil {
			tags = append(tags, lists[name])
		}
	}
	if len(tags) == 0 && master.tasks != nil { // beside tags it is a leftover
		tags = []taskMasterTag{master}
	}
	return tags, nil
}

// read reads the next object. others, unless nil, receives the names of members that no list has.
func (tag *taskMasterTag) read(r *jsonscan.Reader, left *int, others func(jsonscan.Name)) {
	for name := range r.Parts() {
		switch {
		case name.Is("tasks") && r.Kind() == '[':
			tag.tasks = []span{}
			for range r.Parts() {
				if *left--; *left >= 0 {
					start := r.At()
					r.Value()
					tag.tasks = append(tag.tasks, span{start, r.Offset()})
				}
			}
		case name.Is("metadata"):
			tag.metadata = r.At()
		}
		if others != nil {
			others(name)
		}
	}
}

// stories decodes only the tasks that have changed: decoding 10,000 would take 0.1 s.
func (f taskMasterRules) stories(_ string, files Files, old []entry) (entries []entry, err error) {
	content, err := contentOf(files, taskMasterFile)
	if content == nil {
		return nil, err
	}
	tags := f.tags
	if len(tags) == 0 || len(content) == 0 || &content[0] != &f.content[0] { // of other content, at another address
		if tags, err = taskMasterTags(content); err != nil {
			return nil, &faultyFile{taskMasterFile, err.Error()}
		}
	}
	var places map[string]int // of old
	next := 0                 // the likely next one in old
	for _, tag := range tags {
		for _, at := range tag.tasks {
			raw := content[at.start:at.end]
			if next < len(old) && old[next].part == tag.name && bytes.Equal(old[next].raw, raw) {
				e := old[next]
				e.raw, e.record = raw, func() *record { return readTaskMasterTask(raw).record(raw, at.start, f.prefix(tag)) }
				entries, next = append(entries, e), next+1
				continue
			}
			t := readTaskMasterTask(raw)
			if t == nil {
				line := 1 + bytes.Count(content[:at.start], []byte("\n"))
				return nil, &faultyFile{taskMasterFile, fmt.Sprintf("the task on line %d is not JSON", line)}
			}
			if t.ID == "" {
				continue
			}
			e := entry{
				id: limit(f.prefix(tag) + string(t.ID)), part: tag.name, raw: raw, mark: limit(string(t.Description)),
			}
			e.record = func() *record { return t.record(raw, at.start, f.prefix(tag)) }
			e.stage, _ = t.stage()
			entries = append(entries, e)
			if places == nil {
				places = placesOf(old)
			}
			if place, known := places[e.id]; known {
				next = place + 1
			}
		}
	}
	return entries, nil
}

// readTaskMasterTask returns nil if raw is not JSON. Fields of the wrong type are left out.
func readTaskMasterTask(raw []byte) *taskMasterTask {
	var t taskMasterTask
	var syntax *json.SyntaxError
	if errors.As(json.Unmarshal(raw, &t), &syntax) {
		return nil
	}
	return &t
}

// stage returns the task's stage, "" for where it was, and why it is blocked.
func (t *taskMasterTask) stage() (stage, blocked string) {
	if stage = taskMasterStage(t.Status); stage != "blocked" {
		return stage, ""
	}
	if stage = taskMasterStage(t.PreviousStatus); t.PreviousStatus == "" || stage == "blocked" {
		stage = ""
	}
	return stage, "The status of the task is blocked."
}

// prefix is what the ids of a tag's tasks begin with.
func (f taskMasterRules) prefix(tag taskMasterTag) string {
	if f.several {
		return tag.name + "/"
	}
	return ""
}

func (t *taskMasterTask) record(raw []byte, at int, prefix string) *record {
	r := &record{
		name: string(t.Title), path: taskMasterFile, version: raw, front: raw, done: t.Subtasks.Criteria, at: at,
	}
	_, r.blocked = t.stage()
	r.body = strings.TrimSpace(string(t.Description) + "\n\n" + string(t.Details))
	for _, id := range t.Dependencies {
		r.depends = append(r.depends, limit(prefix+id))
	}
	for _, id := range t.Subtasks.done {
		r.parts = append(r.parts, limit(prefix+string(t.ID+"."+id)))
	}
	return r
}

func taskMasterStage(status looseText) string {
	switch word := strings.ToLower(string(status)); word {
	case "":
		return "pending"
	case "completed":
		return "done"
	default:
		return limit(word)
	}
}

// move writes what "task-master set-status" writes: the status, when it changed, and when its list did.
func (f taskMasterRules) move(_ string, r *record, content []byte, to stageRule) ([]byte, error) {
	tags, err := taskMasterTags(content)
	if err != nil {
		return nil, errChanged
	}
	for _, tag := range tags {
		if slices.ContainsFunc(tag.tasks, func(task span) bool { return task.start == r.at }) {
			return tag.move(content, r.at, to)
		}
	}
	return nil, errChanged
}

func (tag taskMasterTag) move(content []byte, task int, to stageRule) ([]byte, error) {
	now, _ := json.Marshal(time.Now().UTC().Format("2006-01-02T15:04:05.000Z")) // strings always encode
	status, _ := json.Marshal(to.key)
	var edits []textEdit
	for _, set := range []struct {
		at    int
		name  string
		value []byte
	}{{task, "status", status}, {task, "updatedAt", now}, {tag.metadata, "lastModified", now}} {
		if edit, err := setJSON(content, set.at, set.name, set.value); err == nil && set.at > 0 {
			edits = append(edits, edit)
		}
	}
	changed := applyEdits(content, edits)
	if !json.Valid(changed) {
		return nil, domain.Errorf(domain.Conflict, "the file can only be changed by hand")
	}
	return changed, nil
}
