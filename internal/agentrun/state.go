package agentrun

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"sync"

	"switchyard/internal/files"
)

// identity is what an agent gets by joining.
type identity struct {
	Gateway string `json:"gateway"` // the address of the gateway that it joined
	ID      string `json:"id"`
	Label   string `json:"label"`
	Secret  string `json:"secret"`
}

func (i identity) path() string { return "/gateway/agents/" + url.PathEscape(i.ID) }

type state struct {
	identity
	// Command is the process group of the running command, zero while there is none. After a crash the next agent ends it.
	Command processGroup `json:"command"`
}

// stateFile is the state, in memory and in its file, which is locked by one agent at a time.
type stateFile struct {
	path string
	mu   sync.Mutex // guards state and writing
	state
}

// openState locks and reads the state file. It returns an error when another agent holds it or it cannot be read.
func openState(path string) (file *stateFile, unlock func(), err error) {
	unlock, err = files.TryLock(path)
	if errors.Is(err, files.ErrLocked) {
		return nil, nil, fmt.Errorf("another agent is using %s: stop it, or give this one its own --label or --state", path)
	}
	if err != nil {
		return nil, nil, err
	}
	file = &stateFile{path: path}
	if err = file.load(); err != nil {
		unlock()
	}
	return file, unlock, err
}

func (f *stateFile) load() error {
	if err := files.Tidy(f.path, true); err != nil {
		return err
	}
	data, err := files.Read(f.path, files.Small)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &f.state); err != nil {
		return fmt.Errorf("%s is not an agent's state file: %w", f.path, err)
	}
	return nil
}

func (f *stateFile) update(change func(*state)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := f.state
	change(&next)
	data, err := json.MarshalIndent(next, "", "  ")
	if err != nil {
		return err
	}
	if err := files.WriteAtomic(f.path, append(data, '\n')); err != nil {
		return err
	}
	f.state = next
	return nil
}

func (f *stateFile) get() state {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}
