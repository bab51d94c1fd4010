package store_test

import (
	"crypto/sha256"
	"reflect"
	"slices"
	"strings"
	"testing"

	"switchyard/internal/domain"
	"switchyard/internal/fold"
	"switchyard/internal/generate"
	"switchyard/internal/store"
)

// lastSchema is how many migrations the version before event texts were stored once knew.
const lastSchema = 6

// oldDatabase makes a database of an earlier version with so many events of four projects in it, and some others.
func oldDatabase(t *testing.T, n int) (dir string, reads []domain.FeedRead) {
	t.Helper()
	dir = t.TempDir()
	db, err := store.OldDatabase(t.Context(), dir, lastSchema)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	reads = generate.Reads(0, n, 4)
	for _, text := range []string{
		`{"type":"deploy","story_id":"7_other","where":{"hosts":["Web-1","b\\c"]},"timestamp_ms":2}`,
		`{"type":"feed_gap","missed":3,"timestamp_ms":5}`,
		`{"type":"story_blocked","story_id":"12_pay","story_name":"Zahlung ÜBER \"alles\"","reason":"100%_sure","timestamp_ms":1}`,
		`{"type":"story_blocked","story_id":"12_pay","story_name":"Zahlung","reason":null,"extra":"Zusatz","timestamp_ms":0}`,
		`{"timestamp_ms":9223372036854775807}`,
	} {
		reads = append(reads, feedRead("Ärger", eventRecord(t, text)))
	}
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it does nothing
	exec := func(statement string, args ...any) {
		t.Helper()
		if _, err := tx.Exec(statement, args...); err != nil {
			t.Fatal(err)
		}
	}
	for i, read := range reads {
		r := read.Records[0]
		digest := sha256.Sum256(r.JSON)
		words := strings.ToLower(strings.Join(append([]string{read.Cursor.Project}, r.Texts()...), "\n"))
		exec(`INSERT INTO events (id, project, type, timestamp_ms, received_at_ms, record, words, digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
			i+1, read.Cursor.Project, r.Type, r.At.UnixMilli(), read.ReceivedAt.UnixMilli(), string(r.JSON), words, digest[:16])
		if d := r.Details(); d.StoryID != "" && r.Type != "deploy" {
			exec("INSERT INTO stories (project, story_id, story_name, folded) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET story_name = excluded.story_name, folded = excluded.folded",
				read.Cursor.Project, d.StoryID, d.StoryName, fold.Text(d.StoryID+"\n"+d.StoryName))
		}
	}
	exec("INSERT INTO stories (project, story_id, story_name, folded) VALUES ('Ärger', '1_shown', 'Nur gezeigt', ?)", fold.Text("1_shown\nNur gezeigt"))
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	return dir, reads
}

// sameAsBefore fails unless the database holds what the reads brought, under all queries.
func sameAsBefore(t *testing.T, db *store.DB, reads []domain.FeedRead) {
	t.Helper()
	last, err := db.LastEventID(t.Context())
	if err != nil || last != int64(len(reads)) {
		t.Errorf("the last id is %d, %v, want %d", last, err, len(reads))
	}
	middle := int64(len(reads) / 2)
	for _, q := range []domain.EventQuery{
		{},
		{After: middle},
		{Project: "Ärger"},
		{Project: generate.Project(2), After: 10},
		{Type: domain.StoryBlocked},
		{Project: generate.Project(1), Type: domain.MergeFailure},
		{Text: "web-1"},
		{Text: "CONFLICT in"},
		{Text: "über \""},
		{Text: "4_merge", Project: generate.Project(3)},
		{Text: "st"},
		{Text: "ärger"},
		{Type: ""},
	} {
		for _, backward := range []bool{false, true} {
			q.Backward, q.Limit = backward, 50
			if backward {
				q.Before, q.After = q.After, 0
			}
			want := selected(q, reads)
			page, err := db.Events(t.Context(), q)
			if err != nil || !slices.Equal(ids(page.Events), want[:min(len(want), q.Limit)]) || page.More != (len(want) > q.Limit) {
				t.Errorf("%+v: %v, more: %t, %v, want %v", q, ids(page.Events), page.More, err, want)
			}
			for _, e := range page.Events {
				read := reads[e.ID-1]
				if want := (domain.Event{ID: e.ID, Project: read.Cursor.Project, ReceivedAt: read.ReceivedAt, Record: read.Records[0]}); !reflect.DeepEqual(e, want) {
					t.Fatalf("event is\n%+v, was\n%+v", e, want)
				}
			}
		}
	}
	var pay []int64
	for i, read := range reads {
		if read.Records[0].Details().StoryID == "12_pay" {
			pay = append(pay, int64(i+1))
		}
	}
	if history, err := db.StoryEvents(t.Context(), "Ärger", "12_pay", 10); err != nil || !slices.Equal(ids(history), pay) {
		t.Errorf("history %v, %v, want %v", ids(history), err, pay)
	}
	for id, want := range map[string]string{"12_pay": "Zahlung", "1_shown": "Nur gezeigt"} {
		if name, err := db.StoryName(t.Context(), "Ärger", id); name != want || err != nil {
			t.Errorf("%s has the name %q, %v", id, name, err)
		}
	}
	for words, want := range map[string][]domain.StoryRef{
		"gezeigt": {{Project: "Ärger", ID: "1_shown", Name: "Nur gezeigt"}},
		"lung ay": {{Project: "Ärger", ID: "12_pay", Name: "Zahlung"}},
		"alles":   nil, // was its name once
		"zq":      nil,
	} {
		if found, err := db.FindStories(t.Context(), strings.Fields(words), 10); err != nil || !slices.Equal(found, want) {
			t.Errorf("%s: found %v, %v", words, found, err)
		}
	}
}

// selected are the ids of what q selects, counted from 1.
func selected(q domain.EventQuery, reads []domain.FeedRead) (want []int64) {
	for i, read := range reads {
		id, r := int64(i+1), read.Records[0]
		holds := func(text string) bool { return strings.Contains(strings.ToLower(text), strings.ToLower(q.Text)) }
		if (q.Project == "" || q.Project == read.Cursor.Project) && (q.Type == "" || q.Type == r.Type) && id > q.After &&
			(q.Before == 0 || id < q.Before) && slices.ContainsFunc(append(r.Texts(), read.Cursor.Project), holds) {
			want = append(want, id)
		}
	}
	if q.Backward {
		slices.Reverse(want)
	}
	return want
}

func TestADatabaseOfAnEarlierVersionIsReadAndWrittenWhileItIsUpgraded(t *testing.T) {
	dir, reads := oldDatabase(t, 600)
	db, err := store.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	total, stories, err := db.UpgradeLeft(t.Context())
	if err != nil || total != int64(len(reads)) || stories == 0 {
		t.Errorf("%d events and %d stories are left, %v", total, stories, err)
	}
	for step := 0; ; step++ {
		sameAsBefore(t, db, reads)
		// What is stored already stays so, wherever it is.
		again, fresh := reads[(step*37)%len(reads)], generate.Read(len(reads)+step, 4)
		if added := appendEvents(t, db, again, fresh); len(added) != 1 || added[0].ID != int64(len(reads)+1) {
			t.Errorf("step %d: added %v", step, added)
		}
		reads = append(reads, fresh)
		moved, err := db.Upgrade(t.Context(), 100)
		if err != nil {
			t.Fatal(err)
		}
		if moved == 0 {
			break
		}
	}
}

func TestAnUpgradeThatIsKilledGoesOnWhereItWas(t *testing.T) {
	dir, reads := oldDatabase(t, 2000)
	if killed := kill(t, "upgrade", dir); killed == 0 {
		t.Error("nothing was killed")
	}
	db, err := store.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if events, stories, err := db.UpgradeLeft(t.Context()); events+stories != 0 || err != nil {
		t.Errorf("%d events and %d stories are left, %v", events, stories, err)
	}
	sameAsBefore(t, db, reads)
	if added := appendEvents(t, db, reads...); len(added) != 0 {
		t.Errorf("%d events were stored again", len(added))
	}
}
