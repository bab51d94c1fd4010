package service_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/service"
)

// versioned is a project server that sends its pipeline's version.
type versioned struct {
	mu      sync.Mutex
	version int
	asked   []time.Time
	err     error
	delay   time.Duration
}

func (v *versioned) setDelay(delay time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.delay = delay
}

func (v *versioned) answer(known *domain.PipelineAnswer) (*domain.PipelineAnswer, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asked = append(v.asked, time.Now())
	delay := v.delay
	v.mu.Unlock()
	time.Sleep(delay)
	v.mu.Lock()
	if v.err != nil {
		return nil, v.err
	}
	tag := fmt.Sprintf(`"v%d"`, v.version)
	if known != nil && known.ETag == tag {
		return known, nil
	}
	return &domain.PipelineAnswer{ETag: tag, Raw: []byte(tag), Stages: []domain.Stage{}}, nil
}

func (v *versioned) setVersion(version int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.version = version
}

// takeAsked returns the number of fetches since the last call.
func (v *versioned) takeAsked() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := len(v.asked)
	v.asked = nil
	return n
}

// refetching runs test in a bubble with the project p0000, whose pipeline is fetched in the background.
func refetching(t *testing.T, test func(s *service.Service, up *versioned, read func(domain.FeedResult))) {
	t.Helper()
	up := &versioned{version: 1}
	withServers(t, []answerFunc{up.answer}, func(t *testing.T, s *service.Service, _ *servers) {
		test(s, up, func(r domain.FeedResult) {
			s.Pipelines.RefetchIfChanged(domain.Project{Name: "p0000", URL: "http://p0000"}, r)
			time.Sleep(time.Second)
			synctest.Wait()
		})
	})
}

func named(version string) domain.FeedResult { return domain.FeedResult{Version: version} }

func TestAPipelineIsFetchedWhenItsFeedNamesAnotherVersion(t *testing.T) {
	refetching(t, func(s *service.Service, up *versioned, read func(domain.FeedResult)) {
		s.Pipelines.RefetchIfChanged(domain.Project{Name: "p0000", URL: "http://elsewhere"}, named("v1"))
		synctest.Wait()
		if up.takeAsked() != 0 {
			t.Error("the feed of another address counts")
		}
		for _, step := range []struct {
			name    string
			version int // of the server
			result  domain.FeedResult
			fetches int
		}{
			{"the first read", 1, named("v1"), 1},
			{"nothing new", 1, named("v1"), 0},
			{"events of which the pipeline is known", 1, domain.FeedResult{Version: "v1", News: true}, 0},
			{"another version", 2, named("v2"), 1},
			{"a version that is older than what is known", 2, named("v1"), 1},
			{"the feed fails", 2, domain.FeedResult{Failed: true}, 1},
			{"it is back", 2, named("v2"), 0},
			{"it fails again", 2, domain.FeedResult{Failed: true}, 1},
			{"it is back and names no version", 2, domain.FeedResult{}, 1},
			{"no news", 2, domain.FeedResult{}, 0},
			{"news", 2, domain.FeedResult{News: true}, 1},
		} {
			up.setVersion(step.version)
			if read(step.result); up.takeAsked() != step.fetches {
				t.Errorf("%s: not %d fetches", step.name, step.fetches)
			}
		}
	})
}

// TestABoardThatHasJustChangedHoldsNoPageUp: while its server is slow to show the change, pages have the last board,
// and call it stale only after a while. With thousands of boards, some have always just changed.
func TestABoardThatHasJustChangedHoldsNoPageUp(t *testing.T) {
	refetching(t, func(s *service.Service, up *versioned, read func(domain.FeedResult)) {
		look := func() (stale bool, took time.Duration) {
			began := time.Now()
			boards := s.Pipelines.Boards(context.Background(), 2*time.Second)
			return boards.Pipelines[0].Stale, time.Since(began)
		}
		read(named("v1"))
		for range 10 {
			read(named("v1"))
		}
		up.setDelay(time.Minute)
		s.Pipelines.RefetchIfChanged(domain.Project{Name: "p0000", URL: "http://p0000"}, named("v2"))
		if stale, took := look(); stale || took > 50*time.Millisecond {
			t.Errorf("just changed: stale %v after %v", stale, took)
		}
		time.Sleep(6 * time.Second)
		if stale, _ := look(); !stale {
			t.Error("a board is not stale 6 s after the last change that it lacks")
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
	})
}

func TestAPipelineWithoutAVersionIsFetchedOnceAMinute(t *testing.T) {
	refetching(t, func(_ *service.Service, up *versioned, read func(domain.FeedResult)) {
		for range 600 {
			read(domain.FeedResult{}) // a second goes by
		}
		if n := up.takeAsked(); n < 10 || n > 14 {
			t.Errorf("%d fetches in 10 minutes", n)
		}
	})
}

func TestAPipelineThatChangesAllTheTimeIsFetchedTwentyTimesASecond(t *testing.T) {
	refetching(t, func(s *service.Service, up *versioned, read func(domain.FeedResult)) {
		for i := range 10_000 {
			s.Pipelines.RefetchIfChanged(domain.Project{Name: "p0000", URL: "http://p0000"}, named(fmt.Sprint(i)))
			time.Sleep(time.Millisecond)
		}
		up.setVersion(7)
		read(named("v7"))
		if n := up.takeAsked(); n > 205 || n < 150 {
			t.Errorf("%d fetches in 10 s", n)
		}
		if read(named("v7")); up.takeAsked() != 0 {
			t.Error("the last change was not fetched")
		}
	})
}

func TestOneFetchServesTheBackgroundAndAReader(t *testing.T) {
	refetching(t, func(s *service.Service, up *versioned, _ func(domain.FeedResult)) {
		s.Pipelines.RefetchIfChanged(domain.Project{Name: "p0000", URL: "http://p0000"}, named("v1"))
		s.Pipelines.All(context.Background(), 100*time.Millisecond)
		synctest.Wait()
		if n := up.takeAsked(); n != 1 {
			t.Errorf("%d fetches", n)
		}
	})
}

func TestPagesDoNotAskForAPipelineThatIsStillTheSame(t *testing.T) {
	refetching(t, func(s *service.Service, up *versioned, read func(domain.FeedResult)) {
		read(named("v1"))
		look := func(d time.Duration) (stale bool) {
			for range d / time.Second {
				all := s.Pipelines.Boards(context.Background(), 500*time.Millisecond).Pipelines
				stale = stale || all[0].Stale
				time.Sleep(time.Second)
				synctest.Wait()
			}
			return stale
		}
		up.takeAsked()
		if stale, n := look(time.Minute), up.takeAsked(); n > 4 || n < 2 || stale {
			t.Errorf("%d fetches in a minute, stale: %t", n, stale)
		}
		if s.Pipelines.All(context.Background(), 100*time.Millisecond); up.takeAsked() != 1 {
			t.Error("who wants it fresh does not get it so")
		}
		read(domain.FeedResult{Failed: true})
		up.takeAsked()
		if look(10 * time.Second); up.takeAsked() < 9 {
			t.Error("a project whose feed fails counts as unchanged")
		}
	})
}
