package service

import (
	"context"
	"sync"

	"golang.org/x/sync/singleflight"

	"switchyard/internal/supervise"
)

// waiters are those who wait for a change: of the stories of a project or of any, or of questions or targets.
type waiters struct {
	mu      sync.Mutex
	waiting map[string]chan struct{} // by project, "" for any, and for what has none
}

// changed returns a channel that is closed at the next change of a project, "" for any. Call it before reading.
func (n *waiters) changed(project string) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.waiting == nil {
		n.waiting = map[string]chan struct{}{}
	}
	if n.waiting[project] == nil {
		n.waiting[project] = make(chan struct{})
	}
	return n.waiting[project]
}

func (n *waiters) wake(project string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, key := range []string{project, ""} {
		if waiting := n.waiting[key]; waiting != nil {
			close(waiting)
			delete(n.waiting, key)
		}
	}
}

// shared does what is asked for at the same time once, and waits for it until ctx ends. What is done outlives the
// request that caused it, since others may wait for it; a panic in it is the error of all of them.
func shared[T any](
	ctx context.Context, group *singleflight.Group, key string, do func(context.Context) (T, error),
) (result T, err error) {
	done := group.DoChan(key, func() (any, error) {
		var made T
		err := supervise.Call(func() (err error) {
			made, err = do(context.WithoutCancel(ctx))
			return err
		})
		return made, err
	})
	select {
	case d := <-done:
		result, _ = d.Val.(T)
		return result, d.Err
	case <-ctx.Done():
		return result, ctx.Err()
	}
}
