package transfer_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/generate"
	"switchyard/internal/pgtest"
	"switchyard/internal/service"
	"switchyard/internal/store/postgres"
	"switchyard/internal/store/sqlite"
	"switchyard/internal/store/storetest"
	"switchyard/internal/store/transfer"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m.Run)) }

// filled creates a database in dir with rows in each table.
func filled(t *testing.T, dir string) (events int) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	now := time.UnixMilli(1_000_000)
	ctx, entry := t.Context(), &domain.AuditEntry{At: now, Who: "Zoë", Via: "test", Action: "add", Subject: "alpha"}
	check(db.AddProjects(ctx, entry, "alpha", domain.Project{Name: "alpha", URL: "http://a", Token: "secret"}, domain.Project{Name: "Ärger", URL: "http://b"}))
	check(db.AddToken(ctx, nil, domain.JoinToken{Hash: "used", CreatedAt: now, ExpiresAt: now.Add(time.Hour)}, 200))
	check(db.AddToken(ctx, nil, domain.JoinToken{Hash: "unused", CreatedAt: now, ExpiresAt: now.Add(time.Hour), Project: "alpha"}, 200))
	check(db.Redeem(t.Context(), nil, "used", domain.AgentRecord{Agent: domain.Agent{ID: "a", Label: "label", State: domain.AgentIdle, JoinedAt: now}, SecretHash: "h"}))
	check(db.AddNamedToken(ctx, nil, domain.NamedToken{ID: "n", Name: "token", Role: "viewer", Hash: "x", CreatedAt: now}))
	check(db.AddSession(ctx, nil, domain.Session{ID: "s", Who: "Zoë", Via: "login", Role: "admin", TokenID: "n", CreatedAt: now, LastSeen: now}, 100))
	_, err = db.RecordBotRequest(ctx, "event Ev1")
	check(err)
	undo := domain.Removal{Project: domain.Project{Name: "gone", URL: "http://gone", Token: "t"}, Active: true, Agents: []string{"a"}}
	check(db.KeepRemoval(ctx, "undo", undo, now, 32))
	check(db.Acknowledge(ctx, nil, domain.Acknowledgement{Key: "k", Project: "alpha", Text: "t", By: "Zoë", At: now}))
	_, err = db.AddQuestion(ctx, &domain.AuditEntry{At: now}, domain.Question{
		Project: "alpha", StoryID: "1_ü", Kind: domain.QuestionChoice, Prompt: "Wohin?", Options: []string{"a", "ü"}, Asker: "agent a", By: "label",
		Tool: &domain.ToolUse{Name: "Bash", Input: []byte(`{"command":"x"}`)}, Key: "k", Session: "s", UseID: "u", AskedAt: now, Expires: now.Add(time.Hour),
	}, "mcp", domain.AllowedQuestions)
	check(err)
	check(db.SaveAgentSessions(ctx, []domain.AgentSession{{ID: "s", Asker: "agent a", CWD: "/ü\x00", State: domain.SessionIdle, Last: now}}, nil))
	_, _, err = db.AddClaim(ctx, &domain.AuditEntry{}, domain.Claim{Project: "alpha", StoryID: "1_ü", Holder: "agent a", By: "label", AgentID: "a", Since: now, Stage: "1_backlog"})
	check(err)
	check(db.RecordStoryChanges(ctx, nil, []domain.StoryChange{{Project: "alpha", StoryID: "1_ü", Type: domain.StageTransition, Value: "2_current", At: now, By: "label", Via: domain.ChannelMCP}}))
	given := domain.Claim{Project: "alpha", StoryID: "2_ö", Holder: "agent a", Since: now}
	_, _, err = db.AddClaim(ctx, &domain.AuditEntry{}, given)
	check(err)
	check(db.EndClaim(ctx, nil, given))
	_, err = db.AddCalls(ctx, []domain.Call{{Key: "k", At: now, Client: "codex", Session: "s", Model: "ü", Project: "alpha", StoryID: "1_ü", Holder: "agent a", By: "label", AgentID: "a"}})
	check(err)
	check(db.SetState(ctx, "bot", "x\x00y"))
	check(db.AddTarget(ctx, nil, domain.Target{ID: "t", Name: "hook", URL: "https://hooks.example/", Enabled: true, Progress: domain.TargetProgress{Position: 4, Left: map[string]int64{"k": 1}}}))
	check(db.SaveAlerts(ctx, 0, []domain.AlertRecord{{Key: "k", Kind: domain.AlertStuck, Project: "ü", SinceMS: 1, Seq: 1}}, nil))
	check(db.SaveTargets(ctx, 0, []domain.TargetSave{{
		Target: "t", Progress: domain.TargetProgress{Position: 5}, Queued: []domain.QueuedMessage{{After: 5, Message: domain.Message{ID: "m", At: now, Data: []byte(`"\u0000"`)}}},
		Delivery: &domain.Delivery{At: now, MessageID: "m", Attempt: 1, Status: 500, Error: "500"},
		Digest:   &domain.DigestRecord{ID: "d", Target: "t", At: now, DigestContent: domain.DigestContent{Text: "2 blocked"}},
	}}))
	reads := generate.Reads(0, 500, 3)
	review := domain.Review{Project: "alpha", StoryID: "1_ü", Verdict: domain.SentBack, Head: "a1", Note: "Nein", By: "Zoë", At: now}
	reads = append(reads, domain.FeedRead{
		Cursor: domain.FeedCursor{Project: "alpha"}, ReceivedAt: now, Records: []domain.Record{review.Record("Ä")},
		Review: &domain.ReviewRecord{Review: review, Entry: domain.AuditEntry{At: now, Who: "Zoë"}},
	})
	for _, text := range storetest.Strange {
		reads = append(reads, storetest.Read("Ärger", storetest.Record(t, text)))
	}
	storetest.Append(t, db, reads...)
	removed, err := db.ExpiredEvents(t.Context(), domain.ExpiryQuery{Project: generate.Project(1), Before: time.UnixMilli(math.MaxInt64 / 2), Now: time.UnixMilli(math.MaxInt64 / 2), Keep: 50, Needed: math.MaxInt64}, 20)
	check(err)
	check(db.RemoveEvents(t.Context(), 0, removed))
	_, _, err = db.ObserveVisits(t.Context(), 0, domain.Observation{Project: "Ärger", Asked: now, Now: now, Seen: []domain.Sighting{
		{StoryID: "shown", StoryName: "Nur gezeigt", Stage: "2_current", Since: now, Blocked: true},
		{StoryID: "1_story", Stage: "3_qa", Since: now},
	}})
	check(err)
	_, err = db.MergeMoves(ctx, 0, "Ärger", map[string][]domain.Move{"shown": {{To: "2_current", At: now.Add(-time.Hour)}}})
	check(err)
	check(db.SavePast(ctx, 0, "Ärger", domain.Past{ID: "x", Since: now.Add(-time.Hour)}, now))
	return len(reads) - len(removed)
}

