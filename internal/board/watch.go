package board

import (
	"errors"
	"io/fs"

	"github.com/fsnotify/fsnotify"
)

// watcher is what the board needs of fsnotify. What an event says does not matter: any means that a scan is due.
type watcher struct {
	events <-chan fsnotify.Event
	errors <-chan error
	add    func(path string) error
	close  func() error
}

// openWatcher fails where the machine has no inotify, or no more of it.
func openWatcher() (watcher, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return watcher{}, err
	}
	return watcher{w.Events, w.Errors, w.Add, w.Close}, nil
}

// watchAgain opens a watcher if there is none.
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
		_ = b.watcher.close() // it can only have been closed already
	}
	b.watcher = watcher{}
}

// watch makes sure that the directory which has this path now is watched. Watching one again costs a system call.
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
