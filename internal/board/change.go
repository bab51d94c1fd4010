package board

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode"

	"switchyard/internal/domain"
)

// Change is a change to a story. Nil fields leave the story's value as it is.
type Change struct {
	Version string      // the version of the story that the change is based on
	Stage   *string     // to move the story to
	Blocked *string     // the reason, "" to unblock it
	Task    *TaskChange // a box to tick, or to clear
	// Worktree is the path of the work tree to write in, nil for where the story stands.
	Worktree *string
	// MergeFailure is "" to clear the merge failure; the last one that was cleared, or how it ends, to restore it.
	MergeFailure *string
	failed       bool // MergeFailure is a new one
}

// TaskChange says whether the box on a line is ticked.
type TaskChange struct {
	Path string // the file, "" for the story's own
	Line int
	Done bool
}

// ErrReadOnly is returned by Change and Create unless Options allow writes.
var ErrReadOnly = domain.Errorf(domain.Forbidden, "this project server does not allow writes (--allow-writes)")

var errChanged = domain.Errorf(domain.Conflict, "the story has changed meanwhile")

// Change changes a story's file atomically, and in its front matter only the necessary keys. The change is recorded
// like one made by hand, before Change returns. It returns ErrReadOnly, NotFound for an id that is not on the board,
// Invalid for an invalid stage or reason, and Conflict if the version is not the file's, if the stage already has a
// file of that name, if the front matter can only be changed by hand, or if git cannot make a required commit.
func (b *Board) Change(ctx context.Context, id string, c Change) (*Details, error) {
	if !b.allowWrites {
		return nil, ErrReadOnly
	}
	at, c, err := b.target(ctx, id, c)
	if err != nil {
		return nil, err
	}
	to := b
	if at.board != nil {
		to = at.board
	}
	if c.Stage != nil && b.Layout() == domain.LayoutStages && b.View().has(*c.Stage) && to.checkLink() == nil {
		_ = os.Mkdir(filepath.Join(to.dir, *c.Stage), 0o777) // git keeps no empty directories
	}
	c, after, err := b.withFailure(id, c, func() (*Details, error) { return to.readOwn(at.id) })
	if err != nil {
		return nil, err
	}
	details, err := to.changeOwn(ctx, at.id, c)
	switch {
	case err == nil:
		after()
	case domain.CodeOf(err) == domain.NotFound && at.board != nil && to.lastKnown(at.id, nil) != nil:
		err = errUnderWay
	}
	return b.withPlace(id, details, at), err
}

