package board

import (
	"io/fs"
	"syscall"

	"switchyard/internal/files"
)

// isElsewhere returns an error where a symbolic link leads from a work tree beside the board's own to another board.
func (b *Board) isElsewhere() error {
	if b.place == nil || b.place.Worktree == "" || files.Resolved(b.dir) == b.dir {
		return nil
	}
	return &fs.PathError{Op: "open", Path: b.dir, Err: syscall.ELOOP}
}

func (b *Board) scanOwn(changed fileSet) ([]*stage, error) {
	if err := b.isElsewhere(); err != nil {
		return nil, err
	}
	return b.layout.scan(changed)
}
