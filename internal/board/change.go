package board

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"switchyard/internal/domain"
)

// Change is a change to a story. Nil fields leave it as it is.
type Change struct {
	// Version is the story's version that the change is based on.
	Version string
	// Stage is the stage to move the story to.
	Stage *string
	// Blocked is the reason why the story is blocked, "" to unblock it.
	Blocked *string
	// ClearMergeFailure removes the merge failure.
	ClearMergeFailure bool
}

// Change changes a story's file atomically, and in its front matter only the necessary keys. The change is recorded
// like one made by hand, before Change returns. It returns a Forbidden error unless Options allow writes, NotFound for
// an id that is not on the board, Invalid for an invalid stage or reason, and Conflict when the version is not the
// file's, when the stage has a file of that name, or when the front matter can only be changed by hand.
func (b *Board) Change(id string, c Change) (*Details, error) {
	if err := b.checkWritable(); err != nil {
		return nil, err
	}
	if c.Blocked != nil && *c.Blocked != "" {
		if err := checkText("blocked", *c.Blocked); err != nil {
			return nil, err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	changed, err := b.change(id, c)
	if errors.Is(err, errMoved) {
		if _, err := b.scan(nil); err != nil {
			return nil, Unavailable(err)
		}
		changed, err = b.change(id, c)
	}
	if errors.Is(err, errMoved) {
		return nil, noSuchStory(id)
	}
	if err != nil {
		return nil, writeError(err)
	}
	_, _ = b.scan(changed) // if it fails, the view says so
	details, err := b.read(id)
	if errors.Is(err, errMoved) {
		return nil, noSuchStory(id)
	}
	return details, err
}

// change writes the change, and returns the stages that it affects. It returns errMoved when the file is not where the
// last scan found it.
func (b *Board) change(id string, c Change) (changed stageSet, err error) {
	_, stage, err := b.find(id)
	if err != nil {
		return nil, err
	}
	changed = stageSet{stage: {id: true}}
	dir, err := openStage(filepath.Join(b.dir, stage))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errMoved
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	target := dir
	if c.Stage != nil && *c.Stage != stage {
		if target, err = b.openTarget(*c.Stage); err != nil {
			return nil, err
		}
		defer target.Close()
		changed.add(*c.Stage, id)
	}
	file, err := readStory(dir, id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errMoved
	}
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

var errChanged = domain.Errorf(domain.Conflict, "the story has changed meanwhile")

// openTarget opens the stage that a story moves to.
func (b *Board) openTarget(stage string) (*os.File, error) {
	if stageName().MatchString(stage) {
		dir, err := openStage(filepath.Join(b.dir, stage))
		if err == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, unix.ELOOP) {
			return dir, err
		}
	}
	return nil, domain.Errorf(domain.Invalid, "stage: there is no stage %q", limit(stage))
}

func (b *Board) checkWritable() error {
	if !b.allowWrites {
		return domain.Errorf(domain.Forbidden, "this project server does not allow writes")
	}
	return nil
}

// writeError gives an error of the file system a message for people; others have one already.
func writeError(err error) error {
	switch number := unix.Errno(0); {
	case errors.Is(err, fs.ErrExist):
		return domain.Errorf(domain.Conflict, "the stage already has a story of that name")
	case errors.As(err, &number):
		return domain.WrapError(domain.Internal, err, "the story could not be written: "+number.Error())
	}
	return err
}
