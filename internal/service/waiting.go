package service

import (
	"context"

	"golang.org/x/sync/singleflight"

	"switchyard/internal/supervise"
)

// shareCall does once what several ask for at the same time, and waits for it until ctx ends. What is done outlives the
// request that caused it, since others may wait for it; a panic in it becomes an error for all of them.
func shareCall[T any](
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
