package service

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestNobodyWaitsForASlowAnswer, which is made once all the same, and holds for a time, as its failure does.
func TestNobodyWaitsForASlowAnswer(t *testing.T) {
	for _, fails := range []error{nil, errors.New("it took too long")} {
		synctest.Test(t, func(t *testing.T) {
			var r recent[int]
			made := 0
			tell := func() (int, error) {
				ctx, cancel := context.WithTimeout(t.Context(), flowPatience)
				defer cancel()
				return r.tell(ctx, "costs", func(context.Context) (int, error) {
					time.Sleep(2 * flowPatience)
					made++
					return 7, fails
				})
			}
			began := time.Now()
			if _, err := tell(); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != flowPatience {
				t.Errorf("%v after %s", err, time.Since(began))
			}
			time.Sleep(flowPatience)
			synctest.Wait()
			for range 3 {
				if n, err := tell(); n != 7 || !errors.Is(err, fails) || made != 1 {
					t.Errorf("%d, %v, made %d times", n, err, made)
				}
			}
			time.Sleep(snapshotShare * 3 * flowPatience)
			_, _ = tell()
			time.Sleep(flowPatience)
			if synctest.Wait(); made != 2 {
				t.Errorf("made %d times", made)
			}
		})
	}
}
