package service_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/store/storetest"
)

// servers are fake project servers: functions by URL.
type servers struct {
	answer sync.Map // URL to func(known) (*domain.PipelineAnswer, error)
	calls  atomic.Int64
}

type answerFunc func(known *domain.PipelineAnswer) (*domain.PipelineAnswer, error)

func (s *servers) Pipeline(_ context.Context, p domain.Project, known *domain.PipelineAnswer) (*domain.PipelineAnswer, error) {
	s.calls.Add(1)
	answer, _ := s.answer.Load(p.URL)
	return answer.(answerFunc)(known)
}

func (s *servers) set(url string, answer answerFunc) { s.answer.Store(url, answer) }

// good responds after a delay, with a number that increases with each call.
func good(delay time.Duration) answerFunc {
	var n atomic.Int64
	return func(*domain.PipelineAnswer) (*domain.PipelineAnswer, error) {
		time.Sleep(delay) // of the bubble's clock
		return &domain.PipelineAnswer{Raw: fmt.Appendf(nil, "[%d]", n.Add(1))}, nil
	}
}

func bad(delay time.Duration, message string) answerFunc {
	return func(*domain.PipelineAnswer) (*domain.PipelineAnswer, error) {
		time.Sleep(delay)
		return nil, domain.Errorf(domain.BadGateway, "%s", message)
	}
}

