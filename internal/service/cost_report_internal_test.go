package service

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/domain"
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

// TestSettledCostsAreBounded, whatever they are sums of: an empty gateway, too, can be asked about any days, zone and
// projects.
func TestSettledCostsAreBounded(t *testing.T) {
	for what, count := range map[string]func(c *costCount, i int){
		"days":                     func(c *costCount, _ int) { c.days = append(c.days, domain.CostShare{}) },
		"sessions without a story": func(c *costCount, i int) { c.count(domain.CallSum{Session: fmt.Sprint(i)}) },
	} {
		var s settledCosts
		c := newCostCount(&costCount{days: make([]domain.CostShare, 1)})
		for i := range 180 {
			count(c, i)
		}
		for i := range 2 * maxSettled / 180 {
			s.keep(fmt.Sprint(i), c)
		}
		if n := len(s.known); n*180 > maxSettled {
			t.Errorf("%d counts with 180 %s each are kept", n, what)
		}
	}
}
