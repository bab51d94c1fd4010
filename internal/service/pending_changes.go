package service

import (
	"slices"
	"sync"

	"switchyard/internal/domain"
)

// pendingChanges are the changes of stories that this gateway is making. Their events may arrive before the project
// server's answer, and must have an author even before that is stored. The zero value is ready for use.
type pendingChanges struct {
	mu   sync.Mutex
	all  map[int64][]domain.StoryChange
	last int64
}

// begin registers changes being made, until the caller calls end.
func (u *pendingChanges) begin(changes []domain.StoryChange) (end func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.all == nil {
		u.all = map[int64][]domain.StoryChange{}
	}
	u.last++
	id := u.last
	u.all[id] = changes
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.all, id)
	}
}

// now returns the changes being made. Call it before reading the stored ones.
func (u *pendingChanges) now() (changes []domain.StoryChange) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, some := range u.all {
		changes = append(changes, some...)
	}
	return changes
}

// withPending returns stored changes and those that were under way before these were read.
func withPending(stored, underway []domain.StoryChange) []domain.StoryChange {
	for _, c := range underway {
		isStored := func(other domain.StoryChange) bool {
			sameTime := other.At.UnixMilli() == c.At.UnixMilli()
			other.At = c.At
			return sameTime && other == c
		}
		if !slices.ContainsFunc(stored, isStored) {
			stored = append(stored, c)
		}
	}
	return stored
}