// withServers runs test in virtual time with projects p0, p1, … at the addresses http://p0, …, which respond with answers.
func withServers(t *testing.T, answers []answerFunc, test func(t *testing.T, s *service.Service, up *servers)) {
	t.Helper()
	db := openStore(t, storetest.Dir(t))
	synctest.Test(t, func(t *testing.T) {
		up, projects := &servers{}, []domain.Project(nil)
		for i, answer := range answers {
			name := fmt.Sprintf("p%04d", i)
			projects = append(projects, domain.Project{Name: name, URL: "http://" + name})
			up.set("http://"+name, answer)
		}
		if err := db.AddProjects(t.Context(), nil, "", projects...); err != nil {
			t.Fatal(err)
		}
		s, err := service.New(t.Context(), service.Options{
			Store: db, Projects: up, Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		test(t, s, up)
	})
}

// ask gets all pipelines as the API does, and returns how long that took.
func ask(t *testing.T, s *service.Service) ([]domain.ProjectPipeline, time.Duration) {
	t.Helper()
	began := time.Now()
	_, seen := s.Pipelines.All(t.Context(), 100*time.Millisecond)
	return seen, time.Since(began)
}

func brief(p domain.ProjectPipeline) string {
	switch {
	case !p.Reachable:
		return "unreachable: " + p.Error
	case p.Stale:
		return "stale " + string(p.Text())
	}
	return "fresh " + string(p.Text())
}

func wantSeen(t *testing.T, s *service.Service, took time.Duration, want ...string) {
	t.Helper()
	seen, real := ask(t, s)
	if real != took {
		t.Errorf("took %v, want %v", real, took)
	}
	for i, w := range want {
		if got := brief(seen[i]); got != w {
			t.Errorf("project %d: %s, want %s", i, got, w)
		}
	}
}

func TestPipelineIsAskedAgainAfterATenthOfASecond(t *testing.T) {
	withServers(t, []answerFunc{good(time.Millisecond)}, func(t *testing.T, s *service.Service, up *servers) {
		wantSeen(t, s, time.Millisecond, "fresh [1]")
		time.Sleep(99 * time.Millisecond) // asked 100 ms ago
		wantSeen(t, s, 0, "fresh [1]")
		time.Sleep(time.Millisecond)
		wantSeen(t, s, time.Millisecond, "fresh [2]")
		time.Sleep(time.Second)
		if _, seen := s.Pipelines.All(t.Context(), 2*time.Second); brief(seen[0]) != "fresh [2]" || up.calls.Load() != 2 {
			t.Errorf("to who takes 2 s old answers: %s after %d calls", brief(seen[0]), up.calls.Load())
		}
	})
}

func TestRequestsShareFetches(t *testing.T) {
	withServers(t, []answerFunc{good(50 * time.Millisecond), bad(50*time.Millisecond, "refused")}, func(t *testing.T, s *service.Service, up *servers) {
		var group sync.WaitGroup
		for range 100 {
			group.Go(func() { wantSeen(t, s, 50*time.Millisecond, "fresh [1]", "unreachable: refused") })
		}
		group.Wait()
		if calls := up.calls.Load(); calls != 2 {
			t.Errorf("%d calls for two projects", calls)
		}
	})
}

func TestSlowProjectShowsItsLastGoodAnswer(t *testing.T) {
	withServers(t, []answerFunc{good(time.Second), good(0)}, func(t *testing.T, s *service.Service, up *servers) {
		wantSeen(t, s, 250*time.Millisecond, "unreachable: no answer yet", "fresh [1]")
		time.Sleep(500 * time.Millisecond)
		wantSeen(t, s, 0, "unreachable: no answer yet", "fresh [2]") // its time was over long ago
		time.Sleep(350 * time.Millisecond)                           // it answered at 1 s, and was asked again since the second look
		wantSeen(t, s, 150*time.Millisecond, "stale [1]", "fresh [3]")
		time.Sleep(760 * time.Millisecond) // its second answer came at 2 s, asked a second before
		wantSeen(t, s, 250*time.Millisecond, "stale [2]", "fresh [4]")
		if calls := up.calls.Load(); calls != 3+4 {
			t.Errorf("%d calls", calls)
		}
		time.Sleep(2 * time.Second) // bubbles end when all fetches have
	})
}

func TestAnswerThatWasUnderWayIsFollowedByAFreshOne(t *testing.T) {
	withServers(t, []answerFunc{good(120 * time.Millisecond)}, func(t *testing.T, s *service.Service, up *servers) {
		impatient, cancel := context.WithCancel(t.Context())
		cancel()
		s.Pipelines.All(impatient, 0) // asks at 0
		time.Sleep(101 * time.Millisecond)
		// Asked 101 ms ago is too old, so at 120 ms it is asked again, which answers at 240.
		wantSeen(t, s, 139*time.Millisecond, "fresh [2]")
	})
}

func TestFailedProjectIsNotWaitedForAndComesBack(t *testing.T) {
	withServers(t, []answerFunc{bad(10*time.Millisecond, "connection refused")}, func(t *testing.T, s *service.Service, up *servers) {
		wantSeen(t, s, 10*time.Millisecond, "unreachable: connection refused")
		time.Sleep(time.Second)
		up.set("http://p0000", bad(100*time.Millisecond, "timed out"))
		wantSeen(t, s, 0, "unreachable: connection refused")
		time.Sleep(50 * time.Millisecond)
		wantSeen(t, s, 0, "unreachable: connection refused") // still one fetch
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		wantSeen(t, s, 0, "unreachable: timed out")
		if calls := up.calls.Load(); calls != 2 {
			t.Errorf("%d calls", calls)
		}
		time.Sleep(time.Second)
		up.set("http://p0000", good(20*time.Millisecond))
		wantSeen(t, s, 0, "unreachable: timed out")
		time.Sleep(20 * time.Millisecond)
		synctest.Wait()
		wantSeen(t, s, 0, "fresh [1]")
		time.Sleep(time.Second)
		wantSeen(t, s, 20*time.Millisecond, "fresh [2]")

		last := time.Now()
		up.set("http://p0000", bad(0, "no such host"))
		time.Sleep(time.Second)
		seen, _ := ask(t, s)
		if got := seen[0]; brief(got) != "unreachable: no such host" || !got.LastSeen.Equal(last) || string(got.Text()) != "[2]" {
			t.Errorf("after it went: %s, last seen %v, %s", brief(got), got.LastSeen, got.Text())
		}
	})
}

func TestHangingProjectsDoNotKeepOthersFromBeingAsked(t *testing.T) {
	answers := make([]answerFunc, 1000)
	for i := range answers {
		answers[i] = good(5 * time.Millisecond)
		if i < 500 {
			answers[i] = bad(2*time.Second, "timed out")
		}
	}
	withServers(t, answers, func(t *testing.T, s *service.Service, up *servers) {
		seen, took := ask(t, s)
		for i, p := range seen {
			want := "fresh [1]"
			if i < 500 {
				want = "unreachable: no answer yet"
			}
			if brief(p) != want {
				t.Fatalf("project %d: %s, want %s", i, brief(p), want)
			}
		}
		if took != 250*time.Millisecond || up.calls.Load() != 1000 {
			t.Errorf("took %v, %d calls", took, up.calls.Load())
		}
		time.Sleep(2 * time.Second)
		seen, took = ask(t, s)
		if brief(seen[0]) != "unreachable: timed out" || brief(seen[999]) != "fresh [2]" || took > 50*time.Millisecond {
			t.Errorf("second look took %v: %s, %s", took, brief(seen[0]), brief(seen[999]))
		}
		time.Sleep(3 * time.Second)
	})
}

func TestWhatWasKnownIsForgottenWithTheAddress(t *testing.T) {
	withServers(t, []answerFunc{good(0), good(0)}, func(t *testing.T, s *service.Service, up *servers) {
		wantSeen(t, s, 0, "fresh [1]", "fresh [1]")
		up.set("http://elsewhere", func(known *domain.PipelineAnswer) (*domain.PipelineAnswer, error) {
			if known != nil {
				return nil, errors.New("another server's answer was offered")
			}
			time.Sleep(time.Second)
			return &domain.PipelineAnswer{Raw: []byte("[77]")}, nil
		})
		if _, err := s.Projects.Update(t.Context(), "p0000", "http://elsewhere", nil); err != nil {
			t.Fatal(err)
		}
		wantSeen(t, s, 250*time.Millisecond, "unreachable: no answer yet", "fresh [1]")
		if _, err := s.Projects.Remove(t.Context(), "p0001"); err != nil {
			t.Fatal(err)
		}
		if seen, _ := ask(t, s); len(seen) != 1 {
			t.Errorf("%d projects", len(seen))
		}
		if _, err := s.Projects.Add(t.Context(), "p0001", "http://p0001", nil); err != nil {
			t.Fatal(err)
		}
		wantSeen(t, s, 0, "unreachable: no answer yet", "fresh [2]")
		time.Sleep(2 * time.Second)
	})
}

func TestPanickingFetchCostsItsProjectOnly(t *testing.T) {
	panicking := func(*domain.PipelineAnswer) (*domain.PipelineAnswer, error) { panic("boom") }
	withServers(t, []answerFunc{panicking, good(0)}, func(t *testing.T, s *service.Service, up *servers) {
		wantSeen(t, s, 0, "unreachable: request failed", "fresh [1]")
		up.set("http://p0001", func(*domain.PipelineAnswer) (*domain.PipelineAnswer, error) { return nil, nil }) // what follows panics
		time.Sleep(time.Second)
		wantSeen(t, s, 0, "unreachable: request failed", "unreachable: request failed")
		up.set("http://p0001", good(0))
		time.Sleep(time.Second)
		ask(t, s)
		synctest.Wait()
		wantSeen(t, s, 0, "unreachable: request failed", "fresh [1]")
	})
}

func TestASlowProjectDoesNotSlowDownThePagesOfOthers(t *testing.T) {
	withServers(t, []answerFunc{good(time.Millisecond), good(200 * time.Millisecond)}, func(t *testing.T, s *service.Service, _ *servers) {
		page := func() (seen []domain.ProjectPipeline, took time.Duration) {
			began := time.Now()
			return s.Pipelines.Boards(t.Context(), 500*time.Millisecond).Pipelines, time.Since(began)
		}
		if seen, _ := page(); !seen[1].Reachable {
			t.Error("the first page does not wait for an answer")
		}
		for range 10 {
			time.Sleep(time.Second)
			if seen, took := page(); took > 100*time.Millisecond || seen[1].Stale {
				t.Errorf("a page took %v, stale: %t", took, seen[1].Stale)
			}
		}
		time.Sleep(time.Minute)
		if _, took := page(); took < 150*time.Millisecond {
			t.Error("what is old is shown without waiting for news")
		}
	})
}
