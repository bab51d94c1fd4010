package sqlite_test

import (
	"fmt"
	"testing"

	"switchyard/internal/domain"
	"switchyard/internal/generate"
	"switchyard/internal/store/sqlite"
)

func TestAReasonThatNoEventHasAnyMoreTakesNoSpace(t *testing.T) {
	if testing.Short() {
		t.Skip("takes over a second of processor time")
	}
	db := openStore(t)
	for round := range 20 {
		var records []domain.Record
		for n := range 100 {
			n += 100 * round
			records = append(records, eventRecord(t, fmt.Sprintf(`{"type":"note","text":"something said in a room by somebody %d","timestamp_ms":%d}`, n, n)))
		}
		appendEvents(t, db, feedRead("alpha", records...))
		remove(t, db, expired("alpha", 100, 10))
	}
	texts, size, err := db.Words(t.Context())
	if err != nil || texts != 10 || size > 80<<10 { // removed ones go with the next merges; all would take 240 KiB
		t.Errorf("%d texts in %d bytes, %v", texts, size, err)
	}
}

func TestARemovalThatIsKilledLeavesWholeEvents(t *testing.T) {
	if testing.Short() {
		t.Skip("takes over a second of processor time")
	}
	dir := t.TempDir()
	db, err := sqlite.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	const events = 3000
	reads := generate.Reads(0, events, 1)
	for i := range reads {
		reads[i].Cursor.Project = "p"
	}
	appendEvents(t, db, reads...)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if killed := kill(t, dir); killed == 0 {
		t.Error("nothing was killed")
	}
	if db, err = sqlite.Open(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	page, err := db.Events(t.Context(), domain.EventQuery{Limit: 100})
	if err != nil || len(page.Events) != 10 || page.Events[0].ID != events-9 {
		t.Errorf("left are %v, %v", ids(page.Events), err)
	}
	for _, e := range page.Events {
		if want := generate.Read(int(e.ID-1), 1).Records[0]; string(e.JSON) != string(want.JSON) {
			t.Errorf("event %d is %s, was %s", e.ID, e.JSON, want.JSON)
		}
	}
	if err := db.CheckWords(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTheIndexOfWordsIsMergedLittleByLittle(t *testing.T) {
	db := openStore(t)
	most, events := 0, 1500
	if testing.Short() {
		events = 300
	}
	for n := range events {
		appendEvents(t, db, generate.Read(n, 3))
		if n%50 == 49 {
			segments, err := db.WordSegments(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			most = max(most, segments)
		}
	}
	if most < 3 || most > 60 { // 1 would be all of it merged at once; a segment is left by each transaction
		t.Errorf("up to %d segments", most)
	}
	if err := db.CheckWords(t.Context()); err != nil {
		t.Error(err)
	}
}
