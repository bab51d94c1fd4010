// Package storetest has helpers that tests of the store share: records, reads of feeds, and expected results.
package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/internal/cluster"
	"switchyard/internal/domain"
)

// Events is the part of a database that holds the merged stream.
type Events interface {
	AppendEvents(ctx context.Context, reads []domain.FeedRead) (domain.AppendResult, error)
	ExpiredEvents(ctx context.Context, e domain.ExpiryQuery, limit int) ([]int64, error)
	RemoveEvents(ctx context.Context, token int64, ids []int64) error
}

// Strange are records that not every engine can store unchanged.
var Strange = []string{
	`{"type":"stage_transition","story_id":"1\u0000_story","story_name":"Nul\u0000l",` +
		`"from_stage":"2\u0000","to_stage":"3_qa","timestamp_ms":1}`,
	`{"type":"stage_transition","story_id":"1_story","story_name":"Null",` +
		`"from_stage":"2","to_stage":"3_qa","timestamp_ms":2}`,
	`{"type":"story_blocked","story_id":"` + strings.Repeat("ß", 1000) +
		`","story_name":"Long","reason":"a\u0000b","timestamp_ms":3}`,
	`{"type":"story_blocked","story_id":"` + strings.Repeat("ß", 999) +
		`x","story_name":"Long too","reason":"","timestamp_ms":4}`,
	`{"type":"note\u0000","text":["\u0000",{"x":"Ünï\u0000"}],"timestamp_ms":5}`,
	`{"type":"` + strings.Repeat("long", 4000) + `","timestamp_ms":6}`,
	`{"timestamp_ms":9223372036854775807}`,
	`{"type":"deep","nested":` + strings.Repeat("[", 1500) + strings.Repeat("]", 1500) +
		`,"story_id":"deep","timestamp_ms":7}`,
}

// Opened returns a database that has just been opened, and closes it at the end of the test.
func Opened[DB io.Closer](t testing.TB, db DB, err error) DB {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func Record(t testing.TB, text string) domain.Record {
	t.Helper()
	r, err := domain.ParseRecord(json.RawMessage(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return r
}

// Move returns a stage transition of the project's n-th story.
func Move(t testing.TB, n int) domain.Record {
	t.Helper()
	return Record(t, fmt.Sprintf(`{"type":"stage_transition","story_id":"%d_story","story_name":"Story %d",`+
		`"from_stage":"2_current","to_stage":"3_qa","timestamp_ms":%d}`, n, n, 1000+n))
}

func Read(project string, records ...domain.Record) domain.FeedRead {
	cursor := domain.FeedCursor{Project: project, URL: "http://" + project, Instance: "i"}
	for _, r := range records {
		cursor.Since = max(cursor.Since, r.At.UnixMilli())
		cursor.Sequence++
	}
	return domain.FeedRead{Cursor: cursor, Records: records, ReceivedAt: time.UnixMilli(5000)}
}

// Append stores reads and returns the events that are new. It takes several transactions for many: PostgreSQL ends one
// that waits for two seconds while a busy machine encodes what comes next.
func Append(t testing.TB, db Events, reads ...domain.FeedRead) []domain.Event {
	t.Helper()
	var added []domain.Event
	for batch := range slices.Chunk(reads, 200) {
		appended, err := db.AppendEvents(t.Context(), batch)
		if err != nil {
			t.Fatal(err)
		}
		added = append(added, appended.Added...)
	}
	return added
}

func IDs(events []domain.Event) []int64 {
	var list []int64
	for _, e := range events {
		list = append(list, e.ID)
	}
	return list
}

// Received returns read as received at Unix time seconds.
func Received(seconds int64, read domain.FeedRead) domain.FeedRead {
	read.ReceivedAt = time.Unix(seconds, 0)
	return read
}

// Expired selects a project's events received before Unix time seconds, except the newest keep.
func Expired(project string, seconds int64, keep int) domain.ExpiryQuery {
	return domain.ExpiryQuery{
		Project: project, Before: time.Unix(seconds, 0), Now: time.Unix(seconds+1000, 0), Keep: keep,
		Needed: math.MaxInt64,
	}
}

// Remove removes the events that e selects, a few at a time.
func Remove(t testing.TB, db Events, e domain.ExpiryQuery) (removed []int64) {
	t.Helper()
	for {
		ids, err := db.ExpiredEvents(t.Context(), e, 3)
		if err != nil {
			t.Fatal(err)
		}
		if len(ids) == 0 {
			return removed
		}
		if err := db.RemoveEvents(t.Context(), 0, ids); err != nil {
			t.Fatal(err)
		}
		removed = append(removed, ids...)
	}
}

// Lead makes the gateway the leader, whoever was, and returns its fencing token.
func Lead(t testing.TB, store cluster.Store, id string) (token int64) {
	t.Helper()
	lease, _, err := store.Renew(t.Context(), cluster.Gateway{ID: id, Name: id}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	token, granted, err := store.TakeOver(t.Context(), id, lease, time.Hour)
	if err != nil || !granted {
		t.Fatalf("not granted to %s: %v", id, err)
	}
	return token
}
