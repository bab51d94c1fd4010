package postgres_test

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"switchyard/internal/domain"
	"switchyard/internal/generate"
	"switchyard/internal/pgtest"
	"switchyard/internal/store/postgres"
	"switchyard/internal/store/storetest"
)

// scan is a step that reads all rows of a table that grows with the stream.
var scan = regexp.MustCompile(`Seq Scan on (events|event_digests|stories|stage_visits)\b`)

// TestNoQueryReadsAllEvents checks the plans of all statements in a database whose statistics show a hundred million
// events.
func TestNoQueryReadsAllEvents(t *testing.T) {
	address := pgtest.Database(t)
	db, recorder := postgres.OpenRecorded(t, address)
	reads := generate.Reads(0, 600, 200)
	for n := range 2100 { // more than a search reads in order
		reads = append(reads, storetest.Read("alpha", storetest.Move(t, n)))
	}
	storetest.Append(t, db, reads...)
	for project := range 20 {
		var seen []domain.Sighting
		for i := range 100 {
			seen = append(seen, domain.Sighting{StoryID: fmt.Sprint(i, "_story"), Stage: "2_current", Since: time.UnixMilli(int64(i))})
		}
		o := domain.Observation{Project: generate.Project(project), Seen: seen, Asked: time.Now(), Now: time.Now()}
		if _, _, err := db.ObserveVisits(t.Context(), 0, o); err != nil {
			t.Fatal(err)
		}
	}
	execute(t, address, "ANALYZE")
	execute(t, address, `UPDATE pg_class SET reltuples = reltuples * 1e8 / 2700, relpages = GREATEST(relpages, 1) WHERE relname IN ('events', 'event_digests');
		UPDATE pg_class SET reltuples = reltuples * 1e5, relpages = GREATEST(relpages, 1) WHERE relname IN ('stories', 'stage_visits')`)
	storetest.AskAll(t, db.Tables)
	ctx := t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	expired, err := db.ExpiredEvents(ctx, domain.ExpiryQuery{Project: "alpha", Before: time.UnixMilli(math.MaxInt64 / 2), Now: time.UnixMilli(math.MaxInt64 / 2), Keep: 10, Needed: math.MaxInt64}, 10)
	check(err)
	check(db.RemoveEvents(ctx, 0, expired))

	conn, err := pgx.Connect(ctx, address)
	check(err)
	defer conn.Close(ctx)
	checked := 0
	for _, s := range recorder.Statements {
		verb, _, _ := strings.Cut(strings.TrimSpace(s.SQL), " ")
		verb, _, _ = strings.Cut(verb, "\n")
		if !slices.Contains([]string{"SELECT", "WITH", "INSERT", "UPDATE", "DELETE"}, verb) || !strings.Contains(s.SQL, "event") && !strings.Contains(s.SQL, "sto") {
			continue
		}
		rows, err := conn.Query(ctx, "EXPLAIN "+s.SQL, s.Args...)
		if err != nil {
			t.Fatal(err)
		}
		steps, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Errorf("%.500s: %v", s.SQL, err)
			continue
		}
		checked++
		if scan.MatchString(strings.Join(steps, "\n")) {
			t.Errorf("%.1000s\n%v\n%s", s.SQL, s.Args, strings.Join(steps, "\n"))
		}
	}
	if checked < 30 {
		t.Errorf("only %d statements were checked", checked)
	}
}
