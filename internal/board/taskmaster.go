package board

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"switchyard/internal/domain"
)

const taskMasterFile = ".taskmaster/tasks/tasks.json"

// taskMasterRules are those of Task Master, which has all tasks in one file, in lists with names: tags.
type taskMasterRules struct{ several bool } // tags: ids begin with theirs

// taskMasterTag is a list of tasks. The file of earlier versions is one.
type taskMasterTag struct {
	Tasks []json.RawMessage `json:"tasks"`
	name  string
	flat  bool // it is the file
}

// maxTasks is how many tasks are read: decoded they take much more memory than the file.
const maxTasks = 100_000

type taskMasterTask struct {
	ID             looseText        `json:"id"`
	Title          looseText        `json:"title"`
	Description    looseText        `json:"description"`
	Details        looseText        `json:"details"`
	Status         looseText        `json:"status"`
	PreviousStatus looseText        `json:"previousStatus"`
	Subtasks       []taskMasterTask `json:"subtasks"`
}

// looseText is a text or a number as a text, and "" for anything else.
type looseText string

func (t *looseText) UnmarshalJSON(raw []byte) error {
	if last := len(raw) - 1; raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		*t = looseText(strings.TrimSpace(string(raw[1:last])))
		return nil
	}
	var text string
	var number json.Number
	if json.Unmarshal(raw, &text) == nil {
		*t = looseText(strings.TrimSpace(text))
	} else if json.Unmarshal(raw, &number) == nil {
		*t = looseText(number.String())
	}
	return nil
}

func openTaskMaster(files *tree) (*rules, error) {
	tags, err := taskMasterTags(files.Read(taskMasterFile))
	f := taskMasterRules{len(tags) > 1}
	r := &rules{
		paths: []string{path.Dir(taskMasterFile)}, stories: f.stories, move: f.move, whole: true,
		unit: func(file string) string {
			if file != taskMasterFile {
				return ""
			}
			return file
		},
		lock:   func(string) string { return taskMasterFile + ".lock" },
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
	if err := checkJSON(content); err != nil {
		return nil, err
	}
	var lists map[string]taskMasterTag
	if err := decodeLoosely(content, &lists); err != nil || lists == nil {
		return nil, cmp.Or(err, errors.New("the file is no JSON object"))
	}
	file := taskMasterTag{name: "master", flat: true}
	if list, is := lists["tasks"]; is && list.Tasks == nil {
		_ = decodeLoosely(content, &file) // it is JSON
	}
	if file.Tasks != nil {
		lists = map[string]taskMasterTag{file.name: file}
	}
	for _, name := range slices.SortedFunc(maps.Keys(lists), compareNatural) {
		if tag := lists[name]; tag.Tasks != nil {
			tag.name = name
			tags = append(tags, tag)
		}
	}
	count := 0
	for _, tag := range tags {
		count += len(tag.Tasks)
	}
	if count > maxTasks {
		return nil, errors.New("the file has more than 100,000 tasks")
	}
	return tags, nil
}

func (f taskMasterRules) stories(_ string, files Files) (entries []entry, err error) {
	content, err := contentOf(files, taskMasterFile)
	if content == nil {
		return nil, err
	}
	tags, err := taskMasterTags(content)
	if err != nil {
		return nil, errTorn
	}
	for _, tag := range tags {
		for _, raw := range tag.Tasks {
			t := readTask(raw)
			if t.ID == "" {
				continue
			}
			id := string(t.ID)
			if f.several {
				id = tag.name + "/" + id
			}
			stage, _ := t.stage()
			entries = append(entries, entry{limit(id), stage, func() *record { return t.record(raw) }})
		}
	}
	return entries, nil
}

func readTask(raw json.RawMessage) (t taskMasterTask) {
	_ = decodeLoosely(raw, &t) // it is JSON
	return t
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

func (t *taskMasterTask) record(raw []byte) *record {
	r := &record{name: string(t.Title), path: taskMasterFile, version: raw, front: raw}
	_, r.blocked = t.stage()
	r.body = strings.TrimSpace(string(t.Description) + "\n\n" + string(t.Details))
	for _, part := range t.Subtasks {
		r.done.Total++
		if taskMasterStage(part.Status) == "done" {
			r.done.Done++
		}
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

// move writes what "task-master set-status" writes: the status, when it was changed, and when its list was.
func (f taskMasterRules) move(id string, _ *record, content []byte, to stageRule) ([]byte, error) {
	tags, err := taskMasterTags(content)
	if err != nil {
		return nil, errChanged
	}
	for _, tag := range tags {
		number, is := id, true
		if f.several {
			number, is = strings.CutPrefix(id, tag.name+"/")
		}
		at := slices.IndexFunc(tag.Tasks, func(raw json.RawMessage) bool { return string(readTask(raw).ID) == number })
		if !is || at < 0 {
			continue
		}
		list := jsonValue{content, 0, len(content)}
		if !tag.flat {
			list = list.member(tag.name)
		}
		return moveTask(list, list.member("tasks").members()[at].jsonValue, to)
	}
	return nil, errChanged
}

func moveTask(list, task jsonValue, to stageRule) ([]byte, error) {
	now, _ := json.Marshal(time.Now().UTC().Format("2006-01-02T15:04:05.000Z")) // a text can be encoded
	status, _ := json.Marshal(to.key)
	edits := []textEdit{task.set("status", status), task.set("updatedAt", now)}
	if metadata := list.member("metadata"); metadata.end > 0 && list.text[metadata.start] == '{' {
		edits = append(edits, metadata.set("lastModified", now))
	}
	changed := applyEdits(list.text, edits)
	if !json.Valid(changed) {
		return nil, domain.Errorf(domain.Conflict, "the file can only be changed by hand")
	}
	return changed, nil
}
