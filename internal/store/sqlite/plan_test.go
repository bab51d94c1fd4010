package sqlite_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"switchyard/internal/domain"
	"switchyard/internal/generate"
	"switchyard/internal/store/sqlite"
	"switchyard/internal/store/storetest"
)

// scan is a step that reads all rows of a table that grows with the stream.
var scan = regexp.MustCompile(`SCAN (events|event_digests|stories|stage_visits)\b`)

var parameter = regexp.MustCompile(`\$\d+`)

// fromOneEnd are prefixes of statements that may scan: they read from one end and stop when they have found enough.
var fromOneEnd = []string{
	"SELECT project, story_id, story_name FROM (SELECT id FROM stories) AS found", // a search for stories by one or two characters
}

func TestNoQueryReadsAllEvents(t *testing.T) {
	statements := sqlite.Record()
	db := openStore(t)
	for n := range 60 {
		appendEvents(t, db, generate.Read(n, 3), feedRead("alpha", move(t, n)), received(int64(n), feedRead("beta", move(t, n))))
	}
	var many []domain.FeedRead
	for n := range 2100 { // more than a search reads in order
		many = append(many, feedRead("alpha", move(t, n)))
	}
	appendEvents(t, db, many...)
	storetest.AskAll(t, db.Tables)
	if removed := remove(t, db, expired("beta", 100, 10)); len(removed) != 50 {
		t.Errorf("removed %v", removed)
	}

	checked := 0
	for statement := range statements() {
		if verb, _, _ := strings.Cut(strings.TrimSpace(statement), " "); verb != "SELECT" && verb != "WITH" && verb != "DELETE" && verb != "UPDATE" {
			continue
		}
		steps, err := db.Plan(t.Context(), parameter.ReplaceAllString(statement, "1"))
		if err != nil {
			t.Errorf("%.500s: %v", statement, err)
		}
		checked++
		// A page reads no more events than it shows.
		if strings.Contains(statement, "events.record") && strings.Contains(strings.Join(steps, ""), "TEMP B-TREE") {
			t.Errorf("%.500s\n%s\nsorts", statement, strings.Join(steps, "\n"))
		}
		isScan := func(step string) bool { return scan.MatchString(step) }
		if strings.Contains(statement, "words LIKE") { // a search of distinct texts for one or two characters
			isScan = func(step string) bool { return scan.MatchString(step) && !strings.Contains(step, "SCAN stories") }
		}
		if slices.ContainsFunc(steps, isScan) && !slices.ContainsFunc(fromOneEnd, func(begin string) bool { return strings.HasPrefix(statement, begin) }) {
			t.Errorf("%.500s\n%s", statement, strings.Join(steps, "\n"))
		}
	}
	if checked < 30 {
		t.Errorf("only %d statements were checked", checked)
	}
}
