package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/store/sqlite"
)

const (
	// eventsVersion is that of the databases below; a greater one makes them again.
	eventsVersion = 1
	// eventProjects is how many projects the events are of.
	eventProjects = 200
	// eventBatch is how many events of a project one read brings, and eventReads how many reads are stored at once.
	eventBatch, eventReads = 50, 20
)

// eventStore returns the data directory of a database with so many events, which is made where it is not there yet: from the
// one with fewer, through the store itself, so that it is as the program of today would have made it.
func eventStore(steps []int, step int) (dir string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	name := func(step int) string {
		return filepath.Join(cache, "switchyard-bench", fmt.Sprintf("events-v%d-%d", eventsVersion, steps[step]))
	}
	dir = name(step)
	if _, err := os.Stat(filepath.Join(dir, "complete")); err == nil {
		return dir, nil
	}
	_ = os.RemoveAll(dir) // what an earlier run left
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	before := 0
	if step > 0 {
		smaller, err := eventStore(steps, step-1)
		if err != nil {
			return "", err
		}
		if before, err = steps[step-1], copyFile(filepath.Join(smaller, sqlite.FileName), filepath.Join(dir, sqlite.FileName)); err != nil {
			return "", err
		}
	}
	began := time.Now()
	fmt.Fprintf(os.Stderr, "making a database of %s events in %s\n", thousands(steps[step]), dir)
	if err := fill(dir, before, steps[step]); err != nil {
		return "", err
	}
	fmt.Fprintf(os.Stderr, "made in %v\n", time.Since(began).Round(time.Second))
	return dir, os.WriteFile(filepath.Join(dir, "complete"), nil, 0o600)
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer target.Close()
	_, err = io.Copy(target, source)
	return err
}

// fill appends the events from number first up to, not including, end, and accounts for them as a gateway does.
func fill(dir string, first, end int) (err error) {
	ctx := context.Background()
	db, err := sqlite.Open(ctx, dir)
	if err != nil {
		return err
	}
	defer func() {
		if closed := db.Close(); err == nil {
			err = closed
		}
	}()
	for n := first; n < end; {
		var reads []domain.FeedRead
		for len(reads) < eventReads && n < end {
			project := n / eventBatch % eventProjects
			read := domain.FeedRead{ReceivedAt: eventTime(n)}
			read.Cursor = domain.FeedCursor{Project: fmt.Sprintf("project-%04d", project), URL: "http://127.0.0.1:1"}
			for ; len(read.Records) < eventBatch && n < end; n++ {
				record, err := domain.ParseRecord(eventRecord(n))
				if err != nil {
					return err
				}
				read.Records = append(read.Records, record)
			}
			reads = append(reads, read)
		}
		if _, err := db.AppendEvents(ctx, reads); err != nil {
			return err
		}
	}
	return account(ctx, db)
}

// account waits until the times in stages are known up to the newest events.
func account(ctx context.Context, db *sqlite.DB) error {
	quiet := slog.New(slog.DiscardHandler)
	svc, err := service.New(ctx, service.Options{Store: db, Log: quiet})
	if err != nil {
		return err
	}
	last, err := db.LastEventID(ctx)
	if err != nil {
		return err
	}
	const unsaved = 10_000 // which a gateway accounts for at its next start
	for {
		if _, err := svc.Charts.Draw(ctx, nil); err != nil {
			return err
		}
		upTo, err := db.StaysUpTo(ctx)
		if err != nil || upTo >= last-unsaved {
			return err
		}
		time.Sleep(time.Second)
	}
}

// eventTime spreads the events over the last months: a smaller database ends earlier.
func eventTime(n int) time.Time {
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(n) * 1500 * time.Millisecond)
}

var (
	eventStages = []string{"1_backlog", "2_current", "3_qa", "4_merge", "5_done"}
	eventWords  = []string{"sign", "in", "pay", "by", "card", "export", "report", "mail", "invoice", "search", "filter", "faster", "page", "customer", "address", "refund", "cache", "retry", "queue", "upload", "picture", "mobile", "print", "archive"}
)

// eventRecord is event n as a project server sends it: a story goes through its stages, and one of four is blocked on the way.
func eventRecord(n int) []byte {
	stamp := eventTime(n).UnixMilli()
	inProject := n/(eventBatch*eventProjects)*eventBatch + n%eventBatch // the how manieth of its project
	story, step := inProject/len(eventStages), inProject%len(eventStages)
	r := rand.New(rand.NewPCG(uint64(story), uint64(n/eventBatch%eventProjects)))
	word := func() string { return eventWords[r.IntN(len(eventWords))] }
	name := fmt.Sprintf("%s %s %s %s for %s %d", word(), word(), word(), word(), word(), story)
	id := fmt.Sprintf("%d_story_%s_%s", story, word(), word())
	if step == len(eventStages)-1 {
		return fmt.Appendf(nil, `{"type":"story_blocked","story_id":%q,"story_name":%q,"reason":"waiting for the %s of the %s","timestamp_ms":%d}`,
			id, name, word(), word(), stamp)
	}
	return fmt.Appendf(nil, `{"type":"stage_transition","story_id":%q,"story_name":%q,"from_stage":%q,"to_stage":%q,"timestamp_ms":%d}`,
		id, name, eventStages[step], eventStages[step+1], stamp)
}