// contents returns everything in a database.
func contents(t *testing.T, whole service.Store) map[string]any {
	t.Helper()
	db := whole.All()
	ctx, found := t.Context(), map[string]any{}
	add := func(name string, value any, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		found[name] = value
	}
	active, projects, err := db.Registry(ctx)
	add("active", active, err)
	add("projects", projects, err)
	agents, err := db.AgentRecords(ctx)
	add("agents", agents, err)
	for _, hash := range []string{"used", "unused"} {
		token, err := db.Token(ctx, hash)
		add(hash, token, err)
	}
	tokens, err := db.NamedTokens(ctx)
	add("tokens", tokens, err)
	sessions, err := db.Sessions(ctx)
	add("sessions", sessions, err)
	questions, err := db.Questions(ctx, "", false, time.UnixMilli(1), 10)
	add("questions", questions, err)
	targets, err := db.Targets(ctx)
	add("targets", targets, err)
	queued, err := db.QueuedMessages(ctx, "t", 10)
	add("queued", queued, err)
	deliveries, err := db.Deliveries(ctx, "t", 10)
	add("deliveries", deliveries, err)
	hours, err := db.DeliveryHours(ctx, time.UnixMilli(0))
	add("hours", hours, err)
	digest, err := db.Digest(ctx, "d")
	add("digest", digest, err)
	acknowledgements, err := db.Acknowledgements(ctx)
	add("acknowledgements", acknowledgements, err)
	past, err := db.Past(ctx, "Ärger")
	add("past", past, err)
	claims, err := db.Claims(ctx)
	add("claims", claims, err)
	changes, err := db.StoryChanges(ctx, "alpha", "1_ü", 10)
	add("changes", changes, err)
	audit, err := db.AuditPage(ctx, domain.AuditQuery{Limit: 100})
	add("audit", audit.Entries, err)
	for _, q := range []domain.EventQuery{{}, {Project: "Ärger"}, {Type: domain.StoryBlocked}, {Text: "conflict"}, {Text: "nul"}, {Text: "ünï"}, {Backward: true}} {
		q.Limit = 1000
		page, err := db.Events(ctx, q)
		var events []string
		for _, e := range page.Events {
			events = append(events, fmt.Sprintf("%s %s %s", e.Type, e.At, e.AppendJSON(nil)))
		}
		add(fmt.Sprintf("events %+v", q), events, err)
	}
	names, err := db.EventProjects(ctx)
	slices.Sort(names)
	add("names", names, err)
	for _, name := range names {
		cursors, err := db.FeedCursors(ctx, name)
		add("cursors of "+name, cursors, err)
	}
	for _, story := range []string{"1_story", "shown"} {
		history, err := db.StoryEvents(ctx, "Ärger", story, 10)
		add("events of "+story, history, err)
		visits, err := db.StoryVisits(ctx, "Ärger", story, 10)
		add("visits of "+story, visits, err)
	}
	name, err := db.StoryName(ctx, "Ärger", "1_story")
	add("name of a story", name, err)
	stories, err := db.FindStories(ctx, []string{"gezeigt"}, 10)
	add("stories", stories, err)
	last, err := db.LastEventID(ctx)
	add("last", last, err)
	return found
}

