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

// rules are what is specific to a layout whose files form units, each with some of the stories.
type rules struct {
	paths  []string // where the files are, below the board's directory
	files  []string // patterns of what makes it a board, even without stories
	config string   // differs if the same files mean something else
	stages []stageRule
	// descend reports whether a directory below the paths has files of the board; nil: none has.
	descend func(dir string) bool
	// unit and stories are as in Past, but a directory that exists has a file ".". Stories get what they returned for
	// the unit before, if known, and reuse what has not changed. They may return errTorn with what is there so far;
	// after any other error, what was there before still counts, and after a while that is a fault.
	unit    func(path string) string
	stories func(unit string, files Files, old []entry) ([]entry, error)
	// whole is for a layout with one file, from which its rules follow: after each change everything is read.
	whole bool
	// source, if not nil, is where the content of the files comes from. changed says that it may be different; fresh
	// that it is; again is when to ask next. Such rules are opened once.
	source func(changed bool) (content []byte, fresh bool, again time.Time, err error)
	// lock returns the tool's lock directory for a story, move the content of the file at its path with the story in
	// another stage. Both are nil if no story can be moved; refusal then says why.
	lock    func(id string) string
	move    func(id string, r *record, content []byte, to stageRule) ([]byte, error)
	refusal string
	// unique reports whether two stories in such units must have different ids; nil: two never have the same.
	unique func(unit string) bool
	faults []*faultyFile // of the configuration
	titles bool          // a title shared by two stories is not used as a name
	// unseen is the key of the stage where a story that is blocked at first sight goes, if not the first stage.
	unseen string
	// same maps all ways to write an id to one; nil: there is one.
	same func(id string) string
}

// stageRule is a stage: its key in stories, and the board's word for it, "" for the key.
type stageRule struct {
	key, label string
	refusal    string // why only the tool moves stories to or from here, "" if that is not so
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
	mark      string // tells the story from others with its id, and sorts these; "" for none
	// The record follows from a part of the unit's file, which has a name in some layouts, and from another file, ""
	// for none. It is rebuilt if one of them changes; if raw is nil, always.
	raw        []byte
	part, text string
	record     func() *record
}

// record is what the files say about a story.
type record struct {
	name     string // "" for a name made from the id
	path     string
	status   string // the file with the stage, "" for path
	blocked  string
	tasks    []Task
	done     domain.Criteria // if there are no tasks
	depends  []string        // the ids of stories, or of their parts, that come before it
	parts    []string        // the ids of its parts that are done
	version  []byte          // changes with the story
	modified time.Time       // zero for that of path
	body     string
	front    json.RawMessage
	at       int         // where it begins in the file at path, if that has several
	fault    *faultyFile // why a part of it cannot be read
}

func (r stageRule) name(index int) string { return fmt.Sprintf("%d_%s", index+1, stageSlug(r.key)) }

func stageSlug(word string) string { return cmp.Or(slug(domain.CutText(word)), "other") }

// fold returns a stage's key for comparison: in lower case, without blanks.
func fold(key string) string { return strings.ToLower(strings.Join(strings.Fields(key), "")) }

// firstOfWork returns the key of the first stage of work, or else of the stage in which work waits.
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

// isBlocked reports whether a status means blocked, which it does unless it is one of the board's own.
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
