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

// TestNobodyWaitsForASlowAnswer, which is made once all the same, and holds for a time, as its failure does; meanwhile
// the last one is told.
func TestNobodyWaitsForASlowAnswer(t *testing.T) {
	const patience = 100 * time.Millisecond
	for _, fails := range []error{nil, errors.New("it took too long")} {
		synctest.Test(t, func(t *testing.T) {
			c := costCache[int]{most: 2}
			made := 0
			tell := func() (int, error) {
				return c.soon(t.Context(), patience, "costs", func(context.Context) (int, error) {
					time.Sleep(2 * patience)
					made++
					if made > 1 {
						return 0, fails
					}
					return 7, nil
				})
			}
			wait := func(long time.Duration) {
				time.Sleep(long)
				synctest.Wait()
			}
			began := time.Now()
			if n, err := tell(); n != 0 || err != nil || time.Since(began) != patience {
				t.Errorf("%d, %v after %s", n, err, time.Since(began))
			}
			wait(patience)
			for range 3 {
				if n, err := tell(); n != 7 || err != nil || made != 1 {
					t.Errorf("%d, %v, made %d times", n, err, made)
				}
			}
			wait(snapshotShare * 3 * patience)
			if n, err := tell(); n != 7 || err != nil {
				t.Errorf("while it is made again: %d, %v", n, err)
			}
			wait(patience)
			if _, err := tell(); !errors.Is(err, fails) || made != 2 {
				t.Errorf("%v, made %d times", err, made)
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
		settled := costCache[*costCount]{lasts: true, most: maxSettled, size: (*costCount).size}
		c := newCostCount(&costCount{days: make([]domain.CostShare, 1)})
		for i := range 180 {
			count(c, i)
		}
		for i := range 2 * maxSettled / 180 {
			_, err := settled.get(t.Context(), fmt.Sprint(i), func(context.Context) (*costCount, error) { return c, nil })
			if err != nil {
				t.Fatal(err)
			}
		}
		if n := len(settled.known); n == 0 || n*180 > maxSettled {
			t.Errorf("%d counts with 180 %s each are kept", n, what)
		}
	}
}
