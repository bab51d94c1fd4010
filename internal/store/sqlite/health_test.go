package sqlite_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/domain"
)

func TestFullDiskShowsUntilAWriteIsGood(t *testing.T) {
	db := openStore(t)
	synctest.Test(t, func(t *testing.T) {
		write := func(size int) error { return db.SetState(t.Context(), "key", strings.Repeat("x", size)) }
		want := func(when, message string, since time.Time) {
			t.Helper()
			began, err := db.WriteFailure()
			if message == "" && err != nil || message != "" && (err == nil || domain.MessageOf(err) != message || !began.Equal(since)) {
				t.Errorf("%s: %v since %v, want %q since %v", when, err, began, message, since)
			}
		}
		if err := write(1); err != nil {
			t.Fatal(err)
		}
		want("at first", "", time.Time{})
		if err := db.FillDisk(true); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for range 2 {
			if err := write(1 << 20); err == nil {
				t.Fatal("the disk is not full")
			}
			want("full", "the store failed: the disk is full", began)
			time.Sleep(30 * time.Second)
		}
		if err := db.RemoveAgent(t.Context(), nil, "none"); err == nil { // it writes nothing, but the store did what it was asked
			t.Error("an agent that is none was removed")
		}
		want("half a minute later", "the store failed: the disk is full", began)
		time.Sleep(31 * time.Second)
		want("a minute after the last write", "", time.Time{})
		if err := write(1 << 20); err == nil {
			t.Fatal("the disk is not full")
		}
		if err := db.FillDisk(false); err != nil {
			t.Fatal(err)
		}
		if err := write(1 << 20); err != nil {
			t.Fatal(err)
		}
		want("after a good write", "", time.Time{})
	})
}