var sessionKey = bytes.Repeat([]byte{7}, 32)

func TestAllIsMoved(t *testing.T) {
	dir, url := t.TempDir(), pgtest.Database(t)
	events := filled(t, dir)
	source, err := sqlite.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	want := contents(t, source)
	if n := len(want[fmt.Sprintf("events %+v", domain.EventQuery{Limit: 1000})].([]string)); n != events {
		t.Errorf("%d events, want %d", n, events)
	}
	source.Close()

	var said strings.Builder
	if err := transfer.Run(t.Context(), dir, url, sessionKey, func(format string, args ...any) { fmt.Fprintf(&said, format+"\n", args...) }); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said.String(), fmt.Sprintf("events: %d\n", events)) {
		t.Errorf("it said %q", &said)
	}
	db, err := postgres.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	got := contents(t, db)
	for name := range want {
		if events, ok := want[name].([]string); ok && len(events) == len(got[name].([]string)) {
			for i, e := range got[name].([]string) {
				if e != events[i] {
					t.Errorf("%s: %.300q was %.300q", name, e, events[i])
				}
			}
			continue
		}
		if !reflect.DeepEqual(got[name], want[name]) {
			t.Errorf("%s:\n%.2000v\nwas\n%.2000v", name, got[name], want[name])
		}
	}
	if key, err := db.SessionKey(t.Context()); err != nil || !bytes.Equal(key, sessionKey) { // nobody has to log in again
		t.Errorf("the key of sessions is %x, %v", key, err)
	}
	if value, err := db.State(t.Context(), "bot"); value != "xy" || err != nil {
		t.Errorf("a value with NUL is %q, %v", value, err)
	}

	// It continues from there: events are not stored twice, and ids come after the greatest.
	again := []domain.FeedRead{storetest.Read("Ärger")}
	for _, text := range storetest.Strange {
		again[0].Records = append(again[0].Records, storetest.Record(t, text))
	}
	again = append(again, generate.Reads(0, 501, 3)...)
	last := want["last"].(int64)
	if added := storetest.Append(t, db, again...); len(added) != 1 || added[0].ID != last+1 {
		t.Errorf("added %v after %d", storetest.IDs(added), last)
	}
	if err := db.AddAudit(t.Context(), domain.AuditEntry{At: time.UnixMilli(1), Who: "x"}); err != nil {
		t.Error(err)
	}

	if _, err := sqlite.Open(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "was moved to "+postgres.Address(url)) {
		t.Errorf("opening what was moved: %v", err)
	}
	for target, want := range map[string]string{url: "is not empty", pgtest.Database(t): "was moved to"} {
		if err := transfer.Run(t.Context(), dir, target, sessionKey, t.Logf); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("once more: %v, want %q", err, want)
		}
	}
}

// TestEveryTableIsMoved fails for a table that is added to SQLite's schema but not moved.
func TestEveryTableIsMoved(t *testing.T) {
	dir := t.TempDir()
	filled(t, dir)
	db, err := sqlite.OpenReadOnly(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), `SELECT name FROM sqlite_master
		WHERE type = 'table' AND name NOT LIKE '%\_words%' ESCAPE '\' AND name <> 'stream'`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var table string
		if err := rows.Scan(&table); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(transfer.Names, table) {
			t.Errorf("%s is not moved", table)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for _, table := range transfer.Names {
		var found bool
		if err := db.QueryRowContext(t.Context(), "SELECT EXISTS (SELECT 1 FROM "+table+")").Scan(&found); err != nil || !found {
			t.Errorf("the test has nothing in %s (%v)", table, err)
		}
	}
}

func TestAFailedMoveChangesNothing(t *testing.T) {
	dir, url := t.TempDir(), pgtest.Database(t)
	filled(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	report := func(format string, args ...any) {
		if strings.HasPrefix(fmt.Sprintf(format, args...), "events:") {
			cancel()
		}
	}
	if err := transfer.Run(ctx, dir, url, sessionKey, report); err == nil {
		t.Fatal("an interrupted move succeeded")
	}
	if db, err := sqlite.Open(t.Context(), dir); err != nil {
		t.Errorf("the source: %v", err)
	} else {
		db.Close()
	}
	if _, err := os.Stat(filepath.Join(dir, sqlite.FileName)); err != nil {
		t.Error(err)
	}
	if err := transfer.Run(t.Context(), dir, url, sessionKey, t.Logf); err != nil {
		t.Errorf("the next: %v", err)
	}
}
