package board

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"switchyard/internal/domain"
)

// rules are what is particular to a layout whose files fall into units, each with some of the stories.
type rules struct {
	paths  []string // where the files are, below the board's directory
	files  []string // patterns of what makes it a board, even one without stories
	config string   // differs when the same files mean something else
	stages []stageRule
	// descend reports whether there are files of the board in a directory below the paths; nil: in none.
	descend func(dir string) bool
	// unit and stories are as in Past, but a directory that exists has a file ".". Stories get what they returned for the
	// unit before, if it is known, and take over what has not changed. They may return errTorn with what is there so far;
	// after any other error, what was there before still counts, and after a while that is a fault.
	unit    func(path string) string
	stories func(unit string, files Files, old []entry) ([]entry, error)
	// whole is for a layout with one file, whose rules follow from it: after each change everything is read.
	whole bool
	// source, if not nil, is where the content of the files is from, which may have changed. It says whether that is
	// new, and when to ask again. Such rules are opened once.
	source func(changed bool) (content []byte, fresh bool, again time.Time, err error)
	// lock returns the lock directory of the tool for a story, move the content of the file at its path when it is in
	// another stage. Both are nil where no story can be moved; refusal then says why.
	lock    func(id string) string
	move    func(id string, r *record, content []byte, to stageRule) ([]byte, error)
	refusal string
	// unique reports whether two stories in such units must not have one id; nil where no two can.
	unique func(unit string) bool
	faults []*faultyFile // of the configuration
	titles bool          // a title that two stories have names none
	// unseen is the key of the stage of a story that is blocked at a first look, where that is not the first stage.
	unseen string
	// same returns the same for two ways to write an id; nil: there is one.
	same func(id string) string
}

// stageRule is a stage: the key that stories have, and the board's word, "" for the key.
type stageRule struct {
	key, label string
	refusal    string // why nobody but the tool moves a story to or from here, "" if it is possible
}

func plainStages(keys ...string) (stages []stageRule) {
	for _, key := range keys {
		stages = append(stages, stageRule{key: key})
	}
	return stages
}

var errTorn = errors.New("a file is being written")

// contentOf returns what is in a file, nil if there is none. A file that cannot be read, or is too large, is an error:
// its stories are not gone.
func contentOf(files Files, name string) ([]byte, error) {
	content := files.Read(name)
	if content == nil && files.Has(name) {
		return nil, &faultyFile{name, fmt.Sprintf("it is larger than %d MiB, or may not be read", maxSize(name)>>20)}
	}
	return content, nil
}

type entry struct {
	id, stage string // the stage's key, "" for where it was before
	mark      string // tells the story from others of its id, and sorts these; "" for none
	// The record follows from a part of the unit's file, which has a name in some layouts, and another file, "" for none.
	// It is made again if one of them has changed; where raw is nil, always.
	raw        []byte
	part, text string
	record     func() *record
}

// record is what the files say about a story.
type record struct {
	name     string // "" for the id in words
	path     string
	status   string // the file that says the stage, "" for path
	blocked  string
	tasks    []Task
	done     domain.Criteria // where there are no tasks
	depends  []string        // the ids of stories, or of parts of them, that come before it
	parts    []string        // the ids of those parts of it that are done
	version  []byte          // changes with the story
	modified time.Time       // zero for that of path
	body     string
	front    json.RawMessage
	at       int         // where it begins in the file at its path, if that has several
	fault    *faultyFile // why a part of it cannot be read
}

func (r stageRule) name(index int) string { return fmt.Sprintf("%d_%s", index+1, stageSlug(r.key)) }

func stageSlug(word string) string { return cmp.Or(slug(domain.CutText(word)), "other") }

// fold returns a stage's key for comparison: without case and blanks.
func fold(key string) string { return strings.ToLower(strings.Join(strings.Fields(key), "")) }

// firstOfWork returns the key of the first stage of work, of the one in which work waits if there is none.
func (r *rules) firstOfWork(layout string) string {
	stages := make([]domain.Stage, len(r.stages))
	for i, rule := range r.stages {
		stages[i].Name = rule.name(i)
	}
	domain.MarkWaiting(layout, stages)
	from, to := domain.WorkStages(stages)
	if from == to {
		from = domain.WaitingStage(stages)
	}
	return r.stages[from].key
}

// isBlocked reports whether a status is a block, which it is unless the board has it itself.
func isBlocked(status string, own []string) bool {
	return fold(status) == "blocked" && !slices.ContainsFunc(own, func(s string) bool { return fold(s) == "blocked" })
}

func (r *record) criteria() domain.Criteria {
	if len(r.tasks) > 0 {
		return countTasks(r.tasks)
	}
	return r.done
}

// hash identifies the story's record and its stage.
func (r *record) hash(stage string) string {
	sum := sha256.Sum256(append([]byte(stage+"\x00"), r.version...))
	return hex.EncodeToString(sum[:16])
}
