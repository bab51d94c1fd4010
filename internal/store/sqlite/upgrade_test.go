package sqlite_test

import (
	"crypto/sha256"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/fold"
	"switchyard/internal/generate"
	"switchyard/internal/store/sqlite"
)

// lastSchema is the number of migrations in the last version that stored event texts more than once.
const lastSchema = 6

// oldDatabase creates a database of an earlier version with n events of four projects, and some others.
func oldDatabase(t *testing.T, n int) (dir string, reads []domain.FeedRead) {
	t.Helper()
	dir = t.TempDir()
	db, err := sqlite.OldDatabase(t.Context(), dir, lastSchema)
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
	for i := range oldStays {
		s := oldStay(i)
		exec(`INSERT INTO stays (project, story_id, number, stage, from_ms, to_ms, next_stage, shown, blocked_ms, blocked_since_ms, merge_failed_since_ms)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, s.Project, s.StoryID, s.Number, s.Stage, s.From.UnixMilli(), s.To.UnixMilli(), s.Next, s.Shown,
			s.Blocked.Milliseconds(), 0, 0)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	return dir, reads
}

// oldStays is the number of stays in an old database.
const oldStays = 150

// oldStay returns the i-th stay, of three stories in turn, the last of which is not in the stream.
func oldStay(i int) domain.Stay {
	return domain.Stay{
		Project: "Ärger", StoryID: []string{"12_pay", "1_shown", "unknown"}[i%3], Number: int64(i), Stage: "2_current",
		From: time.UnixMilli(int64(1000 + i)), To: time.UnixMilli(int64(2000 + i)), Next: "3_qa", Shown: i%2 == 0, Blocked: time.Duration(i) * time.Millisecond,
	}
}

// sameStays checks that the database has the old stays.
func sameStays(t *testing.T, db *sqlite.DB) {
	t.Helper()
	var all, pay []domain.Stay
	for i := range oldStays {
		s := oldStay(i)
		if all = append(all, s); s.StoryID == "12_pay" {
			pay = append(pay, s)
		}
	}
	recent, err := db.RecentStays(t.Context(), time.UnixMilli(1), oldStays-20)
	if err != nil || !reflect.DeepEqual(recent, all[20:]) {
		t.Errorf("recent stays %v, %v", recent, err)
	}
	ofProject, err := db.ProjectStays(t.Context(), "Ärger", time.UnixMilli(2100), 1000)
	if err != nil || !reflect.DeepEqual(ofProject, all[100:]) {
		t.Errorf("stays of the project %v, %v", ofProject, err)
	}
	ofStory, err := db.Stays(t.Context(), "Ärger", "12_pay", 10)
	if err != nil || !reflect.DeepEqual(ofStory, pay[len(pay)-10:]) {
		t.Errorf("stays of a story %v, %v", ofStory, err)
	}
}

// sameAsBefore checks that the database returns the events of reads for all queries.
func sameAsBefore(t *testing.T, db *sqlite.DB, reads []domain.FeedRead) {
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

func TestADatabaseOfAnEarlierVersionIsReadAndWrittenWhileItIsUpgraded(t *testing.T) {
	dir, reads := oldDatabase(t, 600)
	db, err := sqlite.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if left, err := db.UpgradeLeft(t.Context()); err != nil || left < int64(len(reads)+oldStays) {
		t.Errorf("%d rows are left, %v", left, err)
	}
	for step := 0; ; step++ {
		sameAsBefore(t, db, reads)
		// A changed stay is saved in whichever table it is.
		changed := oldStay(step * 31 % oldStays)
		changed.Next = "4_merge"
		for _, s := range []domain.Stay{changed, oldStay(int(changed.Number))} {
			if err := db.SaveStays(t.Context(), domain.StayChanges{Save: []domain.Stay{s}}); err != nil {
				t.Fatal(err)
			}
			if s.Next == "4_merge" {
				if now, err := db.Stays(t.Context(), s.Project, s.StoryID, oldStays); err != nil || len(now) != oldStays/3 || !slices.ContainsFunc(now, func(n domain.Stay) bool { return n == s }) {
					t.Errorf("%d stays, %v, or not %v", len(now), err, s)
				}
			}
		}
		sameStays(t, db)
		// Events are not stored twice, in whichever table they are.
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
	db, err := sqlite.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if left, err := db.UpgradeLeft(t.Context()); left != 0 || err != nil {
		t.Errorf("%d rows are left, %v", left, err)
	}
	sameAsBefore(t, db, reads)
	sameStays(t, db)
	if added := appendEvents(t, db, reads...); len(added) != 0 {
		t.Errorf("%d events were stored again", len(added))
	}
}
