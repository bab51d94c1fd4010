package board

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"time"
	"unicode"

	"switchyard/internal/domain"
	"switchyard/internal/git"
)

// maxBody is the length at which the body of a story is cut, in bytes.
const maxBody = 256 << 10

// maxReaders is how many stories are read at the same time: parsing the worst front matter takes 20 MiB.
const maxReaders = 4

type Details struct {
	Story
	Stage string
	Label string // the stage's
	Path  string // the file's, relative to the work directory

	FrontMatter    json.RawMessage // an object, empty if there is none
	FrontMatterErr error           // why it cannot be read
	Body           string          // the Markdown after it without blank lines at either end, cut at maxBody
	BodyCut        bool
	Tasks          []Task // in the file at Path
	ReadOnly       string // why nothing is written to its file, "" if something can be
}

type storyFile struct {
	raw      []byte // up to maxFile
	content  []byte // raw as UTF-8 without a byte order mark
	foreign  bool   // raw has another encoding, so that nothing is written to it
	identity identity
	mode     fs.FileMode
	owner    int
	group    int
}

func (f *storyFile) tooLarge() bool { return f.identity.size > maxFile }

// Unavailable returns the error for callers while the work directory cannot be read: with the reason, but not the path.
func Unavailable(cause error) error {
	return domain.WrapError(domain.Unavailable, cause, "the work directory cannot be read: "+reasonOf(cause))
}

func reasonOf(err error) string {
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return number.Error()
	}
	return "unknown error"
}

// Read reads a story's file where it stands. It returns NotFound for an id that is not on the board, and Unavailable
// while the work directory cannot be read.
func (b *Board) Read(id string) (*Details, error) {
	at := b.standsIn(id)
	if at.board != nil {
		details, err := at.board.readOwn(at.id)
		if was := at.board.lastKnown(at.id, details); was != nil {
			details, err = was, nil
		}
		if domain.CodeOf(err) != domain.NotFound {
			return b.withPlace(id, details, at), err
		}
		at = where{id: b.idIn(b, id)}
	}
	details, err := b.readOwn(at.id)
	return b.withPlace(id, details, at), err
}

// lastKnown returns what is known of a story in another work tree in which git is in the middle of something and has
// changed or removed its file; nil for any other story.
func (b *Board) lastKnown(id string, now *Details) *Details {
	story, stage, found := b.own.Load().Find(id)
	if !found || !b.isFrozen() || now != nil && now.Version == story.Version {
		return nil
	}
	return &Details{
		Story: story, Stage: stage, FrontMatter: json.RawMessage("{}"), ReadOnly: domain.MessageOf(errUnderWay),
	}
}

// isFrozen reports whether this is another work tree's board, with git in the middle of something there.
func (b *Board) isFrozen() bool {
	if b.place == nil {
		return false
	}
	tree, inTree := git.Find(b.dir)
	return inTree && tree.IsUnderWay()
}

var errUnderWay = domain.Errorf(domain.Conflict,
	"a merge, rebase or bisect is under way in the work tree: the story is as it was before, and not written")

func (b *Board) readOwn(id string) (*Details, error) {
	b.readers <- struct{}{}
	defer func() { <-b.readers }()
	return b.read(id, b.catchUp)
}

// StoryInStage is a story of a view and its stage.
type StoryInStage struct {
	*Story
	Stage string
}

// ReadAll reads stories of a view, skipping those that are gone, until ctx ends or do returns false. Unlike Read, it
// does not say whether a file is read-only.
func (b *Board) ReadAll(ctx context.Context, stories []StoryInStage, do func(*Details) bool) error {
	select {
	case b.readers <- struct{}{}:
		defer func() { <-b.readers }()
	case <-ctx.Done():
		return ctx.Err()
	}
	read, done, err := b.layout.reader()
	if err != nil {
		return Unavailable(err)
	}
	defer done()
	for _, story := range stories {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		at, own := b.standsIn(story.ID), *story.Story
		if at.board != nil {
			if details, err := at.board.readOwn(at.id); err == nil && !do(b.withPlace(story.ID, details, at)) {
				break
			}
			continue
		}
		own.ID = at.id
		if details, err := read(own, story.Stage); err == nil {
			if details.ID = story.ID; !do(details) {
				break
			}
		}
	}
	return nil
}

// newDetails combines story, which the last scan found, with the file's content, which may be newer and takes
// precedence.
func newDetails(story Story, stage string, file *storyFile) *Details {
	d := splitDocument(file.content)
	front, err := parseFrontMatter(d)
	if file.tooLarge() {
		front, err = noFrontMatter, errFileTooLong
	}
	details := &Details{
		Story: story, Stage: stage, Path: stage + "/" + story.ID + ".md",
		FrontMatter: appendJSON(nil, &front.Node), FrontMatterErr: err, Tasks: d.tasks(),
	}
	details.Version, details.Criteria = file.version(stage), countTasks(details.Tasks)
	if err != nil {
		details.Fault, details.ReadOnly = err.Error(), err.Error()
	}
	if file.foreign {
		details.ReadOnly = errForeign.Message
	}
	if err == nil && len(bytes.TrimSpace(file.content)) > 0 {
		f := readFacts(front, d.body)
		details.Name, details.Blocked, details.MergeFailure = cmp.Or(f.name, story.ID), f.blocked, f.mergeFailure
		switch {
		case f.blocked == "":
			details.BlockedSince = time.Time{}
		case details.BlockedSince.IsZero():
			details.BlockedSince = time.Unix(0, file.identity.modified)
		}
	}
	details.Body, details.BodyCut = cutBody(d.body)
	details.BodyCut = details.BodyCut || file.tooLarge()
	return details
}

// version identifies the content and the stage. For a file too large to be read whole, its identity stands in for the
// content.
func (f *storyFile) version(stage string) string {
	hash := sha256.New()
	fmt.Fprintf(hash, "%s\x00", stage)
	if f.tooLarge() {
		fmt.Fprintf(hash, "%v\x00", f.identity)
	}
	hash.Write(f.raw)
	return hex.EncodeToString(hash.Sum(nil)[:16])
}

// cutBody returns body without the blank lines at either end, at most maxBody bytes of it.
func cutBody(body []byte) (text string, cut bool) {
	text = strings.TrimRight(string(body), " \t\r\n")
	blank := len(text) - len(strings.TrimLeftFunc(text, unicode.IsSpace))
	text = text[strings.LastIndexByte(text[:blank], '\n')+1:]
	if len(text) <= maxBody {
		return text, false
	}
	return domain.CutBytes(text, maxBody), true
}
