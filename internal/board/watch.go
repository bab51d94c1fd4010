package board

import (
	"errors"
	"io/fs"

	"github.com/fsnotify/fsnotify"
)

// watcher is the part of fsnotify that the board needs. The kind of an event does not matter: any means that a scan is
// due.
type watcher struct {
	events <-chan fsnotify.Event
	errors <-chan error
	add    func(path string) error
	close  func() error
}

// openWatcher fails if the machine has no inotify, or no instances left.
func openWatcher() (watcher, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return watcher{}, err
	}
	return watcher{w.Events, w.Errors, w.Add, w.Close}, nil
}

// watchAgain tries to open a watcher if there is none.
func (b *Board) watchAgain() {
	if b.watcher.add != nil {
		return
	}
	w, err := b.openWatcher()
	b.report("watch for changes", err)
	b.watcher = w
}

func (b *Board) closeWatcher() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.watcher.close != nil {
		_ = b.watcher.close() // it fails only if it is already closed
	}
	b.watcher = watcher{}
}

// watch watches the directory that has this path now. For one that is already watched it costs a system call.
func (b *Board) watch(path string) {
	if b.watcher.add == nil {
		return
	}
	err := b.watcher.add(path)
	b.watched = b.watched && err == nil
	if !errors.Is(err, fs.ErrNotExist) {
		b.report("watch "+path, err)
	}
}
