package supervise_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/supervise"
)

func TestLoopThatFailsOrPanicsIsStartedAgainAndLoggedOnceEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		group := supervise.New(t.Context(), slog.New(slog.NewTextHandler(&log, nil)))
		calls := 0
		group.Go("feeds", func(context.Context) error {
			switch calls++; calls {
			case 1:
				return errors.New("no luck")
			case 2:
				panic("off the rails")
			}
			return nil
		})
		group.Wait()
		if calls != 3 {
			t.Errorf("loop was called %d times, want 3: nil ends it", calls)
		}
		text := log.String()
		for _, want := range []string{"loop=feeds", "no luck", "panic: off the rails", "supervise_test.go"} {
			if !strings.Contains(text, want) {
				t.Errorf("log lacks %q:\n%s", want, text)
			}
		}
		if lines := strings.Count(text, "\n"); lines != 2 {
			t.Errorf("%d log lines for two failures:\n%s", lines, text)
		}
	})
}

func TestAPanicEndsItsGoroutineOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		released := make(chan struct{})
		supervise.Go(slog.New(slog.NewTextHandler(&log, nil)), "fetch", func() {
			defer close(released)
			panic("off the rails")
		})
		<-released
		synctest.Wait()
		text := log.String()
		if strings.Count(text, "\n") != 1 || !strings.Contains(text, "in=fetch") || !strings.Contains(text, "off the rails") {
			t.Errorf("the log has %s", text)
		}
	})
}

func TestGroupEndsQuietlyWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		group := supervise.New(ctx, slog.New(slog.NewTextHandler(&log, nil)))
		group.Go("waits", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		group.Go("pauses", func(context.Context) error { return errors.New("always") })
		time.Sleep(time.Hour)
		synctest.Wait()
		failures := strings.Count(log.String(), "\n")
		if failures < 120 || failures > 300 {
			t.Errorf("a loop that always fails ran %d times in an hour, want about one in 15 to 30 s", failures)
		}
		cancel()
		group.Wait()
		if more := strings.Count(log.String(), "\n") - failures; more != 0 {
			t.Errorf("%d log lines at the end", more)
		}
	})
}

func TestBackoffDoublesUpToItsMaximumAndJitterOnlyShortens(t *testing.T) {
	backoff := supervise.Backoff{First: time.Second, Max: 10 * time.Second}
	for range 3 {
		for _, full := range []time.Duration{1, 2, 4, 8, 10, 10, 10} {
			full *= time.Second
			if pause := backoff.Next(); pause > full || pause < full/2 {
				t.Errorf("pause %v, want %v to %v", pause, full/2, full)
			}
		}
		backoff.Reset()
	}
}

func TestSleepEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if !supervise.Sleep(ctx, 0) || !supervise.Sleep(ctx, time.Millisecond) {
			t.Error("did not pass while the context lives")
		}
		if supervise.Sleep(ctx, time.Minute) || supervise.Sleep(ctx, 0) {
			t.Error("passed although the context ended")
		}
	})
}
