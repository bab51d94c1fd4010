package board

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"switchyard/internal/domain"
)

// A file that changes twice within a tick of its file system's clock has the same times after both changes. Kernels
// advance that clock at least every 10 ms; file systems without fractions of a second have ticks of up to two.
const (
	tick       = 20 * time.Millisecond
	coarseTick = 2 * time.Second
)

// identity changes with a file's content.
type identity struct {
	inode    uint64
	size     int64
	modified int64 // in nanoseconds
	changed  int64 // unlike modified, it cannot be set, on systems that have it
}

// tick returns how close together two changes may be and leave the same identity.
func (i identity) tick() time.Duration {
	if i.changed%int64(time.Second) == 0 && i.modified%int64(time.Second) == 0 {
		return coarseTick
	}
	return tick
}

// errForeign says that a file is read, but not written: others would not read it as the same text.
var errForeign = domain.Errorf(domain.Conflict, "the file is not UTF-8: it can only be changed by hand")

// newStoryFile returns a file whose text is UTF-8 without a byte order mark, whatever raw is.
func newStoryFile(raw []byte, f storyFile) *storyFile {
	f.raw, f.content = raw, decodeText(raw)
	f.foreign = !bytes.HasSuffix(raw, f.content) || len(f.content) == 0 && len(raw) > 0
	return &f
}

// decodeText returns a file's text as UTF-8: decoded by its byte order mark, which is dropped, and with U+FFFD for
// invalid bytes.
func decodeText(raw []byte) []byte {
	if text := bytes.TrimPrefix(raw, []byte("\ufeff")); utf8.Valid(text) {
		return text
	}
	text, _, err := transform.Bytes(unicode.BOMOverride(unicode.UTF8.NewDecoder()), raw)
	if err != nil { // no decoder fails on any input
		return bytes.ToValidUTF8(raw, []byte("\ufffd"))
	}
	return text
}

// tempPrefix and tempSuffix mark the names of temporary files. The leading dot keeps them off the board.
const (
	tempPrefix = ".switchyard-"
	tempSuffix = ".tmp"
)

// writeTemp writes content to a new file in dir, syncs it to disk and returns its name. like, if not nil, is the file
// that it will replace: its mode and, if possible, its owner are kept.
func writeTemp(dir *os.File, content []byte, like *storyFile) (name string, err error) {
	name = tempPrefix + rand.Text() + tempSuffix
	file, err := createAt(dir, name)
	if err != nil {
		return "", err
	}
	if like != nil {
		_ = file.Chown(like.owner, like.group) // only root may do this; the file works without it
		err = file.Chmod(like.mode)
	}
	if err == nil {
		_, err = file.Write(content)
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return "", errors.Join(err, removeAt(dir, name))
	}
	return name, nil
}

// sweepTemp removes the temporary files that a killed process left in the stages of dir.
func sweepTemp(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		if isStage(entry) {
			err = errors.Join(err, sweepStage(filepath.Join(dir, entry.Name())))
		}
	}
	return err
}

func sweepStage(path string) error {
	stage, err := openStage(path) // no pipe or link that has replaced it meanwhile
	if err != nil {
		return err
	}
	defer stage.Close()
	names, err := stage.Readdirnames(-1)
	for _, name := range names {
		if isTemp(name) {
			if removeErr := removeAt(stage, name); !errors.Is(removeErr, fs.ErrNotExist) {
				err = errors.Join(err, removeErr)
			}
		}
	}
	return err
}

func isTemp(name string) bool {
	return strings.HasPrefix(name, tempPrefix) && strings.HasSuffix(name, tempSuffix)
}

// put replaces the file's content and moves it from dir to target, which may be the same. It fails if the file is no
// longer the one that was read, and overwrites no other file. If the process is killed meanwhile, the file has either
// the old content or the new, in one of the two directories.
func put(dir, target *os.File, name string, file *storyFile, content []byte) error {
	if file.foreign {
		return errForeign
	}
	moves, edited := target != dir, !bytes.Equal(content, file.content)
	temp := ""
	if edited {
		var err error
		mark := file.raw[:len(file.raw)-len(file.content)]
		if temp, err = writeTemp(target, slices.Concat(mark, content), file); err != nil {
			return err
		}
	}
	now, err := identify(dir, name)
	if err == nil && now != file.identity {
		err = errChanged
	}
	if err == nil && moves {
		err = renameNew(dir, name, target, name)
	}
	switch {
	case err == nil && edited:
		if err = replace(target, temp, name, file); err != nil && moves {
			err = errors.Join(err, renameNew(target, name, dir, name))
		}
	case edited:
		err = errors.Join(err, removeAt(target, temp))
	}
	if err == nil && (moves || edited) {
		err = errors.Join(syncDir(target), syncDir(dir))
	}
	return err
}

// replace gives the file's name to temp, and leaves no temp behind. If the system can exchange names, a different file
// that has taken the name since it was checked is put back.
func replace(dir *os.File, temp, name string, file *storyFile) error {
	ours, err := identify(dir, temp)
	if err != nil {
		return errors.Join(err, removeAt(dir, temp))
	}
	switch err = exchangeAt(dir, temp, name); {
	case errors.Is(err, errors.ErrUnsupported):
		if err = replaceAt(dir, temp, name); err == nil {
			return nil
		}
	case err == nil:
		was, readErr := readRegular(dir, temp, file.identity.size+1)
		if readErr == nil && bytes.Equal(was.raw, file.raw) {
			break
		}
		err = errors.Join(errChanged, exchangeAt(dir, temp, name))
		if back, _ := identify(dir, temp); back.inode != ours.inode { // another one has replaced ours meanwhile
			err = errors.Join(err, exchangeAt(dir, temp, name))
		}
	}
	return errors.Join(err, removeAt(dir, temp))
}
