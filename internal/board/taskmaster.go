package board

import (
	"bytes"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"switchyard/internal/domain"
)

const taskMasterFile = ".taskmaster/tasks/tasks.json"

// taskMasterRules are those of Task Master, which has all tasks in one file, in lists with names: tags.
type taskMasterRules struct {
	several bool // tags: ids begin with theirs

	mu     sync.Mutex
	tags   []taskMasterTag // of parsed, until found is set
	parsed []byte          // what entries are of: each reader of a story needs them
	found  []entry
}

// taskMasterTag is a list of tasks. The file of earlier versions is one.
type taskMasterTag struct {
	name  string
	tasks []json.RawMessage
}

// taskMasterTask is a task, or one of its parts.
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
	content := files.Read(taskMasterFile)
	tags, err := taskMasterTags(content)
	f := &taskMasterRules{several: len(tags) > 1, tags: tags, parsed: content}
	r := &rules{
		paths: []string{path.Dir(taskMasterFile)}, stories: f.stories, move: f.move, whole: true,
		descend: func(string) bool { return false },
		unit: func(file string) string {
			if file != taskMasterFile {
				return ""
			}
			return file
		},
		lock: func(string) string { return taskMasterFile + ".lock" },
	}
	for _, tag := range tags {
		r.config += tag.name + "\x00"
	}
	for _, key := range []string{"pending", "in-progress", "review", "done", "deferred", "cancelled"} {
		r.stages = append(r.stages, stageRule{key: key})
	}
	if err != nil {
		err = errTorn
	}
	return r, err
}

// taskMasterTags returns the lists of a file in its order.
func taskMasterTags(content []byte) (tags []taskMasterTag, err error) {
	if err := checkJSON(content); err != nil {
		return nil, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(content, &members); err != nil {
		return nil, err
	}
	var tasks []json.RawMessage
	if json.Unmarshal(members["tasks"], &tasks) == nil && tasks != nil {
		return []taskMasterTag{{"master", tasks}}, nil
	}
	for name, raw := range members {
		var list struct{ Tasks []json.RawMessage }
		if json.Unmarshal(raw, &list) == nil && list.Tasks != nil {
			tags = append(tags, taskMasterTag{name, list.Tasks})
		}
	}
	slices.SortFunc(tags, func(a, b taskMasterTag) int { return compareNatural(a.name, b.name) })
	return tags, nil
}

func (f *taskMasterRules) stories(_ string, files Files) (entries []entry, err error) {
	content := files.Read(taskMasterFile)
	if content == nil {
		return nil, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	same, tags := f.parsed != nil && bytes.Equal(f.parsed, content), f.tags
	if same && f.found != nil {
		return f.found, nil
	}
	if !same || tags == nil {
		if tags, err = taskMasterTags(content); err != nil {
			return nil, errTorn
		}
	}
	for _, tag := range tags {
		for _, raw := range tag.tasks {
			var t taskMasterTask
			_ = json.Unmarshal(raw, &t) // what has another type than it should is left out
			if t.ID != "" {
				entries = append(entries, f.entry(tag.name, t, raw))
			}
		}
	}
	f.tags, f.parsed, f.found = nil, content, entries
	return entries, nil
}

func (f *taskMasterRules) entry(tag string, t taskMasterTask, raw json.RawMessage) entry {
	e := entry{id: limit(string(t.ID)), stage: taskMasterStage(t.Status)}
	if f.several {
		e.id = limit(tag + "/" + string(t.ID))
	}
	blocked := ""
	if e.stage == "blocked" {
		blocked, e.stage = "The status of the task is blocked.", taskMasterStage(t.PreviousStatus)
		if t.PreviousStatus == "" || e.stage == "blocked" {
			e.stage = "" // where it was
		}
	}
	e.record = func() *record {
		r := &record{name: string(t.Title), path: taskMasterFile, blocked: blocked, version: raw, front: raw}
		r.body = strings.TrimSpace(string(t.Description) + "\n\n" + string(t.Details))
		for _, part := range t.Subtasks {
			r.done.Total++
			if taskMasterStage(part.Status) == "done" {
				r.done.Done++
			}
		}
		return r
	}
	return e
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
func (f *taskMasterRules) move(id string, _ *record, content []byte, to stageRule) ([]byte, error) {
	document, err := parseJSON(content)
	if err != nil {
		return nil, errChanged
	}
	list, number := document, id
	if list.member("tasks").items == nil {
		for _, m := range document.members {
			tag := m.name
			if rest, is := strings.CutPrefix(id, tag+"/"); is || !f.several {
				if number = rest; !is {
					number = id
				}
				if list = m.value; list.task(content, number) != nil {
					break
				}
			}
		}
	}
	task := list.task(content, number)
	if task == nil {
		return nil, errChanged
	}
	now, _ := json.Marshal(time.Now().UTC().Format("2006-01-02T15:04:05.000Z")) // a text can be encoded
	status, _ := json.Marshal(to.key)
	edits := []jsonEdit{task.set(content, "status", status), task.set(content, "updatedAt", now)}
	if metadata := list.member("metadata"); metadata.members != nil {
		edits = append(edits, metadata.set(content, "lastModified", now))
	}
	changed := applyEdits(content, edits)
	if _, err := taskMasterTags(changed); err != nil {
		return nil, domain.Errorf(domain.Conflict, "the file can only be changed by hand")
	}
	return changed, nil
}

// task returns the task of a list with that id, nil if there is none.
func (n jsonNode) task(content []byte, id string) *jsonNode {
	tasks := n.member("tasks").items
	i := slices.IndexFunc(tasks, func(t jsonNode) bool {
		var text looseText
		at := t.member("id")
		return at.end > 0 && json.Unmarshal(content[at.start:at.end], &text) == nil && string(text) == id
	})
	if i < 0 {
		return nil
	}
	return &tasks[i]
}