func (b *Board) changeOwn(ctx context.Context, id string, c Change) (*Details, error) {
	if c.Blocked != nil && *c.Blocked != "" {
		if err := checkText("blocked", *c.Blocked); err != nil {
			return nil, err
		}
	}
	if c.Task != nil && (c.Stage != nil || c.Blocked != nil || c.MergeFailure != nil) {
		return nil, domain.Errorf(domain.Invalid, "task: cannot be changed together with something else")
	}
	unlock, err := b.layout.lock(ctx, id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	var changed fileSet
	err = b.locate(id, b.rescanAll, func(story Story, stage string) (err error) {
		if story.Fault != "" {
			return cannotWrite(story.Fault)
		}
		changed, err = b.changeFiles(ctx, story, stage, c)
		return err
	})
	if err != nil {
		return nil, writeError(err)
	}
	_, _ = b.scan(changed, false) // if it fails, the view says so
	return b.read(id, b.rescanAll)
}

// Create adds a story with that name and Markdown body to a stage, "" for the first one. Its id is one more than the
// highest number on the board, followed by its name. It returns ErrReadOnly, Invalid for an invalid name or stage, and
// TooLarge for a body that does not fit in a file.
func (b *Board) Create(ctx context.Context, name, body, stage string) (*Details, error) {
	if !b.allowWrites {
		return nil, ErrReadOnly
	}
	name = strings.TrimSpace(name)
	if err := checkText("name", name); err != nil {
		return nil, err
	}
	if strings.ContainsFunc(name, unicode.IsControl) {
		return nil, domain.Errorf(domain.Invalid, "name: must be one line")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, err := b.scan(nil, false); err != nil {
		return nil, Unavailable(err)
	}
	commit, err := b.beginCommit(ctx, nil)
	if err != nil {
		return nil, err
	}
	id, changed, err := b.layout.create(name, body, stage)
	if err != nil {
		return nil, writeError(err)
	}
	for stage := range changed {
		if err := commit.end(ctx, id, "created in "+stage, stage+"/"+id+".md"); err != nil {
			return nil, err
		}
	}
	_, _ = b.scan(changed, false) // if it fails, the view says so
	return b.read(id, b.rescanAll)
}

func (s *scanner) create(name, body, stage string) (id string, changed fileSet, err error) {
	content := newStory(name, body)
	if len(content) > maxFile {
		return "", nil, domain.Errorf(domain.TooLarge, "body: the file would be larger than 1 MiB")
	}
	if stage == "" && len(s.stages) > 0 {
		stage = s.stages[0].name
	}
	dir, err := openTarget(s.dir, stage)
	if err != nil {
		return "", nil, err
	}
	defer dir.Close()
	id = nextNumber(s.stages) + "_story_" + strings.TrimRight(domain.CutBytes(slug(name), maxSlug), "_")
	return id, fileSet{stage: {id: true}}, add(dir, id+".md", content)
}

// lock does nothing: the files are replaced atomically, and no tool locks them.
func (s *scanner) lock(context.Context, string) (unlock func(), err error) { return func() {}, nil }

func (s *scanner) change(story Story, stage string, c Change) (changed fileSet, err error) {
	work, id := s.dir, story.ID
	changed = fileSet{stage: {id: true}}
	dir, err := openStage(filepath.Join(work, stage))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	target := dir
	if c.Stage != nil && *c.Stage != stage {
		if target, err = openTarget(work, *c.Stage); err != nil {
			return nil, err
		}
		defer target.Close()
		changed[*c.Stage] = map[string]bool{id: true}
	}
	file, err := readRegular(dir, id+".md", maxFile)
	if err != nil {
		return nil, err
	}
	if file.version(stage) != c.Version {
		return nil, errChanged
	}
	content, err := c.apply(file)
	if err != nil {
		return nil, err
	}
	return changed, put(dir, target, id+".md", file, content)
}

func openTarget(work, stage string) (*os.File, error) {
	if stageName.MatchString(stage) {
		dir, err := openStage(filepath.Join(work, stage))
		none := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP)
		if !none {
			return dir, err
		}
	}
	return nil, domain.Errorf(domain.Invalid, "stage: there is no stage %q", limit(stage))
}

func cannotWrite(reason string) error {
	return domain.Errorf(domain.Conflict, "the story's file cannot be read: %s", reason)
}

// writeError gives an error of the file system a message for people; other errors already have one.
func writeError(err error) error {
	if bad, is := errors.AsType[*faultyFile](err); is {
		return cannotWrite(bad.reason)
	}
	switch number := syscall.Errno(0); {
	case domain.CodeOf(err) != domain.Internal:
	case errors.Is(err, fs.ErrExist):
		return domain.Errorf(domain.Conflict, "the stage already has a story of that name")
	case errors.As(err, &number):
		return domain.WrapError(domain.Internal, err, "the story could not be written: "+number.Error())
	}
	return err
}

func (c Change) apply(file *storyFile) ([]byte, error) {
	if c.Task != nil {
		return withTask(file.content, splitDocument(file.content).tasks(), *c.Task)
	}
	if c.Blocked == nil && c.MergeFailure == nil {
		return file.content, nil
	}
	err := errFileTooLong
	var front frontMatter
	if !file.tooLarge() {
		front, err = parseFrontMatter(splitDocument(file.content))
	}
	content := file.content
	if err == nil {
		if settings := c.settings(front); len(settings) > 0 {
			content, err = edit(file.content, settings)
		}
	}
	if err == nil && len(content) > maxFile && len(content) > len(file.content) {
		err = errFileTooLong
	}
	if err != nil {
		return nil, domain.Errorf(domain.Conflict, "the story cannot be changed here: %v", err)
	}
	return content, nil
}

// settings returns the keys that the change must set, without those that already have the right value.
func (c Change) settings(front frontMatter) (settings []setting) {
	now := readFacts(front, nil)
	set := func(key, value string) {
		if value != "" || front.get(key).Kind != 0 {
			settings = append(settings, setting{key, value})
		}
	}
	switch own := text(front.get("blocked")); {
	case c.Blocked == nil || strings.TrimSpace(*c.Blocked) == now.blocked:
	case *c.Blocked == "":
		set("blocked", "")
		set("blocked_reason", "")
	case now.blocked != "" && now.blocked == own && reason(front.get("blocked"), "\x00", "\x00") != "\x00":
		// the key's value is the reason
		set("blocked", yamlString(strings.TrimSpace(*c.Blocked)))
	default:
		if now.blocked == "" {
			set("blocked", "true")
		}
		set("blocked_reason", yamlString(strings.TrimSpace(*c.Blocked)))
	}
	switch {
	case c.MergeFailure == nil || *c.MergeFailure == "" && now.mergeFailure == "":
	case *c.MergeFailure == "":
		set("merge_failure", "")
	default:
		set("merge_failure", yamlString(*c.MergeFailure))
	}
	return settings
}
