package sqlite_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/generate"
	"switchyard/internal/store/sqlite"
)

// scan is a step that reads all rows of a table that grows with the stream.
var scan = regexp.MustCompile(`SCAN (events|event_texts|event_digests|stories|stays)\b`)

// ofProjectAndKind is about a project's events of a kind.
var ofProjectAndKind = regexp.MustCompile(`events\.project_id = \d+ AND events\.kind_id`)

// staysOfProject is about a project's stays.
var staysOfProject = regexp.MustCompile(`FROM stays .*project_id = \(SELECT id FROM event_projects WHERE name = \$1\)`)

var parameter = regexp.MustCompile(`\$\d+`)

// fromOneEnd are the beginnings of statements that may scan: they read from one end, and stop when they have found enough.
var fromOneEnd = []string{
	"SELECT event_projects.name, stories.story_id, story_name FROM (SELECT id", // a search for stories by one or two characters
}

func TestNoQueryReadsAllEvents(t *testing.T) {
	statements := sqlite.Record()
	db := openStore(t)
	for n := range 60 {
		appendEvents(t, db, generate.Read(n, 3), feedRead("alpha", move(t, n)), received(int64(n), feedRead("beta", move(t, n))))
	}
	ctx := t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, project := range []string{"", "alpha"} {
		for _, kind := range []domain.EventType{"", domain.StageTransition, domain.StoryBlocked} {
			for _, text := range []string{"", "alpha", "story", "Story 7", "qa", "zz", "nothing of that kind"} {
				for _, q := range []domain.EventQuery{{}, {After: 5}, {Backward: true}, {Backward: true, Before: 100}} {
					q.Project, q.Type, q.Text, q.Limit = project, kind, text, 10
					_, err := db.Events(ctx, q)
					check(err)
				}
			}
		}
	}
	_, err := db.StoryEvents(ctx, "alpha", "7_story", 10)
	check(err)
	_, err = db.StoryName(ctx, "alpha", "7_story")
	check(err)
	for _, words := range [][]string{{"story"}, {"story", "1"}, {"st"}} {
		_, err = db.FindStories(ctx, words, 10)
		check(err)
	}
	_, err = db.LastEventID(ctx)
	check(err)
	_, err = db.OldestEvent(ctx)
	check(err)
	_, _, err = db.Size(ctx)
	check(err)
	_, err = db.FeedCursors(ctx, "alpha")
	check(err)
	_, err = db.EventProjects(ctx)
	check(err)
	check(db.SaveStays(ctx, domain.StayChanges{
		Save: []domain.Stay{{Project: "alpha", StoryID: "1", Stage: "2_current"}}, Drop: []domain.Stay{{Project: "alpha", StoryID: "2"}},
		Stories: []domain.StoryRef{{Project: "alpha", ID: "9", Name: "Nine"}}, UpTo: 3,
	}))
	_, err = db.RecentStays(ctx, time.UnixMilli(1), 10)
	check(err)
	_, err = db.ProjectStays(ctx, "alpha", time.UnixMilli(1), 10)
	check(err)
	_, err = db.LastingStays(ctx, "alpha")
	check(err)
	_, err = db.AllLastingStays(ctx, 10)
	check(err)
	_, err = db.Stays(ctx, "alpha", "1", 10)
	check(err)
	if removed := remove(t, db, expired("beta", 100, 10)); len(removed) != 50 {
		t.Errorf("removed %v", removed)
	}

	checked := 0
	for statement := range statements() {
		if verb, _, _ := strings.Cut(strings.TrimSpace(statement), " "); verb != "SELECT" && verb != "WITH" && verb != "DELETE" && verb != "UPDATE" {
			continue
		}
		if strings.Contains(statement, "old_") { // what an upgrade has left
			continue
		}
		steps, err := db.Plan(ctx, parameter.ReplaceAllString(statement, "1"))
		if err != nil {
			t.Errorf("%.500s: %v", statement, err)
		}
		checked++
		if ofProjectAndKind.MatchString(statement) && !strings.Contains(strings.Join(steps, ""), "events_of_project_kind") {
			t.Errorf("%.500s\n%s\nwants the index of both", statement, strings.Join(steps, "\n"))
		}
		// The stays of one project cost what it has, whatever others have.
		if staysOfProject.MatchString(statement) && !strings.Contains(strings.Join(steps, ""), "(project_id=?") {
			t.Errorf("%.500s\n%s\nwants the texts of the project", statement, strings.Join(steps, "\n"))
		}
		isScan := func(step string) bool { return scan.MatchString(step) }
		if slices.ContainsFunc(steps, isScan) && !slices.ContainsFunc(fromOneEnd, func(begin string) bool { return strings.HasPrefix(statement, begin) }) {
			t.Errorf("%.500s\n%s", statement, strings.Join(steps, "\n"))
		}
	}
	if checked < 30 {
		t.Errorf("only %d statements were checked", checked)
	}
}
