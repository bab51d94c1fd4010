package board

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"

	"switchyard/internal/domain"
	"switchyard/internal/files"
)

// notes are the reasons why stories are blocked, or why their merges failed, if the board's files have no place for
// them.
type notes struct {
	path string // "" for nowhere
	list map[string]string
}

// openNotes reads a board's notes from the project server's state directory.
func openNotes(state, board, layout string) (notes, error) {
	n := notes{list: map[string]string{}}
	if state == "" {
		return n, nil
	}
	board, err := filepath.Abs(board)
	if err != nil {
		return n, err
	}
	sum := sha256.Sum256([]byte(board + "\x00" + layout))
	n.path = filepath.Join(state, hex.EncodeToString(sum[:12])+".json")
	text, err := files.Read(n.path, files.Large)
	if errors.Is(err, fs.ErrNotExist) {
		return n, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &n.list)
	}
	if n.list == nil {
		n.list = map[string]string{}
	}
	return n, err
}

// set keeps a reason for a story, "" for none.
func (n *notes) set(id, reason string, exists func(id string) bool) error {
	if n.path == "" {
		return domain.Errorf(domain.Invalid,
			"blocked: this board has no place for it, and the project server no state directory")
	}
	list := n.with(id, reason, exists)
	if err := n.write(list); err != nil { // it is not the story that could not be written
		return domain.Errorf(domain.Internal, "blocked: the reason could not be kept: %s", err)
	}
	n.list = list
	return nil
}

// with returns the list with a reason for a story, "" for none, and without the stories that are gone.
func (n *notes) with(id, reason string, exists func(id string) bool) map[string]string {
	list := map[string]string{}
	for known, reason := range n.list {
		if exists(known) {
			list[known] = reason
		}
	}
	if delete(list, id); reason != "" {
		list[id] = reason
	}
	return list
}

func (n *notes) write(list map[string]string) error {
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	unlock, err := files.Lock(n.path)
	if err != nil {
		return err
	}
	defer unlock()
	return files.WriteAtomic(n.path, text)
}
