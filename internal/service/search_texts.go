package service

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

const (
	// textTime is how long project servers may search their texts, and textCalls how many do at the same time.
	textTime  = time.Second
	textCalls = 16
)

// findTexts asks all projects that respond for stories whose texts contain the words, at most limit in all.
func (s *Search) findTexts(ctx context.Context, boards *Boards, words []string, limit int) (found Found, err error) {
	bounded, cancel := context.WithTimeout(ctx, textTime)
	defer cancel()
	type answer struct {
		texts []domain.TextRef
		total int
		err   error
	}
	answers := make([]answer, len(boards.Pipelines))
	text := strings.Join(words, " ")
	var next atomic.Int64
	var calls sync.WaitGroup
	for range min(textCalls, len(answers)) {
		calls.Add(1)
		supervise.Go(s.log, "search in texts", func() {
			defer calls.Done()
			for i := int(next.Add(1)) - 1; i < len(answers); i = int(next.Add(1)) - 1 {
				a, p := &answers[i], &boards.Pipelines[i]
				if p.Reachable && !p.EventsOnly {
					a.texts, a.total, a.err = s.servers.FindTexts(bounded, boards.Registry.Projects[i], text, limit)
				}
			}
		})
	}
	calls.Wait()
	if err := ctx.Err(); err != nil {
		return found, err
	}
	for _, a := range answers {
		if a.err != nil {
			found.Silent++
		}
		found.Texts = append(found.Texts, a.texts...)
		found.Total.Texts += a.total
	}
	slices.SortStableFunc(found.Texts, func(a, b domain.TextRef) int {
		switch {
		case a.Whole == b.Whole:
			return 0
		case a.Whole:
			return -1
		}
		return 1
	})
	found.Texts = found.Texts[:min(len(found.Texts), limit)]
	return found, nil
}
