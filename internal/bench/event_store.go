package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/store/sqlite"
)

const (
	// eventsVersion is the version of the databases; increasing it makes them again.
	eventsVersion = 3
	// eventProjects is the number of projects that the events belong to.
	eventProjects = 200
	// eventBatch is the number of events in a project's read, and eventReads the number of reads that are stored at once.
	eventBatch, eventReads = 50, 20
	// storedEvents is how many events go through the store itself. Larger databases contain copies of the smaller ones.
	storedEvents = 100_000
)

// eventStore returns the data directory of a database with the step's number of events, which it makes if it does not
// exist.
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
	_ = os.RemoveAll(dir) // left by an earlier run
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	began := time.Now()
	fmt.Fprintf(os.Stderr, "making a database of %s events in %s\n", thousands(steps[step]), dir)
	if steps[step] <= storedEvents {
		err = fill(dir, steps[step])
	} else {
		err = multiply(steps, step, dir)
	}
	if err != nil {
		return "", err
	}
	fmt.Fprintf(os.Stderr, "made in %v\n", time.Since(began).Round(time.Second))
	return dir, os.WriteFile(filepath.Join(dir, "complete"), nil, 0o600)
}

// multiply makes a step's database from copies of the previous step's.
func multiply(steps []int, step int, dir string) error {
	smaller, err := eventStore(steps, step-1)
	if err != nil {
		return err
	}
	if err := copyFile(filepath.Join(smaller, sqlite.FileName), filepath.Join(dir, sqlite.FileName)); err != nil {
		return err
	}
	return copyEvents(context.Background(), dir, steps[step]/steps[step-1]-1)
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

// fill appends events up to number end and accounts for them, as a gateway does.
func fill(dir string, end int) (err error) {
	ctx := context.Background()
	db, err := sqlite.Open(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, db.Close()) }()
	begin := time.Now().Add(-eventSpan)
	at := func(n int) time.Time { return begin.Add(eventSpan / time.Duration(end) * time.Duration(n)) }
	for n := 0; n < end; {
		var reads []domain.FeedRead
		for len(reads) < eventReads && n < end {
			project := n / eventBatch % eventProjects
			read := domain.FeedRead{ReceivedAt: at(n)}
			read.Cursor = domain.FeedCursor{Project: fmt.Sprintf("project-%04d", project), URL: "http://127.0.0.1:1"}
			for ; len(read.Records) < eventBatch && n < end; n++ {
				record, err := domain.ParseRecord(eventRecord(n, at(n)))
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
	return nil
}

var (
	eventStages = []string{"1_backlog", "2_current", "3_qa", "4_merge", "5_done", "6_archived"}
	eventWords  = []string{
		"sign", "in", "pay", "by", "card", "export", "report", "mail", "invoice", "search", "filter",
		"faster", "page", "customer", "address", "refund", "cache", "retry", "queue", "upload", "picture", "mobile", "print",
		"archive",
	}
)

// eventRecord returns event n as a project server sends it. A story goes through its stages, one event each; every
// other story is blocked on the way, and skips testing.
func eventRecord(n int, at time.Time) []byte {
	stamp := at.UnixMilli()
	inProject := n/(eventBatch*eventProjects)*eventBatch + n%eventBatch // its number within its project
	story, step := inProject/(len(eventStages)-1), inProject%(len(eventStages)-1)
	r := rand.New(rand.NewPCG(uint64(story), uint64(n/eventBatch%eventProjects)))
	word := func() string { return eventWords[r.IntN(len(eventWords))] }
	name := fmt.Sprintf("%s %s %s %s for %s %d", word(), word(), word(), word(), word(), story)
	id := fmt.Sprintf("%d_story_%s_%s", story, word(), word())
	from, to := eventStages[step], eventStages[step+1]
	switch blocked := story%2 == 0; {
	case blocked && step == 1:
		return fmt.Appendf(nil, `{"type":"story_blocked","story_id":%q,"story_name":%q,`+
			`"reason":"waiting for the %s of the %s","timestamp_ms":%d}`, id, name, word(), word(), stamp)
	case blocked && step == 2:
		from = eventStages[1]
	}
	return fmt.Appendf(nil, `{"type":"stage_transition","story_id":%q,"story_name":%q,`+
		`"from_stage":%q,"to_stage":%q,"timestamp_ms":%d}`, id, name, from, to, stamp)
}
